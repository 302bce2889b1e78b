"""Schedules as puzzles: a learner writes a schedule function, and `check` judges it on steps and machines it has not seen.

    >>> from offload_lab.puzzles import PUZZLES, check
    >>> print(check(my_schedule, PUZZLES["write behind"]))

Three questions, in this order. Is it right: does it do every step's work, whenever its tasks run (`validation.py`)? How fast
is it: its time as a share of what no schedule can beat (`least.py`)? What does it cost: its peak bytes in the same way? The
reference, which is in `schedulers.py`, is judged beside it; its marks are no limit. Every time here is *predicted*.

The machines are drawn anew each time, from the family that `FAMILY` tells in words: whoever has seen those of one check has not
seen those of the next. What a check says ends with its seed, and `check(…, seed=…)` draws the same ones again.
"""

from __future__ import annotations

import random
import secrets
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from offload_lab import schedulers
from offload_lab.hardware import Figure, Hardware
from offload_lab.least import Least
from offload_lab.schedule import Item, Task
from offload_lab.simulate import Simulation, simulate
from offload_lab.validation import ScheduleError, checked_tasks, wrong
from offload_lab.work import Schedule, Work


@dataclass(frozen=True)
class Case:
    """A machine, and the work of `steps` steps on it, each of which begins with what the one before left in the buffers."""

    name: str
    work: Work
    hardware: Hardware
    steps: int = 1
    seconds: Mapping[str, float] = field(default_factory=dict)

    def play(self, schedule: Schedule) -> list[list[Task]]:
        """The lists of tasks that `schedule` makes. Raises ScheduleError where one is wrong, and what `schedule` raises."""
        held, owed, lists = dict(self.work.held), dict(self.work.owed), []
        for number in range(self.steps):
            work = replace(self.work, number=number, held=held, owed=owed)
            tasks, ending = checked_tasks(schedule, work)
            _check_gradients(tasks, work)
            held, owed = ending.held, ending.owed
            lists.append(tasks)
        return lists

    def run(self, schedule: Schedule) -> Simulation:
        """The steps in virtual time."""
        return simulate(self.play(schedule), self.hardware, seconds=self.seconds)

    def _least(self) -> list[Least]:
        """Of each step: what is held when the first one begins is known."""
        first = Least(self.work, self.hardware, self.seconds)
        return [first, *[Least(self.work, self.hardware, self.seconds, held_unknown=True)] * (self.steps - 1)]

    @property
    def least_seconds(self) -> float:
        """What no schedule can beat: the sum over the steps, since one begins when the one before has ended."""
        return sum(step.seconds for step in self._least())

    def least_bytes(self, within: float) -> float:
        """No schedule that takes `within` seconds has a lower peak of bytes in buffers. It is at least the largest partition;
        and it is at least the mean over time, which is what lies in the buffers, summed over time, by the time."""
        steps = self._least()
        mean = sum(step.byte_seconds for step in steps) / within if within else 0.0
        return max(mean, *(step.largest for step in steps))


def _check_gradients(tasks: list[Task], work: Work) -> None:
    """In a real run backward brings gradients in its own order, whatever the list says; here the list is all there is."""
    expected = (item.partition for item in work.items)
    for task in tasks:
        if task.kind == "gradient" and task.partition != (due := next(expected, None)):
            due_next = "there are no more" if due is None else f"the next one is that of partition {due}"
            wrong(task, f"is not the one that backward brings now: they come in the order of `work.items`, and {due_next}")


@dataclass(frozen=True)
class Marks:
    """Two shares of a bound, each at most 1. `time`: the least seconds by those taken. `memory`: the least peak bytes of any
    schedule that takes as long, by the peak. One buffer and much time are full marks for memory, and so are many buffers that
    are never idle."""

    time: float
    memory: float


@dataclass(frozen=True)
class Row:
    """One case: theirs and the reference's, with their events, to be drawn one beside the other."""

    case: Case
    theirs: Simulation
    reference: Simulation
    marks: Marks
    reference_marks: Marks


@dataclass(frozen=True)
class Puzzle:
    """`ask` says what to write. `shown` is the case that a learner may look at; the others are drawn."""

    name: str
    ask: str
    reference: Schedule
    shown: Case
    all_buffers: bool = False
    """Whether it asks for all buffers: then the first hidden case is one where the reference is slower with one fewer. On most
    machines two or three are enough: a schedule that uses no more would be as fast whenever only such machines are drawn."""

    def hidden(self, seed: int, count: int = 8) -> list[Case]:
        """`count` cases of the same kind, of `FAMILY`: the same for the same seed and name, others for any other."""
        rng = random.Random(f"{self.name}, {seed}")
        cases = [_like(self.shown, rng, number) for number in range(count)]
        while self.all_buffers and cases and not self._needs_all(cases[0]):  # about one machine in fifty does
            cases[0] = _like(self.shown, rng, 0)
        return cases

    def _needs_all(self, case: Case) -> bool:
        fewer = replace(case, work=replace(case.work, buffers=case.work.buffers - 1))
        return case.work.buffers > 3 and fewer.run(self.reference).makespan > case.run(self.reference).makespan * (1 + 1e-9)


@dataclass(frozen=True)
class Checked:
    """`error` is None where the schedule is right in every case; else it says in which it is wrong, and why."""

    puzzle: Puzzle
    error: str | None
    rows: tuple[Row, ...]
    """The shown case first. Up to the one that is wrong, where one is."""
    seed: int
    """What the hidden cases were drawn with."""
    cases: int
    """How many were drawn."""

    @property
    def marks(self) -> Marks | None:
        """Means over the cases; None for a schedule that is wrong."""
        return None if self.error is not None else _mean([row.marks for row in self.rows])

    @property
    def reference_marks(self) -> Marks:
        """The same of the reference, over the same cases."""
        return _mean([row.reference_marks for row in self.rows])

    @property
    def as_fast(self) -> bool:
        """Right, and in no case slower than the reference, but for rounding."""
        return self.error is None and all(row.theirs.makespan <= row.reference.makespan * (1 + 1e-9) for row in self.rows)

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.puzzle.name}: not right yet. {self.error}\n  {self._again()}"
        mine, other = self.marks, self.reference_marks
        assert mine is not None
        slowest = min(self.rows, key=lambda row: row.marks.time / row.reference_marks.time)
        return "\n".join(
            [
                f"{self.puzzle.name}: right in all {len(self.rows)} cases.",
                f"  time:   {mine.time:6.1%} of the speed that no schedule beats (the reference {other.time:.1%}), predicted",
                f"  memory: {mine.memory:6.1%} of your peak is needed to be as fast (the reference {other.memory:.1%})",
                "  as fast as the reference in every case"
                if self.as_fast
                else f"  slowest beside the reference on {slowest.case.name}: {slowest.theirs.makespan:.4g} s, where it takes "
                f"{slowest.reference.makespan:.4g} s",
                f"  {self._again()}",
            ]
        )

    def _again(self) -> str:
        count = "" if self.cases == CASES else f", cases={self.cases}"
        return f"these machines again: check(your_schedule, PUZZLES[{self.puzzle.name!r}]{count}, seed={self.seed})"


CASES = 8


def check(schedule: Schedule, puzzle: Puzzle, cases: int = CASES, *, seed: int | None = None) -> Checked:
    """Judge `schedule` on the shown case and on `cases` hidden ones, which are drawn now; with the `seed` that a check told,
    those of that check.

    A schedule that is wrong is a result, not an exception; so is one that raises: both are in `error`, with the case.
    Raises ValueError for cases or a seed that is no whole number of at least 0.
    """
    for name, number in (("cases", cases), ("seed", seed)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            raise ValueError(f"{name}={number!r}: a whole number of at least 0 is needed")
    drawn = secrets.randbelow(10**9) if seed is None else seed
    rows: list[Row] = []
    for case in (puzzle.shown, *puzzle.hidden(drawn, cases)):
        try:
            theirs = case.run(schedule)
        except ScheduleError as error:
            return Checked(puzzle, f"On {case.name}: {error}", tuple(rows), drawn, cases)
        except Exception as error:  # of the learner's function, whatever it is: they are told which, and on what
            at = traceback.extract_tb(error.__traceback__)[-1]
            where = f"line {at.lineno} of {at.name}"
            told = f"On {case.name} it raised {type(error).__name__}: {error} ({where})"
            return Checked(puzzle, told, tuple(rows), drawn, cases)
        reference = case.run(puzzle.reference)
        rows.append(Row(case, theirs, reference, _marks(case, theirs), _marks(case, reference)))
    return Checked(puzzle, None, tuple(rows), drawn, cases)


def _marks(case: Case, run: Simulation) -> Marks:
    time = case.least_seconds / run.makespan if run.makespan else 1.0
    return Marks(time, case.least_bytes(run.makespan) / run.peak_bytes if run.peak_bytes else 1.0)


def _mean(marks: list[Marks]) -> Marks:
    count = max(len(marks), 1)
    return Marks(sum(one.time for one in marks) / count, sum(one.memory for one in marks) / count)


# --- machines and work ------------------------------------------------------------------------------------------------


def _machine(name: str, read: float, write: float, dram: float, duplex: str) -> Hardware:
    """Of `read`, `write` and `dram` bytes a second. All are assumed: a puzzle's machine is made up."""

    def figure(value: float) -> Figure:
        return Figure(value, "assumed", "made up for a puzzle")

    return Hardware(
        name,
        figure(16e9),
        figure(dram),
        disk_read=figure(read),
        disk_write=figure(write),
        disk_duplex="half" if duplex == "half" else "full",
    )


def _items(elements: list[int], resident: int) -> tuple[Item, ...]:
    """Partitions of bfloat16 weights: 10 bytes an element to read, 12 to write, 26 to move in memory."""
    return tuple(
        Item(number, 0 if number < resident else 10 * count, 12 * count, number < resident, 26 * count)
        for number, count in enumerate(elements)
    )


FAMILY = (
    "3 to 14 partitions, all of 1, 2 or 4 million elements, or each of an eighth of that and more; where some of the shown "
    "case stay in RAM, up to a third of them; 2 to 8 buffers; a disk that reads at 0.32 to 10 GB/s and writes at 0.3 to 1.5 "
    "times that, in half or full duplex; memory of 1 to 100 GB/s; gradients, where they come one by one, 1 to 100 ms apart; "
    "where all buffers are asked for, one case at least is slower with one fewer"
)
"""What hidden cases are drawn from."""


def _like(shown: Case, rng: random.Random, number: int) -> Case:
    """A case of the kind of `shown`. Whether the disk, the memory or neither is slow changes from one to the next."""
    count = rng.randint(3, 14)
    largest = rng.choice([1, 2, 4]) * 1_000_000
    even = rng.random() < 0.5
    elements = [largest if even else rng.randint(largest // 8, largest) for _ in range(count)]
    resident = rng.randint(0, count // 3) if any(item.resident for item in shown.work.items) else 0
    disk, dram = 10 ** rng.uniform(8.5, 10), 10 ** rng.uniform(9, 11)
    duplex = rng.choice(["half", "full"])
    hardware = _machine(f"hidden machine {number + 1}", disk, disk * rng.uniform(0.3, 1.5), dram, duplex)
    work = replace(shown.work, items=_items(elements, resident), buffers=rng.randint(2, 8))
    seconds = {kind: 10 ** rng.uniform(-3, -1) for kind in shown.seconds}
    return Case(hardware.name, work, hardware, shown.steps, seconds)


_LAPTOP = _machine("a laptop", 1.7e9, 1.5e9, 20e9, "full")
_EVEN = Work(_items([4_000_000] * 12, 0), 4)

PUZZLES = {
    puzzle.name: puzzle
    for puzzle in (
        Puzzle(
            "right, however slow",
            "Read, update and write every partition, in one buffer. Nothing needs to overlap; nothing may go wrong.",
            schedulers.no_overlap,
            Case("a laptop", _EVEN, _LAPTOP),
        ),
        Puzzle(
            "read ahead",
            "While one partition is updated and written, read the next one into another buffer. What must that read wait for?",
            partial(schedulers.read_ahead, depth=2),
            Case("a laptop", replace(_EVEN, buffers=2), _LAPTOP),
        ),
        Puzzle(
            "write behind",
            "Use all buffers: read, update and write at the same time. Some partitions stay in RAM: `work.items` says which.",
            schedulers.write_behind,
            Case("a laptop", Work(_items([4_000_000] * 12, 2), 4), _LAPTOP),
            all_buffers=True,
        ),
        Puzzle(
            "keep what you have",
            "Three steps. `work.held` says what is in the buffers already; read only what is not. All is written, each step.",
            schedulers.alternating,
            Case("a laptop", replace(_EVEN, buffers=6), _LAPTOP, steps=3),
        ),
        Puzzle(
            "write only what you must",
            "As before, and a partition may stay changed in its buffer: `work.owed` says which are, `tasks.settle` writes one.",
            schedulers.alternating,
            Case("a laptop", replace(_EVEN, buffers=6, may_owe=True), _LAPTOP, steps=3),
        ),
        Puzzle(
            "update in backward",
            "Gradients come one by one, in the order of `work.items`. Update each partition as soon as its own is there.",
            schedulers.in_backward,
            Case("a laptop", replace(_EVEN, gradients=True), _LAPTOP, seconds={"gradient": 0.03}),
        ),
    )
}
"""By name, easiest first."""
