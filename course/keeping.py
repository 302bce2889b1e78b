"""What buffers keep from one step to the next, by a function that says which partition is given up. No torch.

Also what the operating system counted of this process's reads, to put beside what the engine counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from offload_lab.caching import Cache
from offload_lab.hardware import Figure, Hardware
from offload_lab.puzzles import Case
from offload_lab.schedule import Item
from offload_lab.simulate import Simulation
from offload_lab.trace import Event
from offload_lab.work import Schedule, TaskList, Work
from quizzes.say import _

GiveUp = Callable[[list[int], int, list[int], list[int]], int]
"""`give_up(held, place, order, following)`: which of `held`, least recently used first, is given up for `order[place]`, where
`order` is that of this step and `following` that of the next one."""


def kept(give_up: GiveUp, alternating: bool = False, window: int = 4) -> Schedule:
    """A schedule function whose buffers are a cache: what is held is not read, and `give_up` says what goes.

    Steps go up, or, where `alternating`, up and down in turn. The last `window` used are never given up: they are being read,
    updated and written. That is what the engine does with its own residencies, `window` being its `depth`.

    The schedule raises ValueError where `give_up` names one that is not held; what `give_up` raises goes on.
    """

    def schedule(work: Work) -> TaskList:
        upward = sorted(item.partition for item in work.items)
        order = upward[::-1] if alternating and work.number % 2 else upward
        following = order[::-1] if alternating else order
        items, now = {item.partition: item for item in work.items}, 0

        def chosen(candidates: Sequence[int], _turns_until: object) -> int:
            given = give_up(list(candidates), now, list(order), list(following))
            if given not in candidates:
                said = _("{given!r} was to be given up, and is not one of {held}")
                raise ValueError(said.format(given=given, held=list(candidates)))
            return given

        cache, tasks = Cache(max(work.buffers, 1), window, chosen), TaskList()
        cache.take_over(work.held, work.owed)
        free: dict[int, int | None] = {}  # buffer -> the last task that works in it
        on_disk: dict[int, int | None] = {}  # partition -> the task that writes it
        for place, partition in enumerate(order):
            item, now = items[partition], place
            if item.resident:
                tasks.write(item, None, after=tasks.update(item, None))
                continue
            found = cache.place(partition, lambda other: 0)
            buffer, ready = found.buffer, free.get(found.buffer)
            if not found.hit:
                if found.owed:  # what lies there was changed, and is not on disk
                    ready = on_disk[found.evicted] = tasks.put("write", "disk-write", found.evicted, found.owed, ready, buffer)
                ready = tasks.read(item, buffer, after=(ready, on_disk.get(partition)))
            free[buffer] = updated = tasks.update(item, buffer, after=ready)
            if work.may_owe:
                cache.owe(partition, item.write_bytes)
            elif item.write_bytes:
                free[buffer] = tasks.write(item, buffer, after=updated)
        return tasks

    return schedule


def reads(case: Case, schedule: Schedule) -> list[int]:
    """How many partitions each step of `case` reads. Raises what `case.play` does."""
    return [sum(task.kind == "read" for task in tasks) for tasks in case.play(schedule)]


def made_up(
    partitions: int = 8, buffers: int = 6, steps: int = 6, *, read: float = 1e9, write: float = 1e9, duplex: str = "full"
) -> Case:
    """`partitions` of a million bfloat16 parameters on a made-up machine, each step published: 10 bytes a parameter to read,
    12 to write, 26 to move in memory at 20 GB/s. `read` and `write` are bytes a second."""

    def rate(value: float) -> Figure:
        return Figure(value, "assumed", "made up")

    hardware = Hardware(
        "made up",
        ram=rate(16e9),
        dram_bandwidth=rate(20e9),
        disk_read=rate(read),
        disk_write=rate(write),
        disk_duplex="half" if duplex == "half" else "full",
    )
    items = tuple(Item(number, 10_000_000, 12_000_000, False, 26_000_000) for number in range(partitions))
    return Case("made up", Work(items, buffers), hardware, steps)


def by_step(run: Simulation) -> list[list[Event]]:
    """The events of each step, as `residency_flags` takes them."""
    return [[event for event in run.events if begun <= event.start and event.end <= ended] for begun, ended in run.steps]


def system_reads() -> int | None:
    """Bytes that the system has brought from disks for this process so far; None where it does not tell.

    Linux tells it in /proc/self/io. What comes from the page cache, or from a file system that lies in memory, is not in it.
    """
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return None
    told = dict(line.split(": ", 1) for line in lines if ": " in line)
    return int(told["read_bytes"]) if told.get("read_bytes", "").isdigit() else None
