"""RAM slabs: private anonymous memory in whole 2 MiB pages, which both the update loop and direct I/O run fastest on."""

from __future__ import annotations

import contextlib
import ctypes
import mmap

import numpy as np

HUGE_PAGE = 2 << 20


class Slab:
    """`nbytes` of zeroed memory, 2 MiB aligned, as a uint8 array in `.bytes`. Nothing is resident until it is touched.

    Private and anonymous (`mmap.mmap(-1, n)` alone would be shared): only such memory gets huge pages, and only such
    memory is counted by a limit on the process's data. Raises MemoryError where the system refuses.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        mapped = max(nbytes, 1) + HUGE_PAGE  # room to align; the part that is never touched costs no memory
        try:
            if hasattr(mmap, "MAP_ANONYMOUS"):
                self._map = mmap.mmap(-1, mapped, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            else:
                self._map = mmap.mmap(-1, mapped)
        except (OSError, ValueError) as error:
            raise MemoryError(
                f"out of memory: {nbytes:,} bytes of host RAM for optimizer state were refused ({error}). "
                'Give a smaller ram_budget, or use tier="disk".'
            ) from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel built without huge pages: the same memory, slower
                self._map.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(self._map, dtype=np.uint8)
        start = -whole.ctypes.data % HUGE_PAGE
        self.bytes: np.ndarray = whole[start : start + nbytes]

    def close(self) -> None:
        """Give the memory back. Arrays that still look into it keep it alive until they are gone."""
        self.bytes = np.zeros(0, np.uint8)
        with contextlib.suppress(BufferError):  # a view is still held by someone; the mapping goes with the last one
            self._map.close()


def field(record: np.ndarray, at: int, numel: int, dtype: type) -> np.ndarray:
    """`numel` elements of `dtype` at byte `at` of a record, as a view."""
    return record[at : at + numel * np.dtype(dtype).itemsize].view(dtype)


def as_bytes(address: int, nbytes: int) -> np.ndarray:
    """A uint8 view of memory that somebody else owns and keeps alive meanwhile."""
    if nbytes == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), dtype=np.uint8)
