"""Bandwidth of host memory as the one-pass update draws it: with the engine's own loop, on records as the engine has them."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Iterator

import numpy as np

from offload_lab import update as told
from offload_lab.hardware import Figure
from offload_lab.kernels import Kernel
from offload_lab.partition import Kind, cut
from offload_lab.probes.timing import repeat, spread
from offload_lab.storage.memory import Slab

KIND = Kind("bfloat16")
BYTES_HELD = 14  # an element: weight and gradient 2 each, record 10
BYTES_MOVED = 26  # reads: weight 2, gradient 2, moments 8, low half 2; writes: the same without the gradient
_PARTITION = 4 << 20  # elements; the engine's default for large models
_GROUP = {"lr": 1e-6, "betas": (0.9, 0.999), "weight_decay": 0.0, "eps": 1e-8, "maximize": False}


class Update:
    """`elements` bfloat16 parameters with float32 moments in memory, and the update of all of them on `threads` threads.

    Raises MemoryError where the system refuses the memory.
    """

    def __init__(self, elements: int, kernel: Kernel, threads: int) -> None:
        self.elements, self._kernel, self._threads = elements, kernel, threads
        kernel.prepare(KIND)
        self._slabs: list[Slab] = []
        self._arguments: list[tuple] = []
        try:
            self._build()
        except MemoryError:
            self.close()
            raise

    def _slab(self, nbytes: int, value: int) -> np.ndarray:
        slab = Slab(nbytes)
        self._slabs.append(slab)
        # Written, not only read: pages that were never written are all the one page of zeros, which stays in the cache.
        slab.bytes[:].view(np.uint16).fill(value)
        return slab.bytes

    def _build(self) -> None:
        one = 0x3F80  # 1.0 in bfloat16: numbers that stay far from the denormal ones, which are slow
        weights, gradients = self._slab(2 * self.elements, one), self._slab(2 * self.elements, one)
        self._parts = cut([(0, self.elements, KIND)], _PARTITION)
        for part in self._parts:
            rows = told.table(part)
            start = part.spans[0].start
            rows[:, told.WEIGHT_ADDRESS] = weights.ctypes.data + 2 * start
            rows[:, told.GRADIENT_ADDRESS] = gradients.ctypes.data + 2 * start
            scalars = np.array([told.scalars(_GROUP, 1, decoupled=True)], np.float32)
            self._arguments.append((rows, scalars, *told.fields(part, self._slab(part.state_bytes, 0), False)))

    def _pieces(self) -> Iterator[tuple[int, int, int]]:
        """(partition, first element, end), each partition cut into one piece a thread, as the engine does."""
        for index, part in enumerate(self._parts):
            edges = np.linspace(0, part.numel, self._threads + 1).astype(int)
            yield from ((index, int(a), int(b)) for a, b in itertools.pairwise(edges) if a < b)

    def run(self) -> None:
        """Update every element once."""
        pieces, lock = self._pieces(), threading.Lock()
        errors: list[BaseException] = []

        def work() -> None:
            try:
                while not errors:
                    with lock:
                        piece = next(pieces, None)
                    if piece is None:
                        return
                    index, begin, end = piece
                    self._kernel.update(*self._arguments[index], begin, end)
            except BaseException as error:  # raised in the caller's thread
                errors.append(error)

        others = [threading.Thread(target=work, name="offload measure", daemon=True) for _ in range(self._threads - 1)]
        try:
            for thread in others:
                thread.start()
            work()
        finally:  # Ctrl-C as well: the memory that they work on is given back after this
            for thread in others:
                if thread.ident is not None:
                    thread.join()
        if errors:
            raise errors[0]

    def close(self) -> None:
        self._arguments.clear()
        for slab in self._slabs:
            slab.close()
        self._slabs = []


def update_bandwidth(elements: int, seconds: float, kernel: Kernel, threads: int) -> Figure:
    """Bytes a second, reads and writes together, while `elements` bfloat16 parameters are updated."""
    update = Update(elements, kernel, threads)
    try:
        rates = [BYTES_MOVED * elements / taken for taken in repeat(update.run, seconds)]
    finally:
        update.close()
    note = (
        f"the engine's update of {elements:,} bfloat16 parameters, {BYTES_MOVED} bytes each, {threads} threads, "
        f"{kernel.name}; {spread(rates)}"
    )
    return Figure(statistics.median(rates), "measured", note)
