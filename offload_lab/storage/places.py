"""Where on disk the chunks of each partition lie: in one file, or striped over several in proportion to their speed. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass

from offload_lab.partition import Partition, chunks

FINENESS = 16  # shares are sixteenths: a disk of half the speed gets 5 of 16, not exactly a third


@dataclass(frozen=True)
class Span:
    """`length` bytes of a record from `start`, at byte `offset` of file number `file`."""

    start: int
    length: int
    file: int
    offset: int


@dataclass(frozen=True)
class Place:
    """Where a partition's slots lie: slot s begins at `offsets[f] + s * strides[f]` of file f, and chunk n of a record lies
    `homes[n][1]` bytes further in file `homes[n][0]`."""

    offsets: tuple[int, ...]
    strides: tuple[int, ...]
    chunks: list[tuple[int, int]]
    starts: list[int]
    homes: list[tuple[int, int]]

    @property
    def nbytes(self) -> int:
        """Bytes of one slot in all files."""
        return sum(self.strides)

    def covered(self, start: int, nbytes: int) -> range:
        """Numbers of the chunks within `nbytes` from `start`."""
        return range(bisect_left(self.starts, start), bisect_left(self.starts, start + nbytes))

    def spans(self, slot: int, start: int, nbytes: int) -> Iterator[Span]:
        """The bytes from `start`, whole chunks, in as few transfers as they lie in."""
        pending: Span | None = None
        for number in self.covered(start, nbytes):
            (at, length), (file, within) = self.chunks[number], self.homes[number]
            offset = self.offsets[file] + slot * self.strides[file] + within
            if pending is not None and pending.file == file and pending.offset + pending.length == offset:
                pending = Span(pending.start, pending.length + length, file, pending.offset)
                continue
            if pending is not None:
                yield pending
            pending = Span(at, length, file, offset)
        if pending is not None:
            yield pending


class Layout:
    """Hands out places in `len(shares)` files, one partition after the other: of every sum(shares) chunks each file gets its
    share, spread evenly, so that a transfer keeps all disks busy. `slots` a partition."""

    def __init__(self, shares: Sequence[int], slots: int) -> None:
        self._turns, self._slots = _turns(shares), slots
        self._count = 0
        self.lengths = [0] * len(shares)
        """Bytes that each file needs for what has been placed."""

    def copy(self) -> Layout:
        other = copy(self)
        other.lengths = list(self.lengths)
        return other

    def place(self, part: Partition, keeps_weights: bool, chunk: int) -> Place:
        cut = chunks(part, keeps_weights, chunk)
        strides, homes = [0] * len(self.lengths), []
        for _, length in cut:
            file = self._turns[self._count % len(self._turns)]
            self._count += 1
            homes.append((file, strides[file]))
            strides[file] += length
        place = Place(tuple(self.lengths), tuple(strides), cut, [at for at, _ in cut], homes)
        self.lengths = [length + self._slots * stride for length, stride in zip(self.lengths, strides, strict=True)]
        return place


def _turns(shares: Sequence[int]) -> list[int]:
    """File numbers in an order in which each has its share: always the one that is furthest behind."""
    total, given, turns = sum(shares), [0] * len(shares), []
    for turn in range(1, total + 1):
        behind = max(range(len(shares)), key=lambda file: (shares[file] * turn - given[file] * total, -file))
        given[behind] += 1
        turns.append(behind)
    return turns


def shares_of(speeds: Sequence[float]) -> list[int]:
    """Small whole numbers in proportion to `speeds` (bytes a second), at least 1 each. Raises ValueError for a speed that is
    not positive."""
    if not speeds or not all(0 < speed < math.inf for speed in speeds):
        raise ValueError(f"speeds are finite and more than zero, not {list(speeds)}")
    rounded = [max(1, round(FINENESS * speed / sum(speeds))) for speed in speeds]
    common = math.gcd(*rounded)
    return [share // common for share in rounded]
