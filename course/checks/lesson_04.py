"""Lesson 4: a learner's schedule, scored against the bound and drawn beside the reference."""

from __future__ import annotations

from collections.abc import Sequence

from course.two_runs import two_runs
from offload_lab.puzzles import PUZZLES, Checked, check
from offload_lab.schedule import Task
from offload_lab.work import Schedule, Work
from quizzes.answers import shell
from quizzes.say import N_, _

_ONE_BY_ONE = N_(
    "Nothing overlaps yet: each read waits for the write before it. A read has to wait only for what was done in *its own* "
    "buffer. Use another buffer for the next partition."
)
_UPDATE_WAITS = N_(
    "You read ahead, but no update runs beside a write: each waits for the write before it. An update has to wait for its own "
    "read, and for nothing else."
)
_UNUSED = N_("There are buffers that you do not use, so reads wait for one of yours. `work.buffers` says how many there are.")
_BUFFER = N_(
    "A buffer is free when its write has ended, not when its update has: until then it holds the only copy of the new state."
)
_GRADIENTS_FIRST = N_(
    "Do you wait for all gradients before the first update? Backward brings them one by one, and an update needs those of its "
    "own partition only."
)


def check_schedule(schedule: Schedule, name: str) -> bool:
    """Score `schedule` on the puzzle `name`; print it, with a picture beside the reference where a notebook shows one.
    Returns whether it is right and as fast as the reference in every case. Raises KeyError for a puzzle that there is not."""
    puzzle = PUZZLES[name]
    made: list[Sequence[Task] | None] = []

    def watched(work: Work) -> Sequence[Task]:
        made.append(schedule(work))
        return made[-1]  # type: ignore[return-value]

    checked = check(watched, puzzle)
    if made and (made[0] is None or (isinstance(made[0], list) and not made[0])):
        print(_("Not begun. {todo}").format(todo=_(puzzle.ask)))
        return False
    print(checked)
    if told := _idea(checked):
        print(told)
    if checked.rows and shell() is not None:
        from IPython.display import display

        row = checked.rows[0]
        runs = {_("yours"): row.theirs.events, _("reference"): row.reference.events}
        display(two_runs(_("{name}: yours beside the reference, on {case}").format(name=name, case=row.case.name), runs))
    return checked.as_fast


def _idea(checked: Checked) -> str:
    """What is behind a schedule that is wrong, or slower than it has to be; empty where there is nothing to say."""
    if checked.error is not None:
        if "of which backward may not have begun" in checked.error:
            return _(_GRADIENTS_FIRST)
        return _(_BUFFER) if "works in buffer" in checked.error else ""
    if checked.as_fast:
        return ""
    row = max(checked.rows, key=lambda row: row.theirs.makespan / row.reference.makespan)
    lanes: dict[str, list[tuple[float, float]]] = {}
    for event in row.theirs.events:
        lanes.setdefault(event.name, []).append((event.start, event.end))
    reads, updates, writes = (lanes.get(kind, []) for kind in ("read", "update", "write"))
    if not _together(reads, writes) and not _together(reads, updates):
        return _(_ONE_BY_ONE)
    if not _together(updates, writes):
        return _(_UPDATE_WAITS)
    if row.theirs.peak_buffers < row.reference.peak_buffers:
        return _(_UNUSED)
    idle = max(row.theirs.busy, key=lambda lane: row.theirs.busy[lane])
    return _("In the picture, look at the lane that is busiest ({idle}): what does it wait for in its gaps?").format(idle=idle)


def _together(some: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> bool:
    """Whether any of `some` (start, end) runs beside one of `others`, for longer than rounding."""
    return any(min(end, until) - max(start, begun) > 1e-9 for start, end in some for begun, until in others)
