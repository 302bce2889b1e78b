"""A checkpoint file in torch's format that never needs the whole state in RAM, and the way back.

The file is what `torch.save(optimizer.state_dict(), path)` would write. While it is written its tensors are files of their own,
mapped into memory beside it, which the system can write out and drop whenever memory is short; while it is read,
`torch.load(mmap=True)` does the same. What is held besides is one partition.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch


class Scratch:
    """Tensors in files of a folder that is gone after `with`."""

    def __init__(self, beside: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", dir=beside.parent))
        self._count = 0

    def zeros(self, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        """A tensor of zeros (a file with a hole) of `shape` and `dtype`."""
        self._count += 1
        numel = shape.numel()
        if not numel:
            return torch.zeros(shape, dtype=dtype)
        return torch.from_file(str(self._folder / str(self._count)), shared=True, size=numel, dtype=dtype).view(shape)

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; what is written there takes the place of `path` in one step, or, after an error, nothing does."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        yield draft
        descriptor = os.open(draft, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write(content: Any, path: Path) -> None:
    """`torch.save`, replacing what was at `path` in one step."""
    with replacing(path) as draft:
        torch.save(content, draft)


def read(path: Path) -> Any:
    """`torch.load` of tensors that stay in the file until they are looked at."""
    return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
