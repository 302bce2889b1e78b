"""State on disk in two generations: a step writes the other one, and one atomic rename makes it the newest."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from offload_lab.partition import Partition
from offload_lab.storage.direct_io import BlockFile, StorageError, require_disk_tier
from offload_lab.storage.lock import DirectoryLock
from offload_lab.storage.manifest import Manifest, load, publish

STATE, MANIFEST, LOCK = "offload.state", "offload.json", "offload.lock"


class StateFiles:
    """The files of one optimizer in `directory`: `offload.state` (two slots a partition), `offload.json` (the manifest)
    and `offload.lock`. Other files there are never touched.

    Raises DirectoryInUse when another optimizer works there, FileExistsError for `existing="refuse"` where an earlier run
    lies, StorageError when the disk refuses.
    """

    def __init__(self, directory: Path, *, existing: str, direct: str, keeps_weights: bool) -> None:
        require_disk_tier()
        # Absolute: the process may change its directory later, the files stay where they are.
        self.directory = Path(os.path.abspath(directory))
        made = not self.directory.exists()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = DirectoryLock(self.directory / LOCK)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise StorageError(
                error.errno, f"directory={str(directory)!r} cannot be used: {error.strerror}; name a folder that can be written"
            ) from error
        self._made_directory = made
        self._direct, self._keeps_weights = direct, keeps_weights
        self._file: BlockFile | None = None
        self._places: list[tuple[int, int]] = []  # partition -> (offset of slot 0, bytes of a record)
        self._length = 0
        self.slots: list[int | None] = []
        try:
            self.found = self._earlier(existing)
        except BaseException:
            self._lock.close()
            raise

    def _earlier(self, existing: str) -> Manifest | None:
        """The manifest to resume from, or None for a start from nothing (with the earlier files gone)."""
        path = self.directory / MANIFEST
        if existing == "resume":
            return load(path)
        if path.exists():
            try:
                held = load(path)
                told = f"step {held.step}, written by process {held.pid}" if held else "nothing"
            except StorageError as error:
                told = f"a manifest that cannot be used ({error.strerror})"
            if existing == "refuse":
                raise FileExistsError(
                    errno.EEXIST,
                    f'{str(self.directory)!r} holds an earlier run: {told}. Use existing="resume" to go on from it, '
                    'existing="replace" to give it up, or another directory',
                )
            warnings.warn(
                f"starting over in {str(self.directory)!r}: the earlier run there ({told}) is given up. "
                'existing="resume" would have gone on from it.',
                stacklevel=6,
            )
        # The manifest goes first: if this is interrupted, what is left is no state, rather than half of one.
        for name in (MANIFEST, STATE):
            (self.directory / name).unlink(missing_ok=True)
        return None

    @property
    def owner_pid(self) -> int:
        return self._lock.owner_pid

    @property
    def direct(self) -> bool:
        return self._file is not None and self._file.direct

    @property
    def state_path(self) -> Path:
        return self.directory / STATE

    def extend(self, partitions: Sequence[Partition]) -> None:
        """Reserve two slots for each of `partitions`, behind those that are there."""
        if self.found is not None and self._file is None and not self.state_path.exists():
            raise StorageError(errno.ENOENT, f"{str(self.directory / MANIFEST)!r} is there, but its {STATE} is not")
        places, length = [], self._length
        for part in partitions:
            nbytes = part.record_bytes(self._keeps_weights)
            places.append((length, nbytes))
            length += 2 * nbytes
        if self._file is None:
            held = self.state_path.stat().st_size if self.found is not None else length
            if held < length:
                # Before the file is made longer again: what is missing would then read as zeros, as if it were state.
                raise StorageError(
                    errno.EIO,
                    f"{str(self.state_path)!r} has {held:,} bytes where its manifest needs {length:,}: it "
                    "was cut short or belongs to another run. Restore both files from a copy, or start over with "
                    'existing="replace".',
                )
            self._file = BlockFile(self.state_path, length, self._direct)
        else:
            self._file.extend(length)
        self._places += places
        self._length = length
        self.slots += [None] * len(places)

    def read(self, partition: int, into: np.ndarray, start: int = 0) -> None:
        """Fill `into` from byte `start` of a partition's newest record."""
        slot = self.slots[partition]
        if slot is None or self._file is None:
            raise StorageError(errno.EIO, f"partition {partition} has never been written to {str(self.state_path)!r}")
        offset, nbytes = self._places[partition]
        self._file.read(into, offset + slot * nbytes + start)

    def write(self, partition: int, data: np.ndarray, start: int = 0) -> None:
        """Write `data` at byte `start` of the slot that does not hold a partition's newest record."""
        if self._file is None:
            raise StorageError(errno.EIO, f"{str(self.state_path)!r} is closed")
        offset, nbytes = self._places[partition]
        self._file.write(data, offset + self._other(partition) * nbytes + start)

    def _other(self, partition: int) -> int:
        return 1 if self.slots[partition] == 0 else 0

    def turn(self, partition: int) -> None:
        """What was written to `partition` counts from now on, with nothing published."""
        self.slots[partition] = self._other(partition)

    def turned(self, written: Sequence[int]) -> list[int | None]:
        """The slots as they are once what was written to partitions `written` counts."""
        slots = list(self.slots)
        for partition in written:
            slots[partition] = self._other(partition)
        return slots

    def publish(self, manifest: Manifest) -> None:
        """Make `manifest` and the slots that it names the newest, durably."""
        if self._file is not None:
            self._file.sync()  # before the rename: the manifest must never name a state that is not on disk
        publish(self.directory / MANIFEST, manifest)
        self.slots = list(manifest.slots)

    def allocated(self) -> int:
        """Bytes that the state takes on the disk."""
        return self._file.allocated() if self._file is not None else 0

    def close(self, remove: bool) -> None:
        """Let go of the directory; with `remove`, delete our files first (and the directory if we made it and it is empty)."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if os.getpid() != self._lock.owner_pid:
            self._lock.forget()
            return
        if remove:
            for name in (MANIFEST, STATE, LOCK):
                (self.directory / name).unlink(missing_ok=True)
        self._lock.close()
        if remove and self._made_directory:
            with contextlib.suppress(OSError):  # somebody put files of their own there
                self.directory.rmdir()
