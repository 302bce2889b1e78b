"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path


def publish(files: Mapping[Path, bytes]) -> None:
    """Writes all `files` or none, in their order, new ones or in place of those that stand there. Each is written beside its
    place, flushed to the disk and moved there by one rename.

    A crash between two renames leaves the first ones new; a caller orders them so that this does no harm. Raises OSError as
    the system gives it, with the path that it is about; then all files are as they were.
    """
    before = {path: path.read_bytes() if path.exists() else None for path in files}
    staged: dict[Path, Path] = {}
    placed: list[Path] = []
    try:
        for path, data in files.items():
            beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
            staged[beside] = path
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for beside, path in staged.items():
            os.replace(beside, path)
            placed.append(path)
        for folder in {path.parent for path in files}:
            _sync(folder)
    except OSError:
        for path in staged:
            path.unlink(missing_ok=True)
        for path in placed:
            old = before[path]
            if old is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(old)
        raise


def _sync(folder: Path) -> None:
    """Puts the renames in `folder` on the disk, where the system lets a folder be opened for that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows, or a folder that may be written but not read: the renames are made, only later on the disk
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
