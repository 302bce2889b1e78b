"""Which partitions the streaming buffers still hold, and which buffer is given up for the next one. Pure.

A step visits every partition once, in one order. Under such a scan the least recently used partition is always the one that
is needed next but the rest: LRU hits nothing unless all of it fits. What knows the order does better: to give up the
partition whose next use is furthest away is optimal (Belady 1966, "A study of replacement algorithms").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Choice = Callable[[Sequence[int], Callable[[int], int]], int]
"""From the partitions that may be given up, least recently used first, and a function that says how many turns it is to the
next use of each (in this step or the next): the one to give up."""


def least_recently_used(candidates: Sequence[int], turns_until: Callable[[int], int]) -> int:
    """The one that has not been used for longest."""
    return candidates[0]


def furthest_next_use(candidates: Sequence[int], turns_until: Callable[[int], int]) -> int:
    """Belady's choice."""
    return max(candidates, key=turns_until)


@dataclass(frozen=True)
class Place:
    """Where a partition goes: `hit` where it is there already; `evicted` was there before and `owed` of its bytes have to be
    written first."""

    buffer: int
    hit: bool
    evicted: int = -1
    owed: int = 0


class Cache:
    """`buffers` buffers and the partitions that they hold. The last `window` used are never given up while a step runs:
    one is being read, one updated, one written, and where each waits for the next there is no overlap."""

    def __init__(self, buffers: int, window: int, choose: Choice = least_recently_used) -> None:
        if buffers < 1 or window < 1:
            raise ValueError(f"a schedule needs at least one buffer, not {min(buffers, window)}")
        self.buffers, self.window, self._choose = buffers, min(window, buffers), choose
        self._held: dict[int, int] = {}  # partition -> buffer, least recently used first
        self._owed: dict[int, int] = {}  # partition -> bytes that were changed and not written

    def place(self, partition: int, turns_until: Callable[[int], int]) -> Place:
        """Make room for `partition`. `turns_until(other)` says how far away the next use of another one is."""
        if partition in self._held:
            buffer = self._held[partition] = self._held.pop(partition)
            return Place(buffer, True)
        free = set(range(self.buffers)).difference(self._held.values())
        if free:
            self._held[partition] = min(free)
            return Place(self._held[partition], False)
        oldest = list(self._held)
        victim = self._choose(oldest[: len(oldest) - self.window + 1], turns_until)
        buffer = self._held.pop(victim)
        self._held[partition] = buffer
        return Place(buffer, False, victim, self._owed.pop(victim, 0))

    def owe(self, partition: int, nbytes: int) -> None:
        """`partition` was changed in its buffer and is not written yet."""
        self._owed[partition] = nbytes

    def debts(self) -> dict[int, tuple[int, int]]:
        """Partition -> (buffer, bytes) of all that has to be written before the buffers may be used otherwise."""
        return {partition: (self._held[partition], nbytes) for partition, nbytes in self._owed.items()}

    def holds(self, partition: int) -> int | None:
        return self._held.get(partition)

    def held(self) -> dict[int, int]:
        """Partition -> the buffer that holds it, least recently used first."""
        return dict(self._held)

    def take_over(self, held: Mapping[int, int], owed: Mapping[int, int]) -> None:
        """From now on hold what `held` says (as `held()` gives it), of which `owed` bytes are not written."""
        self._held, self._owed = dict(held), dict(owed)

    def forget(self) -> None:
        """Hold nothing: the buffers were used for something else, or the files were changed. Debts are given up, too."""
        self._held.clear()
        self._owed.clear()
