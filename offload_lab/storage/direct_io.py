"""Reading and writing whole blocks of one file, past the page cache where the file system can, counting every byte."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

import numpy as np

from offload_lab.partition import BLOCK
from offload_lab.storage.memory import Slab


class StorageError(OSError):
    """Reading or writing optimizer state failed. The message says what, where, how much, and what to do."""


def describe(path: Path, doing: str, offset: int, nbytes: int, reason: str) -> str:
    """One sentence for a failed transfer of `nbytes` at byte `offset` of `path`."""
    try:
        free = f"{shutil.disk_usage(path.parent).free:,} bytes are free there"
    except OSError:
        free = "free space there could not be read"
    return f"{doing} {nbytes:,} bytes at byte {offset:,} of {str(path)!r} failed: {reason}; {free}"


def flush_folder(folder: Path) -> None:
    """Return when the names in `folder` (made, replaced, taken away) are on the disk, not in a cache. Raises StorageError."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(error.errno, f"flushing the folder {str(folder)!r} failed: {error.strerror}") from error


def require_disk_tier() -> None:
    """Raises StorageError where the disk tier can't work: it needs `os.preadv`, `os.pwritev` and file locks."""
    if not hasattr(os, "preadv"):
        raise StorageError(
            errno.ENOSYS, f'the disk tier needs os.preadv and os.pwritev, which {sys.platform} does not have; use tier="ram"'
        )


class BlockFile:
    """A file of `nbytes` bytes, allocated in full at once, read and written in multiples of 4096 bytes.

    `direct` is "auto" (try O_DIRECT, fall back to buffered I/O) or "off"; `.direct` says which it became.
    Several threads may transfer at the same time. Raises StorageError, whose `errno` is that of the cause.
    """

    def __init__(self, path: Path, nbytes: int, direct: str = "auto") -> None:
        self.path, self.nbytes = path, 0
        self.direct = False
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            self.extend(nbytes)
            if direct == "auto":
                self._try_direct()
        except BaseException:
            self.close()
            raise

    def extend(self, nbytes: int) -> None:
        """Make the file `nbytes` long and reserve the blocks now, so that a full disk shows here and not in a step."""
        length = max(nbytes, BLOCK)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._fd, 0, length)
            elif os.fstat(self._fd).st_size < length:
                os.ftruncate(self._fd, length)
        except OSError as error:
            text = describe(self.path, "reserving", 0, length, error.strerror or str(error))
            raise StorageError(error.errno, text + ". Free space, or choose another directory=.") from error
        self.nbytes = length

    def _try_direct(self) -> None:
        """Reopen with O_DIRECT and keep it if one block can be read: some file systems accept the flag and then refuse."""
        if not hasattr(os, "O_DIRECT"):
            return
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            return
        probe = Slab(BLOCK)
        try:
            works = os.preadv(fd, [probe.bytes], 0) == BLOCK
        except OSError:
            works = False
        finally:
            probe.close()
        if works:
            os.close(self._fd)
            self._fd, self.direct = fd, True
        else:
            os.close(fd)

    def read(self, into: np.ndarray, offset: int) -> None:
        """Fill `into` (uint8, block-aligned address and length) from byte `offset`."""
        self._transfer(os.preadv, "reading", into, offset)

    def write(self, data: np.ndarray, offset: int) -> None:
        """Write all of `data` (uint8, block-aligned address and length) at byte `offset`."""
        self._transfer(os.pwritev, "writing", data, offset)

    def _transfer(self, call, doing: str, data: np.ndarray, offset: int) -> None:
        done, total = 0, data.nbytes
        while done < total:
            try:
                moved = call(self._fd, [data[done:]], offset + done)
            except OSError as error:
                text = describe(self.path, doing, offset + done, total - done, error.strerror or str(error))
                raise StorageError(error.errno, text) from error
            # A short count is legal: go on from the last whole block, which is where direct I/O can go on from.
            moved = total - done if moved >= total - done else moved - moved % BLOCK
            if moved <= 0:
                reason = f"only {done:,} of {total:,} bytes were moved, then no whole block more"
                raise StorageError(errno.EIO, describe(self.path, doing, offset + done, total - done, reason))
            done += moved

    def sync(self) -> None:
        """Return when everything written is on the disk, not merely in a cache."""
        try:
            getattr(os, "fdatasync", os.fsync)(self._fd)
        except OSError as error:
            text = describe(self.path, "flushing", 0, self.nbytes, error.strerror or str(error))
            raise StorageError(error.errno, text) from error

    def drop_cached(self) -> None:
        """Ask the system to forget what its page cache holds of the file. What is not flushed stays, and it may refuse."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def allocated(self) -> int:
        """Bytes that the file takes on the disk."""
        return os.fstat(self._fd).st_blocks * 512

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
