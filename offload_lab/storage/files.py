"""State on disk in two generations: a step writes the other one, and one atomic rename makes it the newest."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from offload_lab.partition import Partition, chunks
from offload_lab.storage.checksum import checksum
from offload_lab.storage.direct_io import BlockFile, StorageError, require_disk_tier
from offload_lab.storage.lock import DirectoryLock
from offload_lab.storage.manifest import Generation, Manifest, encoded, encoded_layout, load, publish

STATE, MANIFEST, LOCK = "offload.state", "offload.json", "offload.lock"


def holds_a_run(directory: str | os.PathLike[str]) -> bool:
    """Whether `directory` has a manifest."""
    return (Path(directory) / MANIFEST).exists()


@dataclass(frozen=True)
class _Place:
    """Where a partition's two slots lie, and the chunks of a record in each."""

    offset: int
    nbytes: int
    chunks: list[tuple[int, int]]
    starts: list[int]

    def covered(self, start: int, nbytes: int) -> list[tuple[int, int, int]]:
        """Number, offset and length of the chunks within `nbytes` from `start`."""
        first = bisect_left(self.starts, start)
        last = bisect_left(self.starts, start + nbytes)
        return [(number, *self.chunks[number]) for number in range(first, last)]


class StateFiles:
    """The files of one optimizer in `directory`: `offload.state` (two slots a partition), `offload.json` (the manifest)
    and `offload.lock`. Other files there are never touched.

    Raises DirectoryInUse when another optimizer works there, FileExistsError for `existing="refuse"` where an earlier run
    lies, StorageError when the disk refuses.
    """

    def __init__(self, directory: Path, *, existing: str, direct: str, keeps_weights: bool, chunk: int) -> None:
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
        self._places: list[_Place] = []
        self._length = 0
        self._chunk = chunk
        self.slots: list[int | None] = []
        """The slot with the newest state of each partition, published or not."""
        self._sums: list[list[int] | None] = []
        self._fresh: dict[int, list[int]] = {}  # what has been written to the other slot and does not count yet
        self._layout: tuple[int, str] | None = None
        self.whose: Callable[[int], str] = lambda partition: ""
        """What to say of a partition beside its number, in messages."""
        self.published: Generation | None = None
        self.previous: Generation | None = None
        """The generation before the published one, until something is written over it."""
        try:
            self.found = self._earlier(existing)
            if self.found is not None:
                self._chunk = self.found.chunk
        except BaseException:
            self._lock.close()
            raise

    def _earlier(self, existing: str) -> Manifest | None:
        """The manifest to resume from, or None for a start from nothing (with the earlier files gone)."""
        path = self.directory / MANIFEST
        if existing in ("resume", "previous"):
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
            cut = chunks(part, self._keeps_weights, self._chunk)
            places.append(_Place(length, part.record_bytes(self._keeps_weights), cut, [at for at, _ in cut]))
            # Scratch is written in place: nothing has to be whole at any moment.
            length += (2 if self._keeps_weights else 1) * places[-1].nbytes
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
        self._sums += [None] * len(places)

    def chunks(self, partition: int, nbytes: int) -> list[tuple[int, int]]:
        """The first `nbytes` of a partition's record in the pieces (offset, length) that have a checksum each."""
        return [(at, length) for at, length in self._places[partition].chunks if at + length <= nbytes]

    def take_up(self, generation: Generation) -> None:
        """Let `generation`, which is on disk, be the published one."""
        missing = len(self.slots) - len(generation.slots)  # partitions that came after it
        self.slots = list(generation.slots) + [None] * missing
        self._sums = list(generation.sums) + [None] * missing
        self.published = generation
        self._fresh.clear()

    def read(self, partition: int, into: np.ndarray, start: int = 0, generation: Generation | None = None) -> None:
        """Fill `into`, whole chunks from byte `start`, from a partition's newest record, or from that of `generation`.

        Raises StorageError naming the partition where a chunk is not what was written.
        """
        slots, sums = (self.slots, self._sums) if generation is None else (generation.slots, generation.sums)
        slot, held = slots[partition], sums[partition]
        if slot is None or held is None or self._file is None:
            raise StorageError(errno.EIO, f"partition {partition} has never been written to {str(self.state_path)!r}")
        place = self._places[partition]
        self._file.read(into, place.offset + slot * place.nbytes + start)
        for number, at, length in place.covered(start, into.nbytes):
            if checksum(into[at - start : at - start + length]) != held[number]:
                where = place.offset + slot * place.nbytes + at
                raise StorageError(
                    errno.EIO,
                    f"partition {partition} was damaged: {length:,} bytes at byte {where:,} of {str(self.state_path)!r} are "
                    f"not what was written there{self.whose(partition)}. Restore both files from a copy, or start over and "
                    "load a checkpoint.",
                )

    def write(self, partition: int, data: np.ndarray, start: int = 0) -> None:
        """Write `data`, whole chunks from byte `start`, to the slot of a partition that is not published."""
        if self._file is None:
            raise StorageError(errno.EIO, f"{str(self.state_path)!r} is closed")
        if self.previous is not None:
            self.previous = None  # it is being written over
        place = self._places[partition]
        fresh = self._fresh.get(partition)
        if fresh is None:  # two threads may come here: both then get the one that is kept
            fresh = self._fresh.setdefault(partition, list(self._sums[partition] or [0] * len(place.chunks)))
        for number, at, length in place.covered(start, data.nbytes):
            fresh[number] = checksum(data[at - start : at - start + length])
        self._file.write(data, place.offset + self._other(partition) * place.nbytes + start)

    def _other(self, partition: int) -> int:
        published = self.published.slots if self.published is not None else []
        return 1 if partition < len(published) and published[partition] == 0 else 0

    def turn(self, partitions: Sequence[int]) -> None:
        """What was written to `partitions` is their newest state, published or not."""
        for partition in partitions:
            self.slots[partition] = self._other(partition)
            self._sums[partition] = self._fresh.pop(partition)

    def publish(
        self, step: int, parameter_steps: list[int], groups: list[dict], described: Callable[[], tuple[list, list]]
    ) -> None:
        """Make the newest state of all partitions, as step `step`, what a resume finds; durably.

        `described()` gives parameters and partitions as a manifest has them; it is called when there are new partitions.
        """
        if self._file is not None:
            self._file.sync()  # before the rename: the manifest must never name a state that is not on disk
        generation = Generation(step, list(self.slots), list(self._sums), parameter_steps, groups)
        if self._layout is None or self._layout[0] != len(self._places):
            self._layout = (len(self._places), encoded_layout(*described()))
        manifest = Manifest(generation, self.published, [], [], self._chunk)
        publish(self.directory / MANIFEST, encoded(manifest, self._layout[1]), step)
        self.previous, self.published = self.published, generation

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
