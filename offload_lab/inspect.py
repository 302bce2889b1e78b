"""What a directory of optimizer state holds, and clearing away what dead runs left."""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path

import numpy as np

from offload_lab.partition import BLOCK
from offload_lab.saving import MARK
from offload_lab.storage.checksum import checksum
from offload_lab.storage.direct_io import StorageError
from offload_lab.storage.folders import LOCK, MANIFEST, PART, STATE
from offload_lab.storage.lock import DirectoryLock, holder
from offload_lab.storage.manifest import Manifest, load
from offload_lab.storage.places import Layout

OURS = (MANIFEST, PART, STATE, Path(MANIFEST).with_suffix(".draft").name, "offload.probe", LOCK)


@dataclass
class Inspection:
    """A directory as `inspect` found it. Sizes are bytes on the disk."""

    directory: str
    in_use_by: str | None
    """Who holds the lock, or None."""
    files: dict[str, int] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    """All directories of the run, where there are several."""
    damage: list[str] = field(default_factory=list)
    format: int | None = None
    step: int | None = None
    previous_step: int | None = None
    written_by: int | None = None
    parameters: int = 0
    elements: int = 0
    partitions: int = 0
    dtypes: dict[str, int] = field(default_factory=dict)
    """Elements of each dtype."""
    chunks_checked: int = 0

    @property
    def ok(self) -> bool:
        return not self.damage

    def as_json(self) -> str:
        return json.dumps(asdict(self) | {"ok": self.ok})

    def text(self) -> str:
        """For a person, a line for each fact."""
        lines = [f"{self.directory}: " + (f"in use by {self.in_use_by}" if self.in_use_by else "not in use")]
        if self.step is None:
            lines.append("holds no published step")
        else:
            before = "none" if self.previous_step is None else f"step {self.previous_step}, until the next step begins"
            lines.append(f"step {self.step} (format {self.format}, written by process {self.written_by}); before it: {before}")
            kinds = ", ".join(f"{count:,} {dtype}" for dtype, count in self.dtypes.items())
            lines.append(
                f"{self.parameters:,} parameters, {self.elements:,} elements ({kinds}) in {self.partitions:,} partitions"
            )
        if self.directories:
            lines.append(f"striped over {', '.join(self.directories)}")
        lines += [f"{name}: {nbytes:,} bytes" for name, nbytes in self.files.items()]
        if self.chunks_checked:
            lines.append(f"{self.chunks_checked:,} chunks read and compared with their checksums")
        lines += [f"DAMAGED: {what}" for what in self.damage] or ["no damage was found"]
        return "\n".join(lines)


def inspect(directory: Path, verify: bool = False) -> Inspection:
    """Look at `directory` without changing anything; with `verify`, read all of the newest step and check it.

    Raises FileNotFoundError where there is no such directory.
    """
    if not directory.is_dir():
        raise FileNotFoundError(f"there is no directory {str(directory)!r}")
    found = Inspection(str(directory), holder(directory / LOCK))
    for name in OURS:
        if (directory / name).exists():
            found.files[name] = (directory / name).stat().st_blocks * 512
    try:
        manifest = load(directory / MANIFEST)
        if manifest is not None:
            _describe(found, manifest, directory)
            if verify:
                _verify(found, manifest, directory)
    except StorageError as error:
        found.damage.append(error.strerror or str(error))
    return found


def _describe(found: Inspection, manifest: Manifest, directory: Path) -> None:
    found.format, found.step, found.written_by = manifest.format, manifest.step, manifest.pid
    found.previous_step = None if manifest.previous is None else manifest.previous.step
    found.parameters, found.partitions = len(manifest.parameters), len(manifest.partitions)
    for parameter in manifest.parameters:
        numel = prod(parameter["shape"])
        found.elements += numel
        found.dtypes[parameter["dtype"]] = found.dtypes.get(parameter["dtype"], 0) + numel
    found.directories = manifest.directories
    for path in _state_files(manifest, directory):
        if not path.exists():
            found.damage.append(f"{str(path)!r} is missing")


def _state_files(manifest: Manifest, directory: Path) -> list[Path]:
    return [directory / STATE] + [Path(other) / STATE for other in manifest.directories[1:]]


def _verify(found: Inspection, manifest: Manifest, directory: Path) -> None:
    names = [f"parameter {number}" for number in range(len(manifest.parameters))]
    partitions = manifest.recorded(manifest.parameters, names, str(directory))
    layout, newest = Layout(manifest.shares, 2), manifest.newest
    paths = _state_files(manifest, directory)
    if not all(path.exists() for path in paths):
        return
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb")) for path in paths]
        for part in partitions:
            place = layout.place(part, True, manifest.chunk)
            slot, sums = newest.slots[part.index], newest.sums[part.index]
            if slot is None or sums is None:
                continue
            for (at, length), expected in zip(place.chunks, sums, strict=True):
                (span,) = place.spans(slot, at, length)
                files[span.file].seek(span.offset)
                data = files[span.file].read(length)
                found.chunks_checked += 1
                if len(data) != length or checksum(np.frombuffer(data, np.uint8)) != expected:
                    held = ", ".join(str(number) for number in dict.fromkeys(span.parameter for span in part.spans))
                    found.damage.append(
                        f"partition {part.index} (of parameters {held}): {length:,} bytes at byte {span.offset:,}"
                        + (f" of {str(paths[span.file])!r}" if len(paths) > 1 else "")
                    )


def leftovers(directory: Path) -> dict[Path, int]:
    """Our files in `directory`, in the directories within it, and in others over which these are striped, of runs that
    hold no lock any more, and their bytes on disk.

    Other files are never among them. Raises FileNotFoundError where there is no such directory.
    """
    if not directory.is_dir():
        raise FileNotFoundError(f"there is no directory {str(directory)!r}")
    result: dict[Path, int] = {}
    folders = [directory, *sorted(path for path in directory.rglob("*") if path.is_dir())]
    for folder in list(folders):
        with suppress(StorageError):  # a manifest that cannot be read names no others
            manifest = load(folder / MANIFEST)
            others = manifest.directories[1:] if manifest is not None else []
            folders += [Path(other) for other in others if Path(other).is_dir() and Path(other) not in folders]
    for folder in folders:
        saving = MARK in folder.name and folder.name.startswith(".")  # all that is in there is ours
        mine = list(folder.iterdir()) if saving else [folder / name for name in OURS if (folder / name).is_file()]
        if mine and holder(folder / LOCK) is None:
            result |= {path: max(path.stat().st_blocks * 512, BLOCK if path.stat().st_size else 0) for path in mine}
    return result


def clean(directory: Path) -> tuple[int, int]:
    """Delete `leftovers`; each directory's manifest first, so that what is left by an interrupt is no state, rather than half
    of one. Returns (files, bytes) that are gone. Raises DirectoryInUse where a run has begun there meanwhile."""
    found = leftovers(directory)
    for folder in dict.fromkeys(path.parent for path in found):
        lock = DirectoryLock(folder / LOCK)
        order = {name: place for place, name in enumerate(OURS)}
        for path in sorted((p for p in found if p.parent == folder), key=lambda path: order.get(path.name, -1)):
            path.unlink(missing_ok=True)
        (folder / LOCK).unlink(missing_ok=True)
        lock.close()
        if MARK in folder.name:
            folder.rmdir()
    return len(found), sum(found.values())
