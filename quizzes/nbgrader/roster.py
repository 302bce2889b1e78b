"""Who may be graded: ids checked by pattern and, where there is one, against the class list, before any path is made."""

from __future__ import annotations

import csv
import re
from pathlib import Path

_ID = re.compile(r"[^\W_][\w @.\-]{0,99}")


class RosterError(ValueError):
    """The class list cannot be read; the message says which line and why."""


def is_safe(student: str) -> bool:
    """Whether an id can be part of a path: letters, digits, `_ @ . -` and spaces, no `..`, begun by a letter or digit."""
    return _ID.fullmatch(student) is not None and ".." not in student and student == student.strip()


def read_roster(path: Path) -> frozenset[str]:
    """The ids in the column `id` of a CSV file (UTF-8). Raises RosterError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "id" not in (rows.fieldnames or []):
                raise RosterError(f"{str(path)!r} has no column 'id' in its first line")
            students = [(row.get("id") or "").strip() for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RosterError(f"the class list {str(path)!r} cannot be read: {error}") from None
    for number, student in enumerate(students, start=2):
        if not is_safe(student):
            raise RosterError(f"{str(path)!r}, student {number - 1}: {student!r} is no id that can name a folder")
    return frozenset(students)
