"""A bench whose transfers are real: files, threads, and whatever comes first on this machine at this moment."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from offload_lab.revealer import Program
from quizzes.say import _

ELEMENTS = 16_384


class _Transfer:
    def __init__(self, future: Future[None]) -> None:
        self._future = future

    def wait(self) -> None:
        self._future.result()


class RealBench:
    """`read`, `write`, `update` of a `Bench`, on a file for each partition in a temporary folder inside `folder`.

    `slow` names kinds ("read", "write") of which each transfer is preceded by a sleep of `seconds`: a disk that is busy. Use it
    in a `with`: at its end threads and files are gone. Raises OSError where the folder cannot be written.
    """

    def __init__(
        self, partitions: int = 5, slow: Collection[str] = (), seconds: float = 0.002, folder: str | os.PathLike[str] = "."
    ) -> None:
        self.partitions = range(partitions)
        self._slow, self._seconds = slow, seconds
        try:
            self._folder = tempfile.TemporaryDirectory(dir=folder)
        except OSError as error:
            said = _("The bench writes small files below {folder}, and may not or cannot: {error}. Start it in another folder.")
            raise OSError(said.format(folder=Path(folder).absolute(), error=error)) from None
        self.buffers = [np.zeros(ELEMENTS) for _ in range(2)]
        self.gradients = [np.full(ELEMENTS, p + 1.0) for p in self.partitions]
        self._start = [np.arange(ELEMENTS, dtype=np.float64) + 100_000 * p for p in self.partitions]
        self._files = [os.open(Path(self._folder.name) / f"{p}", os.O_RDWR | os.O_CREAT, 0o600) for p in self.partitions]
        self._pool = ThreadPoolExecutor(4, "real bench")
        self._under_way: list[Future[None]] = []

    def read(self, partition: int, buffer: int) -> _Transfer:
        return self._begin("read", self._files[partition], self.buffers[buffer])

    def write(self, partition: int, buffer: int) -> _Transfer:
        return self._begin("write", self._files[partition], self.buffers[buffer])

    def update(self, partition: int, buffer: int) -> None:
        self.buffers[buffer] += self.gradients[partition]

    def _begin(self, kind: str, file: int, data: np.ndarray) -> _Transfer:
        self._under_way.append(self._pool.submit(self._move, kind, file, data))
        return _Transfer(self._under_way[-1])

    def _move(self, kind: str, file: int, data: np.ndarray) -> None:
        if kind in self._slow:
            time.sleep(self._seconds)
        moved = os.preadv(file, [data.data], 0) if kind == "read" else os.pwrite(file, data.data, 0)
        if moved != data.nbytes:
            said = _("a {kind} moved {moved} of {size} bytes; is the disk full?")
            raise OSError(said.format(kind=kind, moved=moved, size=data.nbytes))

    def run(self, program: Program) -> bool:
        """One step of `program` from the start; whether every partition's file holds what it should."""
        for file, state in zip(self._files, self._start, strict=True):
            os.pwrite(file, state.data, 0)
        try:
            program(self)  # type: ignore[arg-type]
        finally:
            under_way, self._under_way = self._under_way, []
            for future in under_way:
                future.result()
        found = np.empty(ELEMENTS)
        for file, state, gradient in zip(self._files, self._start, self.gradients, strict=True):
            os.preadv(file, [found.data], 0)
            if not np.array_equal(found, state + gradient):
                return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.shutdown(wait=True)
        for file in self._files:
            os.close(file)
        self._folder.cleanup()
