"""Lesson 4: a learner's schedule, scored against the bound and drawn beside the reference."""

from __future__ import annotations

from functools import partial

from course.contract import LEARNERS_ERRORS
from course.two_runs import two_runs
from offload_lab import schedulers
from offload_lab.puzzles import PUZZLES, Checked, Row, check
from offload_lab.simulate import Simulation
from offload_lab.work import Schedule
from quizzes.answers import shell
from quizzes.say import N_, _

# Schedules that are right and slow, what each of them leaves idle, and how to say it.
_IDEAS: tuple[tuple[Schedule, str], ...] = (
    (
        schedulers.no_overlap,
        N_(
            "Nothing overlaps yet: each read waits for the write before it. A read has to wait only for what was done in *its "
            "own* buffer. Use another buffer for the next partition."
        ),
    ),
    (
        partial(schedulers.read_ahead, depth=2),
        N_(
            "You read one partition ahead, and no further: each update still waits for the write before it, or there are "
            "buffers that you do not use. An update has to wait for its own read; `work.buffers` says how many buffers "
            "there are."
        ),
    ),
    (
        partial(schedulers.write_behind, depth=2),
        N_(
            "Two buffers are not enough for three lanes: while one is read and one is written, none is left for the update. "
            "`work.buffers` says how many there are."
        ),
    ),
)
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
    if _not_begun(schedule, name):
        print(_("Not begun. {todo}").format(todo=_(puzzle.ask)))
        return False
    checked = check(schedule, puzzle)
    print(checked)
    if told := _idea(checked):
        print(told)
    if checked.rows and shell() is not None:
        from IPython.display import display

        row = checked.rows[0]
        runs = {_("yours"): row.theirs.events, _("reference"): row.reference.events}
        display(two_runs(_("{name}: yours beside the reference, on {case}").format(name=name, case=row.case.name), runs))
    return checked.as_fast


def _not_begun(schedule: Schedule, name: str) -> bool:
    try:
        made = schedule(PUZZLES[name].shown.work)
    except LEARNERS_ERRORS:
        return False  # `check` says it, with the line
    return made is None or (isinstance(made, list) and not made)


def _idea(checked: Checked) -> str:
    """What is behind a schedule that is wrong, or slower than it has to be; empty where there is nothing to say."""
    if checked.error is not None:
        if "of which backward may not have begun" in checked.error:
            return _(_GRADIENTS_FIRST)
        return _(_BUFFER) if "works in buffer" in checked.error else ""
    if checked.as_fast:
        return ""
    row = max(checked.rows, key=lambda row: row.theirs.makespan / row.reference.makespan)
    for known, told in _IDEAS:
        try:
            if _same(row, row.case.run(known)):
                return _(told)
        except ValueError:
            continue
    idle = max(row.theirs.busy, key=lambda lane: row.theirs.busy[lane])
    return _("In the picture, look at the lane that is busiest ({idle}): what does it wait for in its gaps?").format(idle=idle)


def _same(row: Row, other: Simulation) -> bool:
    return abs(row.theirs.makespan - other.makespan) <= 1e-6 * other.makespan
