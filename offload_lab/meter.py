"""Live bytes of a training process, by kind and tier."""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from offload_lab.masters import state_bytes
from offload_lab.worker import Worker


@dataclass(frozen=True)
class Reading:
    """One moment: `seconds` since the meter was built; everything else in bytes."""

    seconds: float
    weights: int
    gradients: int
    optimizer_ram: int
    optimizer_disk: int
    activations: int
    rss: int

    @cached_property  # asked for many times for each reading by whoever draws many of them
    def ram(self) -> int:
        """What the kinds take in RAM together; `rss` also holds Python, torch and what the allocator keeps."""
        return self.weights + self.gradients + self.optimizer_ram + self.activations


KINDS = tuple(field.name for field in fields(Reading) if field.name != "seconds")


class Meter:
    """Counts what `model` and `optimizer` hold at the moment of `read()`.

    weights: the parameters, a tied one once. gradients: those that backward has left and that still exist. optimizer_ram
    and optimizer_disk: what `optimizer.memory()` says, or the state tensors of a torch optimizer. activations: tensors that
    autograd has saved for backward inside `watching()`, each storage once, parameters not among them.
    """

    def __init__(self, model: nn.Module, optimizer: Any, clock: Callable[[], float] = time.perf_counter) -> None:
        self._model, self._optimizer, self._clock = model, optimizer, clock
        self._start = clock()
        # Reentrant: the garbage collector may run a finalizer of `_Saved` in a thread that holds the lock already.
        self._lock = threading.RLock()
        self._saved: dict[int, list[int]] = {}  # storage address -> [bytes, times saved]
        self._gradients: dict[int, tuple[StorageWeakRef, int]] = {}
        note = self._gradients.__setitem__
        handles = []
        for number, parameter in enumerate(model.parameters()):
            if parameter.grad is not None:
                note(number, _held(parameter.grad))
            if parameter.requires_grad:
                handles.append(parameter.register_post_accumulate_grad_hook(partial(_note_gradient, note, number)))
        weakref.finalize(self, lambda: [handle.remove() for handle in handles])

    def read(self) -> Reading:
        weights = sum(parameter.numel() * parameter.element_size() for parameter in self._model.parameters())
        # Not `parameter.grad`: read from one thread while another sets it, it corrupts the heap (seen with torch 2.13).
        gradients = sum(nbytes for storage, nbytes in list(self._gradients.values()) if not storage.expired())
        if hasattr(self._optimizer, "memory"):
            held = self._optimizer.memory()
        else:
            held = {"ram": state_bytes(self._optimizer), "disk": 0}
        with self._lock:
            activations = sum(nbytes for nbytes, _ in list(self._saved.values()))
        return Reading(self._clock() - self._start, weights, gradients, held["ram"], held["disk"], activations, rss())

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count what autograd saves in the block, in this thread, until it lets go of it."""
        parameters = {parameter.untyped_storage().data_ptr() for parameter in self._model.parameters()}

        def pack(tensor: torch.Tensor) -> Any:
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            if address in parameters:
                return tensor
            # Detached: an operation that saves its own output would else hold itself alive through it, for ever.
            return _Saved(self, tensor.detach(), address, storage.nbytes())

        def unpack(saved: Any) -> torch.Tensor:
            return saved.tensor if isinstance(saved, _Saved) else saved

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            yield

    def _add(self, address: int, nbytes: int) -> None:
        with self._lock:
            entry = self._saved.setdefault(address, [nbytes, 0])
            entry[1] += 1

    def _drop(self, address: int) -> None:
        with self._lock:
            entry = self._saved[address]
            entry[1] -= 1
            if entry[1] == 0:
                del self._saved[address]


def _held(tensor: torch.Tensor) -> tuple[StorageWeakRef, int]:
    """A tensor's storage, to be asked later whether it still exists, and the tensor's bytes."""
    return StorageWeakRef(tensor.untyped_storage()), tensor.numel() * tensor.element_size()


def _note_gradient(note: Callable[[int, Any], None], number: int, parameter: torch.Tensor) -> None:
    if parameter.grad is not None:
        note(number, _held(parameter.grad))


class _Saved:
    """A saved tensor; autograd drops it when backward has used it, and with it goes its count."""

    def __init__(self, meter: Meter, tensor: torch.Tensor, address: int, nbytes: int) -> None:
        self.tensor = tensor
        meter._add(address, nbytes)
        weakref.finalize(self, meter._drop, address).atexit = False


class Sampler:
    """Reads a meter every `interval` seconds in a thread of its own, from `start()` (or `with`) to `stop()`.

    At most `limit` readings are kept: when they are full, every second one goes and the interval doubles, so that a long run
    is drawn as evenly as a short one. What reading raises is raised by `stop()`.
    """

    def __init__(self, meter: Meter, interval: float = 0.05, limit: int = 2000) -> None:
        self._meter, self._interval, self._limit = meter, interval, limit
        self._readings: list[Reading] = []
        self._peaks: dict[str, int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._worker: Worker | None = None

    def start(self) -> Sampler:
        if self._worker is None:
            self._stop.clear()
            self._worker = Worker(self._run, name="memory sampler")
            self._worker.start()
        return self

    def stop(self) -> None:
        """Take one last reading and end the thread. Twice is once."""
        worker, self._worker = self._worker, None
        if worker is not None:
            self._stop.set()
            worker.result()

    def _run(self) -> None:
        self.sample()
        while not self._stop.wait(self._interval):
            self.sample()
        self.sample()

    def sample(self) -> Reading:
        """Take one reading now."""
        reading = self._meter.read()
        with self._lock:
            self._readings.append(reading)
            for kind in (*KINDS, "ram"):
                self._peaks[kind] = max(self._peaks.get(kind, 0), getattr(reading, kind))
            if len(self._readings) > self._limit:
                self._readings = self._readings[::2]
                self._interval *= 2
        return reading

    @property
    def readings(self) -> list[Reading]:
        with self._lock:
            return list(self._readings)

    def peak(self, kind: str) -> int:
        """The largest value of a kind ("weights", …, "rss", or "ram" for the sum) among all that was read, kept or not."""
        with self._lock:
            return self._peaks.get(kind, 0)

    def __enter__(self) -> Sampler:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()


def rss() -> int:
    """Bytes of this process that are in RAM now."""
    return _process(os.getpid()).memory_info().rss


@lru_cache(maxsize=1)
def _process(pid: int) -> psutil.Process:
    """Kept, since making one costs more than asking it; by its number, since a fork is another process."""
    return psutil.Process(pid)


def peak_rss() -> int | None:
    """The most bytes of this process that ever were in RAM, or None where the system does not say (Windows)."""
    return _status("VmHWM")


def vm_data() -> int | None:
    """Bytes of private writable memory, as `RLIMIT_DATA` counts them; None where there is no /proc."""
    return _status("VmData")


def _status(name: str) -> int | None:
    try:
        text = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        return None
    found = re.search(rf"^{name}:\s*(\d+) kB$", text, re.M)
    return int(found[1]) * 1024 if found else None
