"""The file in which a learner's receipts lie beside the notebook: `receipts.txt`, a receipt a line, handed in with it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

RECEIPTS = "receipts.txt"


def append(path: Path, receipts: Iterable[str]) -> int:
    """Add those that are not in the file yet; return how many these were. Raises OSError where it cannot be read or written.

    Two notebooks that write at once lose nothing: each line goes out in one write at the end of the file.
    """
    try:
        held = set(path.read_text(encoding="utf-8", errors="replace").split())
    except FileNotFoundError:
        held = set()
    new = [receipt for receipt in dict.fromkeys(receipts) if receipt not in held]
    if not new:
        return 0
    # Begun by a line end as well: the file may have been edited, and its last line then has none.
    data = b"".join(b"\n" + receipt.encode() + b"\n" for receipt in new)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return len(new)
