"""What has to stand in the gradebook before a submission is graded: the assignment, its due time, the student's own."""

from __future__ import annotations

from datetime import UTC, timedelta
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import SaveCells

from quizzes.nbgrader.due import Due, DueError, due, keep, load, penalty
from quizzes.nbgrader.roster import Listed
from quizzes.nbgrader.times import Moment
from quizzes.say import _


def enter(gradebook: Gradebook, released: Path, name: str) -> None:
    """Enter an assignment into a gradebook that doesn't know it: one that was deleted, or another database than that of the
    build. `released` is its notebook. Raises OSError, ValueError."""
    try:
        gradebook.find_notebook(name, name)
    except MissingEntry:
        notebook = nbformat.read(released, as_version=4)
        gradebook.update_or_create_assignment(name)
        known = {"notebook": name, "assignment": name, "student": "", "db_url": "", "path": str(released.parent)}
        SaveCells().preprocess(notebook, {"nbgrader": known})


def set_due(gradebook: Gradebook, course: Path, name: str, text: str | None, late: str | None) -> Due:
    """The due time and penalty that hold, after `text` and `late` where these are given. They are kept for the next time.

    A due time that was changed in formgrader since is the gradebook's, and counts. Raises DueError, OSError.
    """
    assignment = gradebook.find_assignment(name)
    held = load(course, name)
    kept = held.moment
    if assignment.duedate is None:
        kept = None
    elif kept is None or kept.utc != assignment.duedate:
        when = assignment.duedate.replace(tzinfo=UTC)
        kept = Moment(when, "UTC", when.isoformat())
    rule = Due(due(text) if text is not None else kept, penalty(late) if late is not None else held.penalty)
    if rule.penalty.percent and rule.moment is None and late is not None:
        raise DueError(_("--late {late} needs a due time; give one with --due").format(late=late))
    if text is not None or late is not None:
        assignment.duedate = None if rule.moment is None else rule.moment.utc
        keep(course, name, None if rule.moment is None else rule.moment.text, rule.penalty.text)
    return rule


def start_submission(gradebook: Gradebook, name: str, student: str, rule: Due, listed: Listed | None) -> None:
    """Enter a student and an empty submission, or make an earlier one ready: its time is that of what is handed in now.

    An extension of the class list goes before one that was granted in formgrader; where the list says nothing that one stays.
    """
    gradebook.update_or_create_student(student)
    submission = gradebook.update_or_create_submission(name, student)
    submission.timestamp = None
    if listed is None or rule.moment is None:
        return
    if listed.due is not None:
        submission.extension = listed.due.utc - rule.moment.utc
    elif listed.extra_minutes is not None:
        submission.extension = timedelta(minutes=listed.extra_minutes)
