"""The text of each exercise's cell, out of a submitted notebook, as data. Nothing is run and nothing is parsed as code here."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quizzes.exercises.exercise import Exercise
from quizzes.say import _, _n

LARGEST = 20_000_000  # bytes of a notebook
LARGEST_CELL = 100_000  # characters; the exercises need a few hundred
_STUDENT = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.@+ -]{0,98}[A-Za-z0-9_@+-])?")


class SubmissionError(ValueError):
    """A submission can't be read; the message says why, and its text is safe to show."""


def is_student(name: str) -> bool:
    """Whether `name` can be a student's id: letters of ASCII, digits, `_.@+-` and inner spaces; no path hides in it."""
    return bool(_STUDENT.fullmatch(name)) and ".." not in name


def marker(exercise: Exercise) -> str:
    """The line by which an exercise's cell is known."""
    return f"# Exercise: {exercise.id}"


def read(course: Path, student: str, assignment: str) -> Any:
    """The notebook `course/submitted/student/assignment/assignment.ipynb` as JSON values. Raises SubmissionError.

    No link is followed on the way, in no part of the path: a submission that points elsewhere is refused.
    """
    parts = (student, assignment, f"{assignment}.ipynb")
    folder = os.open(course / "submitted", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = _open(part, os.O_RDONLY | os.O_DIRECTORY, folder)
            os.close(folder)
            folder = inner
        descriptor = _open(parts[-1], os.O_RDONLY | os.O_NONBLOCK, folder)
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise SubmissionError(_("{file} is no ordinary file").format(file=parts[-1]))
        if status.st_size > LARGEST:
            said = _("{file} has {count} bytes; {most} are the most that are read")
            raise SubmissionError(said.format(file=parts[-1], count=status.st_size, most=LARGEST))
        data = file.read(LARGEST + 1)
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = _("nested too deep") if isinstance(error, RecursionError) else str(error)[:100]
        raise SubmissionError(_("{file} is not a notebook: {why}").format(file=parts[-1], why=why)) from None


def _open(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        raise SubmissionError(_("{file} is missing in the submission").format(file=name)) from None
    except OSError as error:
        why = _("a link was handed in, which is not followed") if os.path.islink(f"/proc/self/fd/{folder}/{name}") else ""
        said = _("{file} cannot be read: {error}")
        raise SubmissionError(said.format(file=name, error=why or error.strerror)) from None


def sources(notebook: Any, exercises: Sequence[Exercise]) -> tuple[dict[str, str], list[str]]:
    """The cell's text of each exercise that has one, and notes.

    The cell is the one with the exercise's cell id, else the first with its marker, else the last that defines its function:
    a copied cell, lost metadata or another editor cost nothing.
    """
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return {}, [_("the file has no list of cells: it is not a notebook")]
    texts = [(cell.get("id"), _text(cell)) for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    found: dict[str, str] = {}
    notes: list[str] = []
    for exercise in exercises:
        by_id = [text for name, text in texts if name == f"exercise-{exercise.id}"]
        marked = [text for name, text in texts if marker(exercise) in text.splitlines()[:3]]
        defines = re.compile(rf"^def\s+{exercise.function}\s*\(", re.MULTILINE)
        defined = [text for name, text in texts if defines.search(text)]
        if len(marked) > 1:
            first = _n(
                "{exercise}: {count} cell has its marker; the first counts",
                "{exercise}: {count} cells have its marker; the first counts",
                len(marked),
            )
            original = _n(
                "{exercise}: {count} cell has its marker; the original counts",
                "{exercise}: {count} cells have its marker; the original counts",
                len(marked),
            )
            notes.append((original if by_id else first).format(exercise=exercise.id, count=len(marked)))
        chosen = (by_id[:1] or marked[:1] or defined[-1:] or [""])[0]
        if not chosen.strip():
            notes.append(_("{exercise}: there is no cell for it").format(exercise=exercise.id))
        elif len(chosen) > LARGEST_CELL:
            said = _("{exercise}: its cell has {count} characters; {most} are the most")
            notes.append(said.format(exercise=exercise.id, count=len(chosen), most=LARGEST_CELL))
        else:
            found[exercise.id] = chosen
    return found, notes


def _text(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    if not isinstance(source, str):
        return ""
    # Half of a surrogate pair is valid JSON and no text that can be sent on.
    return source.encode("utf-8", "replace").decode("utf-8")
