"""State on disk in two generations: a step writes the other one, and one atomic rename makes it the newest."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from offload_lab.partition import Partition
from offload_lab.storage.checksum import checksum
from offload_lab.storage.direct_io import BlockFile, StorageError, flush_folder, require_disk_tier
from offload_lab.storage.folders import LOCK, MANIFEST, STATE, Folders
from offload_lab.storage.manifest import Generation, Manifest, encoded, encoded_layout, load, publish
from offload_lab.storage.places import Layout, Place, shares_of
from offload_lab.storage.speed import mixed_speed

__all__ = ["LOCK", "MANIFEST", "STATE", "StateFiles", "holds_a_run"]


def holds_a_run(directory: str | os.PathLike[str]) -> bool:
    """Whether `directory` has a manifest."""
    return (Path(directory) / MANIFEST).exists()


class StateFiles:
    """The files of one optimizer: `offload.state` (two slots a partition) in each of `directories`, and in the first of them
    `offload.json` (the manifest). Other files there are never touched.

    Over several directories chunks are striped in proportion to the speed that is measured when a run begins. Raises
    DirectoryInUse when another optimizer works there, FileExistsError for `existing="refuse"` where an earlier run lies,
    StorageError when the disk refuses.
    """

    def __init__(self, directories: Sequence[Path], *, existing: str, direct: str, keeps_weights: bool, chunk: int) -> None:
        require_disk_tier()
        self._folders = Folders(directories)
        self._direct, self._keeps_weights = direct, keeps_weights
        self._files: list[BlockFile] = []
        self._places: list[Place] = []
        self._chunk = chunk
        self.slots: list[int | None] = []
        """The slot with the newest state of each partition, published or not."""
        self._sums: list[list[int] | None] = []
        self._fresh: dict[int, list[int]] = {}  # what has been written to the other slot and does not count yet
        self._described: tuple[int, str] | None = None
        self.whose: Callable[[int], str] = lambda partition: ""
        """What to say of a partition beside its number, in messages."""
        self.published: Generation | None = None
        self.previous: Generation | None = None
        """The generation before the published one, until something is written over it."""
        self.speeds: list[float] = []
        """Bytes a second of each directory, where there are several and the run began here."""
        self.shares, self._run = [1], ""
        try:
            self.found = self._earlier(existing)
            if self.found is not None:
                self._folders.check(self.found.run, self.found.directories)
                self._chunk, self.shares, self._run = self.found.chunk, self.found.shares, self.found.run
            elif len(self._folders.paths) > 1:
                self.speeds = [mixed_speed(path, direct) for path in self._folders.paths]
                self.shares = shares_of(self.speeds)
                self._run = self._folders.mark()
        except BaseException:
            self._folders.close(remove=False)
            raise
        # Scratch is written in place: nothing has to be whole at any moment.
        self._layout = Layout(self.shares, 2 if keeps_weights else 1)

    def _earlier(self, existing: str) -> Manifest | None:
        """The manifest to resume from, or None for a start from nothing (with the earlier files gone)."""
        path = self.directory / MANIFEST
        if existing in ("resume", "previous"):
            return load(path)
        holding = self._folders.holding()
        if holding:
            try:
                held = load(path)
                told = f"step {held.step}, written by process {held.pid}" if held else "a part of a run"
            except StorageError as error:
                told = f"a manifest that cannot be used ({error.strerror})"
            if existing == "refuse":
                raise FileExistsError(
                    errno.EEXIST,
                    f'{str(holding[0])!r} holds an earlier run: {told}. Use existing="resume" to go on from it, '
                    'existing="replace" to give it up, or another directory',
                )
            warnings.warn(
                f"starting over in {str(holding[0])!r}: the earlier run there ({told}) is given up. "
                'existing="resume" would have gone on from it.',
                stacklevel=6,
            )
        self._folders.clear()
        return None

    @property
    def directory(self) -> Path:
        """The one with the manifest."""
        return self._folders.paths[0]

    @property
    def directories(self) -> list[Path]:
        return list(self._folders.paths)

    @property
    def owner_pid(self) -> int:
        return self._folders.owner_pid

    @property
    def direct(self) -> bool:
        return bool(self._files) and all(file.direct for file in self._files)

    @property
    def paths(self) -> list[Path]:
        """The files with the state, one a directory."""
        return [directory / STATE for directory in self._folders.paths]

    def where(self, partition: int, slot: int, start: int = 0) -> tuple[Path, int]:
        """The file, and the byte in it, at which byte `start` of a partition's record lies in `slot`."""
        place = self._places[partition]
        number = place.covered(0, start + 1)[-1]
        file, within = place.homes[number]
        return self.paths[file], place.offsets[file] + slot * place.strides[file] + within + start - place.starts[number]

    def extend(self, partitions: Sequence[Partition]) -> None:
        """Reserve two slots for each of `partitions`, behind those that are there."""
        if self.found is not None and not self._files:
            for path in self.paths:
                if not path.exists():
                    raise StorageError(errno.ENOENT, f"{str(self.directory / MANIFEST)!r} is there, but {str(path)!r} is not")
        before = self._layout.copy()
        try:
            places = [self._layout.place(part, self._keeps_weights, self._chunk) for part in partitions]
            if self._files:
                for file, length in zip(self._files, self._layout.lengths, strict=True):
                    file.extend(length)
            else:
                self._open()
        except BaseException:
            self._layout = before
            raise
        self._places += places
        self.slots += [None] * len(places)
        self._sums += [None] * len(places)

    def _open(self) -> None:
        lengths = list(zip(self.paths, self._layout.lengths, strict=True))
        for path, length in lengths if self.found is not None else ():
            held = path.stat().st_size
            if held < length:
                # Before the file is made longer again: what is missing would then read as zeros, as if it were state.
                raise StorageError(
                    errno.EIO,
                    f"{str(path)!r} has {held:,} bytes where its manifest needs {length:,}: it "
                    "was cut short or belongs to another run. Restore both files from a copy, or start over with "
                    'existing="replace".',
                )
        try:
            for path, length in lengths:
                self._files.append(BlockFile(path, length, self._direct))
            if self.found is None and self._keeps_weights:
                for folder in self._folders.paths:
                    flush_folder(
                        folder
                    )  # publishing flushes the manifest's alone, and a power cut could take new names of others
        except BaseException:
            for file in self._files:
                file.close()
            self._files = []
            raise

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
        if slot is None or held is None or not self._files:
            raise StorageError(errno.EIO, f"partition {partition} has never been written to {str(self.paths[0])!r}")
        place = self._places[partition]
        for span in place.spans(slot, start, into.nbytes):
            self._files[span.file].read(into[span.start - start : span.start - start + span.length], span.offset)
        for number in place.covered(start, into.nbytes):
            at, length = place.chunks[number]
            if checksum(into[at - start : at - start + length]) != held[number]:
                path, byte = self.where(partition, slot, at)
                raise StorageError(
                    errno.EIO,
                    f"partition {partition} was damaged: {length:,} bytes at byte {byte:,} of {str(path)!r} are "
                    f"not what was written there{self.whose(partition)}. Restore both files from a copy, or start over and "
                    "load a checkpoint.",
                )

    def write(self, partition: int, data: np.ndarray, start: int = 0) -> None:
        """Write `data`, whole chunks from byte `start`, to the slot of a partition that is not published."""
        if not self._files:
            raise StorageError(errno.EIO, f"{str(self.paths[0])!r} is closed")
        if self.previous is not None:
            self.previous = None  # it is being written over
        place = self._places[partition]
        fresh = self._fresh.get(partition)
        if fresh is None:  # two threads may come here: both then get the one that is kept
            fresh = self._fresh.setdefault(partition, list(self._sums[partition] or [0] * len(place.chunks)))
        for number in place.covered(start, data.nbytes):
            at, length = place.chunks[number]
            fresh[number] = checksum(data[at - start : at - start + length])
        for span in place.spans(self._other(partition), start, data.nbytes):
            self._files[span.file].write(data[span.start - start : span.start - start + span.length], span.offset)

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
        for file in self._files:
            file.sync()  # before the rename: the manifest must never name a state that is not on disk
        generation = Generation(step, list(self.slots), list(self._sums), parameter_steps, groups)
        if self._described is None or self._described[0] != len(self._places):
            self._described = (len(self._places), encoded_layout(*described()))
        manifest = Manifest(generation, self.published, [], [], self._chunk)
        if self._run:
            manifest.run, manifest.shares = self._run, self.shares
            manifest.directories = [str(path) for path in self._folders.paths]
        publish(self.directory / MANIFEST, encoded(manifest, self._described[1]), step)
        self.previous, self.published = self.published, generation

    def allocated(self) -> int:
        """Bytes that the state takes on the disks."""
        return sum(file.allocated() for file in self._files)

    def close(self, remove: bool) -> None:
        """Let go of the directories; with `remove`, delete our files first (and a directory if we made it and it is empty)."""
        for file in self._files:
            file.close()
        self._files = []
        self._folders.close(remove)
