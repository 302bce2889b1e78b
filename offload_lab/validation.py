"""Whether a schedule does a step's work, whenever its tasks happen to run. Pure: no torch, no threads.

A task list promises only what its `after` says. Two tasks that touch the same buffer or the same partition, of which neither
waits for the other, directly or through others, are a race: on some machine, on some day, they run in the wrong order. Where
every such pair is ordered, whatever order the tasks run in does what the list does from top to bottom, and that is checked by
walking down the list once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from offload_lab.schedule import Task
from offload_lab.work import Work

LANES = {"gradient": "backward", "read": "disk-read", "update": "cpu", "write": "disk-write", "forward": "forward"}
"""Kinds of task that the engine runs, and the lane of each; "forward" is left to the user's model."""


class ScheduleError(ValueError):
    """A schedule that would not do its step right. Nothing of it was run."""


@dataclass(frozen=True)
class Ending:
    """What the buffers hold when the step is over: `held` and `owed` of the next step's `Work`."""

    held: dict[int, int]
    owed: dict[int, int]


class _Walk:
    """Down the list, with what each buffer holds and what disk has."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.items = {item.partition: item for item in work.items}
        self.holds = {buffer: partition for partition, buffer in work.held.items()}
        self.owed = dict(work.owed)
        self.recent = dict.fromkeys(work.held)  # least recently used first
        self.updated: dict[int, int] = {}  # partition -> its update
        self.gradients: dict[int, int] = {}
        self.waits: list[int] = []  # for each task the set of all that it waits for, as the bits of a number
        self.touched: dict[tuple[str, int], int] = {}
        self.forwards: set[int] = set()
        self.first: dict[int, Task] = {}  # partition -> its first task that works on its state
        self.before: list[Task] = []

    # --- what every task has to be --------------------------------------------------------------------------------

    def take(self, task: Task) -> None:
        """Check the next task of the list, and do what it does. Raises ScheduleError."""
        waits = 0
        for other in task.after:
            if other in self.forwards:
                wrong(task, f"waits for task {other}, a forward: that is the user's model, which runs when it likes")
            waits |= self.waits[other] | 1 << other
        self.waits.append(waits)
        self.before.append(task)
        if LANES.get(task.kind) != task.lane:
            wrong(task, f"is of kind {task.kind!r} in lane {task.lane!r}; there are {_listed(LANES)}")
        item = self.items.get(task.partition)
        settles = task.kind == "write" and task.partition in self.owed and task.partition not in self.updated
        if item is None and not settles:
            wrong(task, f"is of a partition that has no part in this step; these have: {_numbers(self.items)}")
        if task.kind in ("gradient", "forward"):
            self._aside(task)
            return
        resident = item is not None and item.resident
        if resident and (task.kind == "read" or task.buffer is not None):
            wrong(task, "is of a partition that stays in RAM: it is not read, and has no buffer")
        if not resident:
            if isinstance(task.buffer, bool) or not isinstance(task.buffer, int):
                wrong(task, f"needs a buffer, and has {task.buffer!r}")
            if not 0 <= task.buffer < self.work.buffers:
                wrong(task, f"uses buffer {task.buffer}; there are {self.work.buffers}, counted from 0")
        expected = self.owed[task.partition] if settles else getattr(item, f"{task.kind}_bytes")
        if task.nbytes != expected:
            wrong(task, f"moves {task.nbytes:,} bytes, and it is {expected:,} that have to be moved")
        self._in_turn(task, ("partition", task.partition))
        if task.buffer is not None:
            self._in_turn(task, ("buffer", task.buffer))
        if self.work.gradients:
            self._can_be_cut(task)
        {"read": self._read, "update": self._update, "write": self._write}[task.kind](task)

    def _in_turn(self, task: Task, what: tuple[str, int]) -> None:
        before = self.touched.get(what)
        if before is not None and not self.waits[task.number] >> before & 1:
            wrong(
                task,
                f"does not wait for task {before}, which works in {what[0]} {what[1]} too: whichever is faster on the day "
                f"comes first. Let it wait for task {before}, or for one that does",
            )
        self.touched[what] = task.number

    def _can_be_cut(self, task: Task) -> None:
        """What backward began must be able to end without what it did not begin: see `Run.cut`."""
        first = self.first.setdefault(task.partition, task)
        for other in task.after:
            asked = self.before[other]
            if asked.partition == task.partition:
                continue
            begun = self.first.get(asked.partition)
            if begun is None or asked.kind == "gradient" or begun.lane != first.lane or begun.number > first.number:
                wrong(
                    task,
                    f"waits for partition {asked.partition}, of which backward may not have begun anything when this one is to "
                    "end. Begin each partition with a read, and wait only for partitions whose read is earlier in the list",
                )

    # --- what each kind does --------------------------------------------------------------------------------------

    def _aside(self, task: Task) -> None:
        if task.kind == "gradient":
            if not self.work.gradients:
                wrong(task, "waits for a gradient, and this step has all of them already")
            if task.after:
                wrong(task, "is a gradient, which comes when backward brings it, and waits for nothing")
            self.gradients.setdefault(task.partition, task.number)
            return
        update = self.updated.get(task.partition)
        if update is None or not self.waits[task.number] >> update & 1:
            wrong(task, "runs forward through weights whose update it does not wait for")
        self.forwards.add(task.number)

    def _read(self, task: Task) -> None:
        buffer = task.buffer
        assert buffer is not None
        if task.partition in self.updated:
            wrong(task, f"reads what task {self.updated[task.partition]} has updated already")
        if task.partition in self.owed:
            wrong(task, "reads from disk what has changed since it was written there. TaskList.settle writes it")
        there = self.holds.get(buffer)
        if there is not None and there != task.partition and there in self.owed:
            wrong(
                task,
                f"reads into buffer {buffer}, whose partition {there} is changed and not on disk yet: it would be lost",
            )
        self.holds[buffer] = task.partition
        self._used(task.partition)

    def _update(self, task: Task) -> None:
        partition, item = task.partition, self.items[task.partition]
        if partition in self.updated:
            wrong(task, f"updates what task {self.updated[partition]} has updated already")
        if not item.resident:
            there = self.holds.get(task.buffer) if task.buffer is not None else None
            if there != partition:
                holding = "holds nothing" if there is None else f"holds partition {there}"
                wrong(task, f"works in buffer {task.buffer}, which {holding}: read partition {partition} into it before")
            self.holds = {buffer: held for buffer, held in self.holds.items() if held != partition or buffer == task.buffer}
            self._used(partition)
        if self.work.gradients:
            gradient = self.gradients.get(partition)
            if gradient is None or not self.waits[task.number] >> gradient & 1:
                wrong(task, "does not wait for its gradient (TaskList.gradient), which backward has yet to bring")
        self.updated[partition] = task.number
        if item.write_bytes:
            self.owed[partition] = item.write_bytes

    def _write(self, task: Task) -> None:
        partition = task.partition
        if partition not in self.owed:
            done = "has been written since its update" if partition in self.updated else "is written before it is updated"
            wrong(task, f"writes what needs no writing: partition {partition} {done}")
        if task.buffer is not None and self.holds.get(task.buffer) != partition:
            wrong(task, f"writes partition {partition} from buffer {task.buffer}, which does not hold it")
        del self.owed[partition]

    def _used(self, partition: int) -> None:
        self.recent.pop(partition, None)
        self.recent[partition] = None

    # --- the end --------------------------------------------------------------------------------------------------

    def ending(self) -> Ending:
        left = [item.partition for item in self.work.items if item.partition not in self.updated]
        if left:
            raise ScheduleError(f"the schedule has no update of partition {_numbers(left)}")
        for partition in self.owed:
            item = self.items.get(partition)
            if item is not None and partition in self.updated and (item.resident or not self.work.may_owe):
                raise ScheduleError(
                    f"the schedule does not write partition {partition} after its update, task {self.updated[partition]}: this "
                    "step has to be on disk when it is over"
                )
        buffers: dict[int, int] = {}
        for buffer, partition in self.holds.items():
            buffers.setdefault(partition, buffer)
        return Ending({p: buffers[p] for p in self.recent if p in buffers}, dict(self.owed))


def validate(tasks: Sequence[Task], work: Work) -> Ending:
    """Check that `tasks` do `work`: each partition is read before it is updated (or is in its buffer already), updated once,
    and written after it where it has to be; no buffer is used for two things at once or given away with something in it that
    is on no disk; and all of that whenever the tasks run. Returns what the buffers hold then.

    Raises ScheduleError naming the task that is wrong, and why.
    """
    if not isinstance(tasks, Sequence) or isinstance(tasks, str):
        raise ScheduleError(f"a schedule function returns its list of tasks, not {tasks!r}. Is a `return tasks` missing?")
    walk = _Walk(work)
    for place, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise ScheduleError(f"entry {place} of the schedule is {task!r}, not a Task; TaskList's methods make them")
        if task.number != place:
            wrong(task, f"is at place {place} of the list: a task's number is its place")
        if any(isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < place for n in task.after):
            wrong(task, f"waits for {task.after}: a task can wait only for tasks before it in the list, by their numbers")
        walk.take(task)
    return walk.ending()


def wrong(task: Task, why: str) -> NoReturn:
    raise ScheduleError(f"task {task.number} ({task.kind} of partition {task.partition}) {why}.")


def _numbers(partitions: Iterable[int]) -> str:
    return ", ".join(map(str, partitions))


def _listed(lanes: dict[str, str]) -> str:
    return ", ".join(f"{kind} in {lane}" for kind, lane in lanes.items())
