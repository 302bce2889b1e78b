"""What is graded instead of a submission: a fresh notebook with the learner's answers, and what the grader knows beside them.

That knowledge (receipts that count, answers in conflict) is written into the fresh notebook's own metadata, which nobody but
the grader has written, and read back by the preprocessors.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from quizzes.grading import judge
from quizzes.nbgrader.folder import notebook_in, read_file, timestamp_in
from quizzes.nbgrader.judged import Judged, Trust, count_receipts, judged
from quizzes.nbgrader.notebook import LARGEST, Read, assignment_name, filled, read, write
from quizzes.nbgrader.times import to_utc
from quizzes.question import Bank, Question
from quizzes.receipts import Claims, ReceiptError, answer_hash
from quizzes.say import _
from quizzes.variants import VariantError, redraw

CLEANED = "cleaned"
"""The folder of a course in which these notebooks lie."""
KNOWN = "offload_lab"
"""The name under which a notebook's metadata hold what the grader knows."""


@dataclass(frozen=True)
class Paper:
    """The questions of an assignment: as handed out, and as they stand in the bank."""

    bank: Bank
    plain: Mapping[str, Question]
    versions: Mapping[str, str]
    """Both by question id."""

    @property
    def points(self) -> dict[str, float]:
        return {question.id: question.points for question in self.bank.questions}

    @property
    def most(self) -> float:
        return sum(self.points.values())

    @property
    def name(self) -> str:
        return assignment_name(self.bank)


@dataclass(frozen=True)
class Cleaned:
    notes: list[str] = field(default_factory=list)
    conflicts: dict[str, list[Any]] = field(default_factory=dict)
    """By question name, the answers in conflict."""


def clean_submission(course: Path, paper: Paper, student: str, learner: str, folder: Path, trust: Trust | None) -> Cleaned:
    """Write the notebook that is graded for `student`, whom the service calls `learner`. Raises OSError naming the path."""
    path, notes = notebook_in(folder, paper.name)
    found = Read() if path is None else read(path, paper.bank.questions)
    conflicts = dict(found.conflicts)
    notes += found.notes
    receipts = Judged()
    told = _("no answer to {names}")
    if trust is not None:
        receipts = judged(folder, path, trust, learner, paper.points, paper.versions)
        notes += receipts.notes
        notes += _beside(paper, found, receipts, trust)
        told = _("neither a receipt that counts nor an answer for {names}")
        conflicts = {name: values for name, values in conflicts.items() if _is_typed(paper.bank[name], receipts, trust)}
    elif count := count_receipts(folder, path):
        said = _("{count} receipts of the judging service are in the submission and do not count without --issuer")
        notes.append(said.format(count=count))
    given = {*found.answers, *found.conflicts, *(paper.plain[question].name for question in receipts.best)}
    missing = sorted(question.name for question in paper.bank.questions if question.name not in given)
    if missing and path is not None:
        notes.append(told.format(names=", ".join(missing)))
    notebook = filled(paper.bank, found.answers, conflicts)
    handed = {"sha256": fingerprint(path), "notes": notes}
    notebook.metadata[KNOWN] = _known(paper, conflicts, receipts, trust) | {"submission": handed}
    target = course / CLEANED / student / paper.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    notes += _timestamp(folder, target, receipts.last)
    write(notebook, target / f"{paper.name}.ipynb")
    return Cleaned(notes, conflicts)


def fingerprint(path: Path | None) -> str:
    """SHA-256 of a submitted notebook; "" where there is none that can be read."""
    try:
        data = None if path is None else read_file(path, LARGEST)
    except OSError:
        return ""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _is_typed(question: Question, receipts: Judged, trust: Trust | None) -> bool:
    """Whether a question is judged by what is typed in the notebook."""
    return trust is None or (trust.typed_too and question.id not in receipts.best)


def _known(paper: Paper, conflicts: Mapping[str, Any], receipts: Judged, trust: Trust | None) -> dict[str, Any]:
    """By question id, what is known of the questions that are not simply judged as typed."""
    known: dict[str, Any] = {}
    for question in paper.bank.questions:
        claims = receipts.best.get(question.id)
        if claims is not None:
            known[question.id] = {"judged": claims.score, "attempt": claims.attempt, "at": claims.at, "hints": claims.hints}
        elif not _is_typed(question, receipts, trust):
            known[question.id] = {"no_receipt": True}
        elif question.name in conflicts:
            known[question.id] = {"conflict": conflicts[question.name]}
    return known


def known_of(notebook: NotebookNode, question_id: str) -> dict[str, Any]:
    """What the grader knows of a question of a notebook that it wrote; empty where the answer is judged as typed."""
    return dict(notebook.metadata.get(KNOWN, {}).get(question_id, {}))


def _beside(paper: Paper, found: Read, receipts: Judged, trust: Trust) -> list[str]:
    """Notes on what is typed in the notebook beside the receipts."""
    other, lone = [], []
    for question in paper.bank.questions:
        typed = found.conflicts.get(question.name, [])
        typed = [found.answers[question.name]] if question.name in found.answers else typed
        claims = receipts.best.get(question.id)
        if claims is not None and typed and not any(_is_judged(paper.plain[question.id], claims, value) for value in typed):
            other.append(question.name)
        elif claims is None and typed and not trust.typed_too:
            lone.append(question.name)
    notes = []
    if other:
        told = _("another answer than the judged one is typed for {names}; the receipt's points count")
        notes.append(told.format(names=", ".join(other)))
    if lone:
        told = _("an answer is typed for {names} and no receipt counts for it; it earns nothing (--typed-too lets it count)")
        notes.append(told.format(names=", ".join(lone)))
    return notes


def _is_judged(question: Question, claims: Claims, typed: Any) -> bool:
    """Whether a typed answer is the one of which a receipt speaks."""
    try:
        verdict = judge(redraw(question, claims.variant), typed)
        return verdict.understood and answer_hash(verdict.answer) == claims.answer_hash
    except (VariantError, ReceiptError):
        return False


def _timestamp(folder: Path, target: Path, last: datetime | None) -> list[str]:
    """Carry the time of submission over, as the naive UTC that nbgrader's database wants; return notes.

    The service's clock is its own: an answer judged after the learner's timestamp moves it.
    """
    notes: list[str] = []
    when = None
    try:
        text = timestamp_in(folder)
        when = None if text is None else to_utc(text)
    except (OSError, ValueError):
        notes.append(_("timestamp.txt cannot be read; the submission counts as on time"))
    if last is not None:
        when = last if when is None else max(when, last)
    if when is not None:
        (target / "timestamp.txt").write_text(f"{when.isoformat(sep=' ')} UTC", encoding="utf-8")
    return notes
