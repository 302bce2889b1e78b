"""A checkpoint file in torch's format that never needs the whole state in RAM, and the way back.

The file is what `torch.save(optimizer.state_dict(), path)` would write. While it is written its tensors are files of their own,
mapped into memory beside it, which the system can write out and drop whenever memory is short; while it is read,
`torch.load(mmap=True)` does the same. What is held besides is one partition.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from offload_lab.storage.direct_io import StorageError, describe
from offload_lab.storage.folders import LOCK
from offload_lab.storage.lock import DirectoryLock, holder


def reserve(path: Path, nbytes: int) -> None:
    """Make the file `path` with `nbytes` bytes that the disk has set aside. Raises StorageError where it has no room.

    A file with a hole would be made even then, and the first write through its mapping would end the process (SIGBUS).
    """
    if not hasattr(os, "posix_fallocate"):
        return
    with open(path, "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, nbytes)
        except OSError as error:
            text = describe(path, "reserving", 0, nbytes, error.strerror or str(error))
            raise StorageError(error.errno, f"{text}. Saving needs twice the size of the file for a while.") from error


MARK = ".saving-"


def abandoned(folder: Path, name: str = "*") -> list[Path]:
    """Folders of saves of `name` in `folder` whose process is gone."""
    return [path for path in folder.glob(f".{name}{MARK}*") if path.is_dir() and holder(path / LOCK) is None]


class Scratch:
    """A folder beside `path` with tensors in files and the draft of what is to stand at `path`; gone after `with`. What a save
    of the same path left that was killed goes first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for left in abandoned(path.parent, glob.escape(path.name)):
            shutil.rmtree(left, ignore_errors=True)
        self._folder = Path(tempfile.mkdtemp(prefix=f".{path.name}{MARK}", dir=path.parent))
        try:
            self._lock = DirectoryLock(self._folder / LOCK) if sys.platform != "win32" else None
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._count = 0

    def zeros(self, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        """A tensor of zeros of `shape` and `dtype`. Raises StorageError where the disk has no room for it."""
        self._count += 1
        numel = shape.numel()
        if not numel:
            return torch.zeros(shape, dtype=dtype)
        path = self._folder / str(self._count)
        reserve(path, numel * dtype.itemsize)
        return torch.from_file(str(path), shared=True, size=numel, dtype=dtype).view(shape)

    def write(self, content: Any) -> None:
        """`torch.save`, replacing what was at `path` in one step. Raises StorageError where it cannot be written; what was
        there then stands."""
        draft = self._folder / "draft"
        try:
            torch.save(content, draft)
        except RuntimeError as error:  # torch's writer says where it was in the file, not which file, nor that a disk is full
            done = draft.stat().st_size if draft.exists() else 0
            free = f"{shutil.disk_usage(self.path.parent).free:,} bytes are free there"
            text = f"saving {str(self.path)!r} failed after {done:,} bytes: {str(error).splitlines()[0]}; {free}"
            raise StorageError(errno.EIO, text) from error
        _sync(draft)
        os.replace(draft, self.path)
        _sync(self.path.parent)  # the rename itself is on disk only when the directory is

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> Any:
    """`torch.load` of tensors that stay in the file until they are looked at."""
    return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
