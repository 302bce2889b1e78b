"""The directories of one run: all locked; the first has the manifest, the others say of which run they are a part."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from offload_lab.storage.direct_io import StorageError, flush_folder
from offload_lab.storage.lock import DirectoryLock

STATE, MANIFEST, LOCK, PART = "offload.state", "offload.json", "offload.lock", "offload.part"


def _make(directory: Path) -> Path | None:
    """Make `directory` and return the uppermost folder that was missing, if any was; what was made is on the disk then."""
    missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        flush_folder(folder.parent)  # or, after a power cut, the state would be in a folder that nobody finds
    return missing[-1] if missing else None


class Folders:
    """Makes and locks `directories`. Raises DirectoryInUse where another optimizer works in one of them, StorageError where
    one cannot be used; none is locked then."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self.paths: list[Path] = []
        self._locks: list[DirectoryLock] = []
        self._made: list[Path] = []
        try:
            for directory in directories:
                self.add(directory)
        except BaseException:
            self.close(remove=False)
            raise

    def add(self, directory: Path) -> None:
        # Absolute: the process may change its directory later, the files stay where they are.
        path = Path(os.path.abspath(directory))
        try:
            made = _make(path) is not None
            lock = DirectoryLock(path / LOCK)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise StorageError(
                error.errno, f"directory={str(directory)!r} cannot be used: {error.strerror}; name a folder that can be written"
            ) from error
        if made:
            self._made.append(path)
        self.paths.append(path)
        self._locks.append(lock)

    @property
    def owner_pid(self) -> int:
        return self._locks[0].owner_pid

    def holding(self) -> list[Path]:
        """Those that hold files of an earlier run."""
        return [path for path in self.paths if (path / MANIFEST).exists() or (path / PART).exists()]

    def clear(self) -> None:
        """Delete our files, but not the locks. The manifest goes first: if this is interrupted, what is left is no state,
        rather than half of one."""
        manifest = self.paths[0] / MANIFEST
        if manifest.exists():
            manifest.unlink()
            flush_folder(self.paths[0])  # or a power cut could bring it back to a state file that is gone, or another's
        for path in self.paths:
            for name in (MANIFEST, PART, STATE):
                (path / name).unlink(missing_ok=True)

    def mark(self) -> str:
        """Say in every directory but the first which run it is a part of; returns the run's id."""
        run = secrets.token_hex(8)
        for number, path in enumerate(self.paths[1:], start=1):
            content = {"run": run, "part": number, "of": len(self.paths), "first": str(self.paths[0])}
            with open(path / PART, "w") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
        return run

    def check(self, run: str, recorded: Sequence[str]) -> None:
        """Make sure that these are the directories of `run`, in order. Where only the first was named, the others are those
        that were recorded. Raises StorageError saying which is missing or another's."""
        if len(self.paths) == 1:
            for other in recorded[1:]:
                if not Path(other).is_dir():
                    raise StorageError(
                        errno.ENOENT,
                        f"the run in {str(self.paths[0])!r} has a part of its state in {other!r}, which is not there. If that "
                        "disk is somewhere else now, name all its directories in the order in which they were given: "
                        "directory=[…]",
                    )
                self.add(Path(other))
        if len(self.paths) != max(1, len(recorded)):
            raise StorageError(
                errno.EINVAL,
                f"the run in {str(self.paths[0])!r} lies in {max(1, len(recorded))} directories ({', '.join(recorded)}), and "
                f"{len(self.paths)} were named",
            )
        for number, path in enumerate(self.paths[1:], start=1):
            try:
                part = json.loads((path / PART).read_text())
                found = (part["run"], part["part"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise StorageError(
                    errno.ENOENT, f"{str(path)!r} is no part of the run in {str(self.paths[0])!r}: its {PART} says {error}"
                ) from error
            if found != (run, number):
                raise StorageError(
                    errno.EINVAL,
                    f"{str(path)!r} should be part {number} of the run in {str(self.paths[0])!r}; it is part {part['part']} of "
                    + (f"a run that begins in {part.get('first')!r}" if part["run"] != run else "it: the order was changed"),
                )

    def close(self, remove: bool) -> None:
        """Unlock; with `remove` delete our files first, and the directories that we made and that are empty."""
        if self._locks and os.getpid() != self.owner_pid:
            for lock in self._locks:
                lock.forget()
            return
        if remove:
            self.clear()
            for path in self.paths:
                (path / LOCK).unlink(missing_ok=True)
        for lock in self._locks:
            lock.close()
        if remove:
            for path in self._made:
                with contextlib.suppress(OSError):  # somebody put files of their own there
                    path.rmdir()
