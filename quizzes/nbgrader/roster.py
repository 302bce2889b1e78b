"""Who may be graded: ids checked by pattern and, where there is one, against the class list, before any path is made."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from quizzes.nbgrader.times import Moment, moment
from quizzes.printable import clean
from quizzes.say import _

_ID = re.compile(r"[^\W_][\w @.\-]{0,99}")
_MOST_MINUTES = 366 * 24 * 60


class RosterError(ValueError):
    """The class list cannot be read; the message says which line and why."""


@dataclass(frozen=True)
class Listed:
    """One student of a class list. Columns beside `id` may be left out, and so may their cells."""

    id: str
    name: str = ""
    """How feedback calls the student; column `name`."""
    learner: str = ""
    """By what name the judging service knows the student; column `learner`, the id where it is empty."""
    extra_minutes: int | None = None
    """Minutes after the class's due time; column `extra_minutes`."""
    due: Moment | None = None
    """A due time of the student's own; column `due`."""


def is_safe(student: str) -> bool:
    """Whether an id can be part of a path: letters, digits, `_ @ . -` and spaces, no `..`, begun by a letter or digit."""
    return _ID.fullmatch(student) is not None and ".." not in student and student == student.strip()


def read_roster(path: Path) -> frozenset[str]:
    """The ids of a class list; see `read_class`."""
    return frozenset(read_class(path))


def read_class(path: Path) -> dict[str, Listed]:
    """The students of a CSV file (UTF-8) with a column `id`, by id. Raises RosterError that names the line's student."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "id" not in (rows.fieldnames or []):
                raise RosterError(_("{path!r} has no column 'id' in its first line").format(path=str(path)))
            found = [{name: (value or "").strip() for name, value in row.items() if isinstance(name, str)} for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RosterError(_("the class list {path!r} cannot be read: {why}").format(path=str(path), why=error)) from None
    students: dict[str, Listed] = {}
    for number, row in enumerate(found, start=1):
        try:
            one = _listed(row)
            if one.id in students and students[one.id] != one:
                raise ValueError(_("{id!r} is on the list twice, with different entries").format(id=one.id))
        except ValueError as error:
            told = _("{path!r}, student {number}: {why}")
            raise RosterError(told.format(path=str(path), number=number, why=error)) from None
        students[one.id] = one
    return students


def _listed(row: dict[str, str]) -> Listed:
    student, minutes, due = row["id"], row.get("extra_minutes", ""), row.get("due", "")
    if not is_safe(student):
        raise ValueError(_("{id!r} is no id that can name a folder").format(id=student))
    if minutes and due:
        raise ValueError(_("{id!r} has extra_minutes and due; give one of them").format(id=student))
    if minutes and not (minutes.isascii() and minutes.isdigit() and len(minutes) < 8 and int(minutes) <= _MOST_MINUTES):
        told = _("extra_minutes of {id!r} is {value!r}; a whole number of minutes from 0 to {most} is needed")
        raise ValueError(told.format(id=student, value=minutes, most=_MOST_MINUTES))
    try:
        own = moment(due) if due else None
    except ValueError as error:
        raise ValueError(_("due of {id!r}: {why}").format(id=student, why=error)) from None
    return Listed(student, clean(row.get("name", ""), 200), row.get("learner", ""), int(minutes) if minutes else None, own)
