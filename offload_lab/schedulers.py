"""Schedules in increasing cleverness. Each is a function from `Work` to a list of tasks; see `work.py` for the rules. Pure.

All of them run in the simulator, `simulate(write_behind(work), hardware)`, and on the engine,
`OffloadPolicy(…, schedule=write_behind)`. One with an argument is given it by `functools.partial(read_ahead, depth=3)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import cycle

from offload_lab.caching import Cache, Choice, furthest_next_use, least_recently_used
from offload_lab.schedule import Item
from offload_lab.trace import Event
from offload_lab.work import TaskList, Work


def no_overlap(work: Work) -> TaskList:
    """Read, update, write, one partition after the other: one buffer, and never two things at once."""
    tasks = TaskList()
    last = _settle_all(work, tasks)
    for item in work.items:
        read = tasks.read(item, 0, after=last)
        update = tasks.update(item, 0, after=(last, read))
        written = tasks.write(item, 0, after=update)
        last = update if written is None else written
    return tasks


def read_ahead(work: Work, depth: int = 2) -> TaskList:
    """While one partition is updated and written, the next `depth - 1` are read. The next update still waits for the write.

    A buffer is read into when the partition that was in it has been written: what every schedule with buffers rests on.
    """
    tasks = TaskList()
    start = last = _settle_all(work, tasks)
    turns = cycle(range(min(depth, work.buffers)))
    free: dict[int | None, int] = {}  # buffer -> the last task that works in it
    for item in work.items:
        buffer = None if item.resident else next(turns)
        read = tasks.read(item, buffer, after=(start, free.get(buffer)))
        update = tasks.update(item, buffer, after=(read, last))
        written = tasks.write(item, buffer, after=update)
        free[buffer] = last = update if written is None else written
    return tasks


def write_behind(work: Work, depth: int | None = None) -> TaskList:
    """As `read_ahead`, and an update waits for no write: partitions are read, updated and written at the same time.

    `depth`: buffers to use; all of them where nothing is said. This is what the engine does by itself.
    """
    tasks = TaskList()
    start = _settle_all(work, tasks)
    turns = cycle(range(work.buffers if depth is None else min(depth, work.buffers)))
    free: dict[int | None, int] = {}
    for item in work.items:
        buffer = None if item.resident else next(turns)
        read = tasks.read(item, buffer, after=(start, free.get(buffer)))
        update = tasks.update(item, buffer, after=read)
        written = tasks.write(item, buffer, after=update)
        free[buffer] = update if written is None else written
    return tasks


# --- what stays in the buffers from one step to the next --------------------------------------------------------------


def keep(work: Work, choose: Choice, order: Sequence[int] | None = None, following: Sequence[int] = ()) -> TaskList:
    """Go through the buffers as through a cache: what is there is not read, and `choose` says what is given up for the next.

    Where the step may leave things unwritten (`work.may_owe`), a partition is written when its buffer is given up, else after
    its update. `order`: the partitions in the order of this step; `following`: in that of the next one, where it is known.
    """
    items = _ordered(work, order)
    tasks = TaskList()
    # Of the buffers, those used last are never given up: one is being read, one updated, one written.
    cache = Cache(max(work.buffers, 1), min(3, max(work.buffers, 1)), choose)
    cache.take_over(work.held, work.owed)
    turn_of = {item.partition: turn for turn, item in enumerate(items)}
    next_turn = {partition: len(items) + turn for turn, partition in enumerate(following)}
    never = len(items) + len(next_turn)
    free: dict[int, int | None] = {}  # buffer -> the last task that works in it
    on_disk: dict[int, int | None] = {}  # partition -> the task that writes it
    for turn, item in enumerate(items):
        if item.resident:
            tasks.write(item, None, after=tasks.update(item, None))
            continue

        def turns_until(partition: int, now: int = turn) -> int:
            here = turn_of.get(partition, -1)
            return (here if here > now else next_turn.get(partition, never)) - now

        place = cache.place(item.partition, turns_until)
        buffer = place.buffer
        ready = free.get(buffer)
        if not place.hit:
            if place.owed:  # what lies there was changed, and is not on disk
                ready = on_disk[place.evicted] = tasks.put("write", "disk-write", place.evicted, place.owed, ready, buffer)
            ready = tasks.read(item, buffer, after=(ready, on_disk.get(item.partition)))
        update = free[buffer] = tasks.update(item, buffer, after=ready)
        if work.may_owe:
            cache.owe(item.partition, item.write_bytes)
        elif item.write_bytes:
            free[buffer] = tasks.write(item, buffer, after=update)
    return tasks


def lru(work: Work) -> TaskList:
    """Always up, giving up what has not been used for longest. Of a scan through more than fits it keeps nothing of use."""
    return keep(work, least_recently_used)


def alternating(work: Work) -> TaskList:
    """Up and down in turn: each step meets first what the one before left in the buffers."""
    upward = sorted(item.partition for item in work.items)
    return keep(work, least_recently_used, order=upward[::-1] if work.number % 2 else upward)


def pinned(work: Work, free: int = 3) -> TaskList:
    """The first partitions stay in their buffers always, all but `free` buffers full of them; the others stream through
    those."""
    staying = {item.partition for item in work.streamed[: max(work.buffers - free, 0)]}

    def not_pinned(candidates: Sequence[int], turns_until: object) -> int:
        return next((partition for partition in candidates if partition not in staying), candidates[0])

    return keep(work, not_pinned)


def furthest(work: Work, learned: Sequence[int] | None = None) -> TaskList:
    """Give up what is needed last of all (Belady 1966): optimal, for whoever knows the order. `learned` is that of a step
    which was traced (`learned_order`), and every step is taken to be like it."""
    order = [item.partition for item in work.items] if learned is None else learned
    return keep(work, furthest_next_use, following=order)


def learned_order(events: Iterable[Event]) -> list[int]:
    """The partitions in the order in which one traced step updated them: each where it was updated last."""
    order = {event.partition: None for event in sorted(events, key=lambda event: -event.start) if event.name == "update"}
    return list(order)[::-1]


# --- beside the backward and the forward ------------------------------------------------------------------------------


def in_backward(work: Work) -> TaskList:
    """As `write_behind`, and each partition is updated as soon as backward has brought its gradients, in the order in which
    it is expected to. On the engine with `overlap="backward"`; what backward did not begin is updated after it."""
    tasks = TaskList()
    turns = cycle(range(work.buffers))
    start = _settle_all(work, tasks)
    free: dict[int | None, int] = {}
    for item in work.items:
        gradient = tasks.gradient(item) if work.gradients else None
        buffer = None if item.resident else next(turns)
        read = tasks.read(item, buffer, after=(start, free.get(buffer)))
        update = tasks.update(item, buffer, after=(gradient, read))
        written = tasks.write(item, buffer, after=update)
        free[buffer] = update if written is None else written
    return tasks


def in_next_forward(work: Work) -> TaskList:
    """The next forward begins at once, and goes on as far as the weights are new: partitions are updated in its order. Exact
    also with clipping, which has all gradients by then. On the engine with `overlap="forward"`."""
    items = tuple(sorted(work.items, key=lambda item: item.partition))
    tasks = write_behind(replace(work, items=items))
    updates = {task.partition: task.number for task in tasks if task.kind == "update"}
    for item in items:
        tasks.forward(item, after=updates[item.partition])
    return tasks


def before_forward(work: Work) -> TaskList:
    """The same forward after a step that is over, for comparison."""
    tasks = write_behind(work)
    last = range(len(tasks))
    for item in sorted(work.items, key=lambda item: item.partition):
        tasks.forward(item, after=last)
    return tasks


# --- helpers ----------------------------------------------------------------------------------------------------------


def _ordered(work: Work, order: Sequence[int] | None) -> Sequence[Item]:
    if order is None:
        return work.items
    items = {item.partition: item for item in work.items}
    return [items[partition] for partition in order]


def _settle_all(work: Work, tasks: TaskList) -> int | None:
    """Write all that earlier steps left unwritten, one after the other: where a schedule does not look at what is held."""
    last: int | None = None
    for partition in work.owed:
        last = tasks.settle(work, partition, after=last)
    return last


SCHEDULERS = (
    no_overlap,
    read_ahead,
    write_behind,
    lru,
    alternating,
    pinned,
    furthest,
    in_backward,
    in_next_forward,
    before_forward,
)
"""All of them, in order of cleverness."""
