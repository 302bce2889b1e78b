"""Which partition lies in which buffer, and when: read off a schedule and the times of its tasks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offload_lab.schedule import Task


@dataclass(frozen=True)
class Occupancy:
    """`partition` lies in `buffer`, with `nbytes`, from the start of the first task that works on it there until the end of
    the last before the buffer is given to another. What is kept for the next step counts as lying there until then."""

    buffer: int
    partition: int
    start: float
    end: float
    nbytes: int


def occupancies(steps: Sequence[Sequence[Task]], times: Sequence[Sequence[tuple[float, float]]]) -> list[Occupancy]:
    """`times`: for each step, start and end of each task. `nbytes` is the most that a read or write of the partition moves in
    any of the steps, so that a hit, which moves nothing, counts in full."""
    sizes: dict[int, int] = {}
    for task in (task for tasks in steps for task in tasks):
        if task.kind in ("read", "write"):
            sizes[task.partition] = max(sizes.get(task.partition, 0), task.nbytes)
    found: list[Occupancy] = []
    latest: dict[int, int] = {}  # buffer -> its newest entry in `found`
    for tasks, spans in zip(steps, times, strict=True):
        for task, (start, end) in zip(tasks, spans, strict=True):
            if task.buffer is None:
                continue
            at = latest.get(task.buffer)
            if at is not None and found[at].partition == task.partition:
                one = found[at]
                found[at] = Occupancy(
                    one.buffer, one.partition, min(one.start, start), max(one.end, end), sizes.get(task.partition, 0)
                )
            else:
                latest[task.buffer] = len(found)
                found.append(Occupancy(task.buffer, task.partition, start, end, sizes.get(task.partition, 0)))
    return found


def peak(occupied: Iterable[Occupancy]) -> tuple[int, int]:
    """The most occupancies, and the most bytes of them, at any one time. One that ends when another starts makes room first."""
    changes: list[tuple[float, int, int, int]] = []
    for one in occupied:
        goes = 0 if one.end > one.start else 2  # one that takes no time comes and goes at that time
        changes += [(one.start, 1, 1, one.nbytes), (one.end, goes, -1, -one.nbytes)]
    count = nbytes = most = most_bytes = 0
    for _, _, more, size in sorted(changes):
        count, nbytes = count + more, nbytes + size
        most, most_bytes = max(most, count), max(most_bytes, nbytes)
    return most, most_bytes
