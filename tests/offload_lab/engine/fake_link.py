"""A link to a device that is not there: copies that come late, and host memory that is garbage until they have come."""

import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import torch


class LateCopy:
    def __init__(self, future: Future) -> None:
        self._future = future

    def wait(self) -> None:
        self._future.result()


class FakeLink:
    """Takes every tensor for one of its device. What the device is told (`kernel`) and what is copied happens in the order in
    which a real device would do it, each thing late by a random time up to `delay` seconds."""

    def __init__(self, delay=0.004, seed=0):
        self.delay, self._random = delay, random.Random(seed)
        self._lock = threading.Lock()
        self._queues = {name: ThreadPoolExecutor(1, f"fake {name}") for name in ("compute", "down", "up")}
        self.pinned = {}
        self.copied = {"down": 0, "up": 0}
        self.count = 0
        self.slow = {"down": 0.0, "up": 0.0}
        self.fail_at = None
        self.refuse_to_pin = None

    def _late(self):
        with self._lock:
            return self._random.uniform(0, self.delay)

    def kernel(self, work, seconds=None):
        """Tell the device to do something; it has not, when this returns."""

        def run():
            time.sleep(self._late() if seconds is None else seconds)
            with torch.no_grad():
                work()

        return self._queues["compute"].submit(run)

    def now(self):
        return self._queues["compute"].submit(lambda: None)

    def fetch(self, source, into, after):
        with torch.no_grad():
            into.fill_(float("nan"))  # whoever looks before the copy is over sees this
        return self._copy("down", source, into, after)

    def send(self, source, into, after):
        return self._copy("up", source, into, after)

    def _copy(self, way, source, into, after):
        assert source.dtype == into.dtype and source.shape == into.shape and source.dim() == 1
        with self._lock:
            number, self.count = self.count, self.count + 1
        self.copied[way] += source.numel() * source.element_size()

        def run():
            after.result()
            time.sleep(self._late() + self.slow[way])
            if self.fail_at == number:
                raise RuntimeError("the link failed on purpose")
            with torch.no_grad():
                into.copy_(source)

        return LateCopy(self._queues[way].submit(run))

    def finite(self, gradients):
        self.now().result()
        return [bool(torch.isfinite(gradient).all()) for gradient in gradients]

    def pin(self, slab):
        if self.refuse_to_pin is None:
            self.pinned[slab.bytes.ctypes.data] = slab.nbytes
        return self.refuse_to_pin

    def unpin(self, slab):
        del self.pinned[slab.bytes.ctypes.data]

    def close(self):
        for queue in self._queues.values():
            queue.shutdown(wait=True)
