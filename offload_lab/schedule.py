"""A step as a list of tasks: what happens to which partition, in which lane, after what. Pure: no torch, no threads.

The pipeline runs this list on real threads and files. Whatever runs it keeps two promises: a task starts only when all of
`after` have ended, and tasks of one lane start in the order of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from offload_lab.caching import Cache

Kind = Literal["gradient", "fetch", "read", "update", "send", "write", "compute", "forward"]
Lane = Literal["backward", "device-to-host", "disk-read", "cpu", "host-to-device", "disk-write", "accelerator", "forward"]
Order = Literal["forward", "alternating"]


@dataclass(frozen=True)
class Item:
    """A partition as the schedule sees it: bytes to read before its update and to write after it; 0 means no such task.

    A partition that stays in RAM has `resident` set: it is not read, and takes no buffer. `update_bytes` are those that its
    update moves through memory, reads and writes together. One with parameters on an accelerator has bytes to fetch (weights
    and gradients) and to send (weights).
    """

    partition: int
    read_bytes: int
    write_bytes: int
    resident: bool
    update_bytes: int = 0
    fetch_bytes: int = 0
    send_bytes: int = 0


@dataclass(frozen=True)
class Task:
    """One thing to do. `number` is its place in the list; `after` holds numbers of earlier tasks; `buffer` is the buffer
    it works in, or None for a partition that is resident; `slab` the staging slab of one that is on an accelerator. `nbytes`
    are moved by its lane: to or from the disk, over the link, or by an update through memory."""

    number: int
    kind: Kind
    lane: Lane
    partition: int
    nbytes: int
    after: tuple[int, ...]
    buffer: int | None
    slab: int | None = None


def in_order(partitions: Sequence[int], order: Order, step: int) -> list[int]:
    """The order in which step `step` (0 for the first) visits partitions: always up, or up and down in turn.

    Up and down meets first what the buffers still hold from the step before.
    """
    upward = sorted(partitions)
    return upward[::-1] if order == "alternating" and step % 2 else upward


class _Tasks(list[Task]):
    def __init__(self) -> None:
        super().__init__()
        self.last_use: dict[int, int] = {}  # buffer -> the last task of this list that works in it
        self._written: dict[int, int] = {}  # partition -> its last write in this list

    def put(
        self,
        kind: Kind,
        lane: Lane,
        partition: int,
        nbytes: int,
        after: tuple[int, ...],
        buffer: int | None,
        slab: int | None = None,
    ) -> int:
        number = len(self)
        self.append(Task(number, kind, lane, partition, nbytes, after, buffer, slab))
        if buffer is not None:
            self.last_use[buffer] = number
        if kind == "write":
            self._written[partition] = number
        return number

    def bring(self, item: Item, cache: Cache, turns_until: Callable[[int], int]) -> tuple[int, tuple[int, ...]]:
        """The buffer that holds `item`, and what to wait for until it does: a read, unless the cache has it.

        A buffer is read into only when all that was done in it before has ended: that one `after` is what keeps
        read-ahead from overwriting a state that is not on disk yet.
        """
        place = cache.place(item.partition, turns_until)
        if place.owed:  # what lies there was changed and never written
            self.put("write", "disk-write", place.evicted, place.owed, self._after(place.buffer), place.buffer)
        if place.hit:
            return place.buffer, self._after(place.buffer)
        written = (self._written[item.partition],) if item.partition in self._written else ()
        after = (*self._after(place.buffer), *written)
        read = self.put("read", "disk-read", item.partition, item.read_bytes, after, place.buffer)
        return place.buffer, (read,)

    def _after(self, buffer: int) -> tuple[int, ...]:
        return (self.last_use[buffer],) if buffer in self.last_use else ()


def _turns(items: Sequence[Item], following: Sequence[int]) -> Callable[[int], Callable[[int], int]]:
    here = {item.partition: turn for turn, item in enumerate(items)}
    there = {partition: len(items) + turn for turn, partition in enumerate(following)}
    never = len(items) + len(following)

    def seen_from(now: int) -> Callable[[int], int]:
        def turns_until(partition: int) -> int:
            turn = here.get(partition, -1)
            return (turn if turn > now else there.get(partition, never)) - now

        return turns_until

    return seen_from


def step(
    items: Sequence[Item],
    cache: Cache,
    *,
    following: Sequence[int] = (),
    write_back: bool = False,
    gradients: bool = False,
    slabs: int = 1,
) -> list[Task]:
    """Read ahead, update in the order of `items`, write behind, through the buffers of `cache`, which is brought up to date.

    `following`: the order in which the next step will come to the partitions, for a cache that wants to know.
    `write_back`: a streamed partition is written when its buffer is wanted for another, not after each update.
    `gradients`: an update waits for a task "gradient" as well, which ends when backward has come so far.
    `slabs`: how many staging slabs there are for partitions on an accelerator, which take them in turn.
    """
    tasks = _Tasks()
    turns = _turns(items, following)
    sent: dict[int, int] = {}  # slab -> the last task that took the weights from it
    fetched = 0
    for place, item in enumerate(items):
        buffer: int | None = None
        before: tuple[int, ...] = ()
        slab: int | None = None
        if gradients:
            before = (tasks.put("gradient", "backward", item.partition, 0, (), None),)
        if item.fetch_bytes:
            slab, fetched = fetched % slabs, fetched + 1
            # What was in the slab is on the device only when it was sent, not when it was updated.
            free = (sent[slab],) if slab in sent else ()
            before = (tasks.put("fetch", "device-to-host", item.partition, item.fetch_bytes, before + free, None, slab),)
        if not item.resident:
            buffer, brought = tasks.bring(item, cache, turns(place))
            before += brought
        update = tasks.put("update", "cpu", item.partition, item.update_bytes, before, buffer, slab)
        if slab is not None:
            sent[slab] = tasks.put("send", "host-to-device", item.partition, item.send_bytes, (update,), None, slab)
        if write_back and buffer is not None:
            cache.owe(item.partition, item.write_bytes)
        elif item.write_bytes:
            tasks.put("write", "disk-write", item.partition, item.write_bytes, (update,), buffer)
    return tasks


def ahead(items: Sequence[Item], cache: Cache) -> list[Task]:
    """Only the reads with which a step over `items` begins, as many as there are buffers to read into."""
    tasks = _Tasks()
    streamed = [item for item in items if not item.resident]
    turns = _turns(streamed, [])
    for place, item in enumerate(streamed[: cache.window]):
        if item.read_bytes:  # what was never written is made of zeros, by the step itself
            tasks.bring(item, cache, turns(place))
    return tasks


def without_forward(tasks: Sequence[Task]) -> list[Task]:
    """The tasks that the engine runs: all but those of kind "forward", which nothing waits for, with numbers of their own."""
    kept = [task for task in tasks if task.kind != "forward"]
    numbers = {task.number: place for place, task in enumerate(kept)}
    return [replace(t, number=numbers[t.number], after=tuple(numbers[other] for other in t.after)) for t in kept]
