"""Figures that were measured, kept in the user's cache folder: one file for each machine and directory.

They count no longer when the machine is another one (`Identity`, any field), when they are older than 30 days, when they were
measured in less time than is asked for now, or by another edition of the measuring.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from offload_lab.hardware import Hardware

EDITION = 2
"""Of the measuring: to be raised when figures of before are not to be compared with those of now."""
LIFE = timedelta(days=30)  # disks wear and fill, drivers are updated


@dataclass(frozen=True)
class Identity:
    """What figures depend on. Free memory and free disk are not in it: they are read anew each time."""

    node: str
    processor: str
    cores: int
    threads: int
    ram: int
    kernel: str
    torch: str
    accelerators: str
    directory: str
    filesystem: str
    """Kind, device and mount point of what the directory is on."""


def user_cache() -> Path:
    """The folder for this project's caches: XDG_CACHE_HOME, or what the system has for that."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):  # the standard wants a relative one ignored
        return Path(given) / "offload-lab"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "offload-lab"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "offload-lab" / "Cache"
    return Path.home() / ".cache" / "offload-lab"


def place(identity: Identity, folder: Path) -> Path:
    """The file for this machine's name and directory: what else has changed can then be told."""
    key = sha256(f"{identity.node}\0{identity.directory}".encode()).hexdigest()[:16]
    return folder / "hardware" / f"{key}.json"


def load(identity: Identity, seconds: float, folder: Path, now: datetime) -> tuple[Hardware | None, str]:
    """What is kept and still counts, and else why nothing does ("" where nothing was kept)."""
    path = place(identity, folder)
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return _judged(kept, identity, seconds, now)
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError, TypeError, KeyError) as error:
        return None, f"{str(path)!r} cannot be used ({error})"


def _judged(kept: Mapping[str, Any], identity: Identity, seconds: float, now: datetime) -> tuple[Hardware | None, str]:
    if kept["edition"] != EDITION:
        return None, "another edition of this program measured it"
    mine = asdict(identity)
    changed = [
        f"{name} was {kept['identity'].get(name)!r}, is {mine[name]!r}"
        for name in mine
        if kept["identity"].get(name) != mine[name]
    ]
    if changed:
        return None, f"the machine is another one: {'; '.join(changed)}"
    taken = datetime.fromisoformat(kept["taken"])
    if not timedelta(0) <= now - taken <= LIFE:
        return None, f"it was measured on {kept['taken'][:10]}, more than {LIFE.days} days from now"
    if kept["seconds"] < seconds:
        return None, f"it was measured in {kept['seconds']:g} s, and {seconds:g} s are asked for"
    return Hardware.from_dict(kept["hardware"]), ""


def store(hardware: Hardware, identity: Identity, seconds: float, folder: Path, now: datetime) -> Path:
    """Keep `hardware`; whole or not at all. Raises OSError where the folder cannot be written."""
    path = place(identity, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {
        "edition": EDITION,
        "identity": asdict(identity),
        "seconds": seconds,
        "taken": now.isoformat(),
        "hardware": hardware.to_dict(),
    }
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(kept, file, indent=2)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def utc_now() -> datetime:
    return datetime.now(UTC)
