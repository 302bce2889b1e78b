"""What the judging service's receipts in a submission are worth. No key of any question is needed for it, and no code is run.

Receipts lie in `receipts.txt` (or any file `receipts*`, or a folder `receipts`) beside the notebook, or anywhere inside it.
They count by the rules of `quizzes.receipts.tally`; each that does not count is named in the notes with the reason.

A question with a receipt that counts has the receipt's points, whatever is typed in the notebook. A question without one earns
nothing, however right the typed answer is: who was judged online could drop a bad receipt and type what was learned from it.
`Trust.typed_too` lets typed answers count for the questions without a receipt.
"""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from quizzes.nbgrader.folder import read_file
from quizzes.nbgrader.notebook import LARGEST
from quizzes.nbgrader.times import to_utc
from quizzes.printable import clean
from quizzes.receipts import PREFIXES, Claims, tally
from quizzes.say import _

MOST = 500  # receipts of one submission that are looked at; checking one takes a tenth of a millisecond
_MOST_FILES, _LARGEST_FILE, _MOST_NOTES = 50, 5_000_000, 8
_RECEIPT = re.compile(rb"(?:%s)\.[^\s\"'\\,;<>()\[\]{}`]{0,9000}" % "|".join(PREFIXES).encode())


@dataclass(frozen=True)
class Trust:
    """Which receipts count."""

    issuers: Mapping[str, str | None] = field(default_factory=dict)
    """did:key of a service -> the time (UTC, as `Claims.at`) until which its key was in use; None: it still is."""
    attempts: int = 2
    """Attempts at a question that count, as the service allowed."""
    typed_too: bool = False
    """Whether a typed answer counts where no receipt does."""


@dataclass(frozen=True)
class Judged:
    best: Mapping[str, Claims] = field(default_factory=dict)
    """By question id, the receipt that counts."""
    notes: tuple[str, ...] = ()
    found: int = 0
    """Receipts that were handed in, good or bad."""

    @property
    def last(self) -> datetime | None:
        """When the last answer that counts was given, as naive UTC."""
        times = [to_utc(claims.at) for claims in self.best.values()]
        return max(times) if times else None


def judged(
    folder: Path,
    notebook: Path | None,
    trust: Trust,
    learner: str,
    points: Mapping[str, float],
    versions: Mapping[str, str],
) -> Judged:
    """The receipts of `learner` in a submission's folder and notebook. Nothing a learner hands in makes it raise.

    `points` and `versions` are by question id (see `quizzes.receipts.tally`). Raises OSError where the folder cannot be listed.
    """
    notes: list[str] = []
    found: dict[str, str] = {}  # receipt -> where it was first seen
    twice: dict[str, str] = {}
    for path in _files(folder, notebook, notes):
        here: set[str] = set()
        for place, text in enumerate(_receipts_in(path, notes), start=1):
            where = _("receipt {place} of {file}").format(place=place, file=clean(path.name, 100))
            if text in here:
                twice.setdefault(text, where)  # the same one in the notebook and in the file is no fault of anyone's
            here.add(text)
            found.setdefault(text, where)
    texts = list(found)
    if len(texts) > MOST:
        told = _("there are {count} receipts; the first {most} were looked at")
        notes.append(told.format(count=len(texts), most=MOST))
        texts = texts[:MOST]
    until = {did: time for did, time in trust.issuers.items() if time is not None}
    counted = tally(texts, frozenset(trust.issuers), learner, points, attempts=trust.attempts, versions=versions, until=until)
    bad = [f"{found[texts[place]]}: {clean(why)}" for place, why in counted.refused]
    refused = {texts[place] for place, _why in counted.refused}
    bad += [
        _("{receipt} is there twice; it counts once").format(receipt=where) for t, where in twice.items() if t not in refused
    ]
    notes += bad[:_MOST_NOTES]
    if len(bad) > _MOST_NOTES:
        notes.append(_("{count} more receipts do not count").format(count=len(bad) - _MOST_NOTES))
    return Judged(counted.best, tuple(notes), len(found))


def count_receipts(folder: Path, notebook: Path | None) -> int:
    """How many receipts are handed in, of whatever kind."""
    return sum(len(_receipts_in(path, [])) for path in _files(folder, notebook, []))


def _files(folder: Path, notebook: Path | None, notes: list[str]) -> list[Path]:
    names = [path for path in folder.glob("receipts*") if not _is_folder(path)]
    if _is_folder(folder / "receipts"):
        names += (folder / "receipts").iterdir()
    if len(names) > _MOST_FILES:
        told = _("there are {count} files of receipts; the first {most} by name were read")
        notes.append(told.format(count=len(names), most=_MOST_FILES))
    return sorted(names)[:_MOST_FILES] + ([notebook] if notebook is not None else [])


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _receipts_in(path: Path, notes: list[str]) -> list[str]:
    most = LARGEST if path.suffix == ".ipynb" else _LARGEST_FILE
    try:
        data = read_file(path, most)
    except OSError as error:
        why = _("it is a link") if error.errno == errno.ELOOP else error.strerror or str(error)
        notes.append(_("{file} was not read: {why}").format(file=clean(path.name, 100), why=clean(why, 200)))
        return []
    if data is None:
        told = _("{file} has more than {most:,} bytes; no receipt was taken from it")
        notes.append(told.format(file=clean(path.name, 100), most=most))
        return []
    return [match.group().decode("utf-8", "replace").rstrip(".") for match in _RECEIPT.finditer(data)]
