"""A step as a list of tasks: what happens to which partition, in which lane, after what. Pure: no torch, no threads.

The pipeline runs this list on real threads and files. Whatever runs it keeps two promises: a task starts only when all of
`after` have ended, and tasks of one lane start in the order of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["read", "update", "write"]
Lane = Literal["disk-read", "cpu", "disk-write"]


@dataclass(frozen=True)
class Item:
    """A partition as the schedule sees it: bytes to read before its update and to write after it; 0 means no such task.

    A partition that stays in RAM has `resident` set: it is not read, and takes no buffer.
    """

    partition: int
    read_bytes: int
    write_bytes: int
    resident: bool


@dataclass(frozen=True)
class Task:
    """One thing to do. `number` is its place in the list; `after` holds numbers of earlier tasks; `buffer` is the buffer
    it works in, or None for a partition that is resident."""

    number: int
    kind: Kind
    lane: Lane
    partition: int
    nbytes: int
    after: tuple[int, ...]
    buffer: int | None


def forward(items: Sequence[Item], depth: int) -> list[Task]:
    """Read ahead, update in order, write behind, through `depth` buffers used in turn.

    A buffer is read into only when the partition that had it before has been written: that one `after` is what keeps
    read-ahead from overwriting a state that is not on disk yet.
    """
    if depth < 1:
        raise ValueError(f"a schedule needs at least one buffer, not {depth}")
    tasks: list[Task] = []

    def add(kind: Kind, lane: Lane, item: Item, nbytes: int, after: tuple[int, ...], buffer: int | None) -> int:
        tasks.append(Task(len(tasks), kind, lane, item.partition, nbytes, after, buffer))
        return len(tasks) - 1

    last_use: dict[int, int] = {}  # buffer -> the task that frees it
    streamed = 0
    for item in items:
        buffer: int | None = None
        before: tuple[int, ...] = ()
        if not item.resident:
            buffer = streamed % depth
            streamed += 1
            freed = (last_use[buffer],) if buffer in last_use else ()
            before = (add("read", "disk-read", item, item.read_bytes, freed, buffer),)
        last = add("update", "cpu", item, 0, before, buffer)
        if item.write_bytes:
            last = add("write", "disk-write", item, item.write_bytes, (last,), buffer)
        if buffer is not None:
            last_use[buffer] = last
    return tasks
