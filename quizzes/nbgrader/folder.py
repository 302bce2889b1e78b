"""What lies in the folder of submissions, read without following a link, waiting on a pipe or trusting a name."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from quizzes.printable import clean
from quizzes.say import _

_LARGEST_TIME = 200  # bytes of a timestamp.txt


@dataclass(frozen=True)
class Handed:
    """One student's folder of an assignment. `refused` says why it is not graded; `shown` is the student's name to print."""

    student: str
    folder: Path
    refused: str = ""
    twins: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return clean(self.student)


def read_file(path: Path, most: int) -> bytes | None:
    """The bytes of an ordinary file; None where there are more than `most`. Raises OSError for a link, a pipe, a folder or
    what may not be read. Nothing blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:  # raises IsADirectoryError for a folder
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(_("{name} is no ordinary file").format(name=clean(path.name)))
        data = file.read(most + 1)
    return None if len(data) > most else data


def handed_in(submitted: Path, assignment: str) -> list[Handed]:
    """Everybody who has something by the assignment's name, ordered by name. Who may not be looked at is listed as refused.

    `twins` are other folders whose names look the same (another case, another Unicode form of the same letters).
    """
    found: list[Handed] = []
    try:
        people = sorted(entry.name for entry in os.scandir(submitted))
    except FileNotFoundError:
        return []
    for name in people:
        folder = submitted / name / assignment
        try:
            outer, inner = (submitted / name).lstat().st_mode, folder.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue  # nothing was handed in for this assignment
        except OSError as error:
            found.append(Handed(name, folder, _("the folder cannot be read: {why}").format(why=error.strerror)))
            continue
        if stat.S_ISLNK(outer) or stat.S_ISLNK(inner):
            found.append(Handed(name, folder, _("the folder is a link to another place")))
        elif not stat.S_ISDIR(inner):
            found.append(Handed(name, folder, _("{name} is no folder").format(name=assignment)))
        elif not os.access(folder, os.R_OK | os.X_OK):
            found.append(Handed(name, folder, _("the folder cannot be read: {why}").format(why=os.strerror(13))))
        else:
            found.append(Handed(name, folder))
    alike: dict[str, list[str]] = defaultdict(list)
    for one in found:
        alike[_look(one.student)].append(one.student)
    return [
        Handed(one.student, one.folder, one.refused, tuple(t for t in alike[_look(one.student)] if t != one.student))
        for one in found
    ]


def _look(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded)


def notebook_in(folder: Path, name: str) -> tuple[Path | None, list[str]]:
    """The notebook to read, and notes: the expected one, else the first by name that is an ordinary file."""
    expected = folder / f"{name}.ipynb"
    notes: list[str] = []
    if _is_ordinary(expected):
        return expected, notes
    if expected.is_symlink():  # it could name any file of the instructor's
        notes.append(_("{name} is a link and was not read").format(name=expected.name))
    others = sorted(path for path in folder.glob("*.ipynb") if _is_ordinary(path))
    if not others:
        notes.append(_("there is no notebook in the submission; {name} was expected").format(name=expected.name))
        return None, notes
    told = _("{name} is missing; {other} was read instead")
    notes.append(told.format(name=expected.name, other=clean(others[0].name)))
    return others[0], notes


def _is_ordinary(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def timestamp_in(folder: Path) -> str | None:
    """The text of timestamp.txt; None where there is none. Raises OSError or ValueError where it cannot be read."""
    try:
        data = read_file(folder / "timestamp.txt", _LARGEST_TIME)
    except FileNotFoundError:
        return None
    if data is None:
        raise ValueError("too long")
    return data.decode("utf-8")
