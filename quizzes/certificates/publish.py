"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path


def publish(files: Mapping[Path, bytes]) -> None:
    """Writes all `files` or none. Each is written beside its place, flushed to the disk and moved there by one rename.

    Raises OSError as the system gives it, with the path that it is about; nothing new is left then.
    """
    written: dict[Path, Path] = {}
    placed: list[Path] = []
    try:
        for path, data in files.items():
            beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
            written[beside] = path
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for beside, path in written.items():
            os.replace(beside, path)
            placed.append(path)
    except OSError:
        for path in (*written, *placed):
            path.unlink(missing_ok=True)
        raise
