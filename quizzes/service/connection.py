"""The file by which a notebook finds the service on its own machine: address and token, for its owner alone."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "OFFLOAD_QUIZ_CONNECTION"
"""The environment variable that names the file."""
_LARGEST = 10_000


@dataclass(frozen=True)
class Connection:
    url: str
    token: str


def write(path: Path, connection: Connection) -> None:
    """Writes the file in one step, mode 0600. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(connection), file)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def read(path: Path) -> Connection | None:
    """None where there is no such file, or none that can be read."""
    try:
        content = json.loads(path.read_bytes()[:_LARGEST])
        url, token = content["url"], content["token"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(url, str) or not isinstance(token, str) or not url.startswith(("http://", "https://")):
        return None
    return Connection(url, token)
