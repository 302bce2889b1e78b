"""A page of feedback for each learner: of the version that was graded, and of nobody else's.

What it shows: the learner's own answers, the points of each question and who gave them, what `told` says (for a right answer
its explanation, for a wrong one why it is wrong; never what would have been right, nothing of one not answered), how late
it was, and what could not be read. No word of a learner's becomes part of the page's markup; the page runs and loads nothing.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from quizzes.nbgrader.cleaned import KNOWN, Paper, fingerprint
from quizzes.nbgrader.due import Due, lateness, shown
from quizzes.nbgrader.folder import notebook_in, read_file
from quizzes.nbgrader.notebook import LARGEST, assignments, listed
from quizzes.nbgrader.roster import Listed
from quizzes.printable import clean
from quizzes.say import _

FOLDER = "feedback"
_POLICY = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
_REFERRER = '<meta name="referrer" content="no-referrer">'
_LONGEST = 2000  # characters of an answer that are shown


@dataclass(frozen=True)
class Part:
    """One question of a learner's page; all texts are plain."""

    name: str
    prompt: str
    answer: str
    score: float
    most: float
    by_hand: bool
    open: bool
    told: str


def path_of(course: Path, assignment: str, student: str) -> Path:
    """Where nbgrader's own `release_feedback` looks for it."""
    return course / FOLDER / student / assignment / f"{assignment}.html"


def write_feedback(
    course: Path, paper: Paper, gradebook: Gradebook, student: str, rule: Due, listed: Listed | None, now: datetime
) -> Path | None:
    """Write the page of `student` from the gradebook and the graded notebook, in place of an older one; None where nothing of
    this student was graded. Raises OSError. Only the instructor's user can read it."""
    made = page(course, paper, gradebook, student, rule, listed, now)
    if made is None:
        return None
    path = path_of(course, paper.name, student)
    for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(made)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    return path


def page(
    course: Path, paper: Paper, gradebook: Gradebook, student: str, rule: Due, listed: Listed | None, now: datetime
) -> str | None:
    """The page as HTML; None where nothing of this student was graded."""
    notebook = _graded(course, paper.name, student)
    try:
        submission = gradebook.find_submission(paper.name, student)
    except MissingEntry:
        return None
    if notebook is None:
        return None
    marks = {mark.name: mark for part in submission.notebooks for mark in part.grades}
    penalty = min(submission.score, submission.late_submission_penalty or 0.0)
    known = notebook.get("metadata", {}).get(KNOWN, {})
    about = list(known.get("submission", {}).get("notes", []))
    if rule.moment is not None and submission.timestamp is not None:
        about += lateness(rule, submission.timestamp, submission.duedate, penalty)
    comments = [comment.comment for part in submission.notebooks for comment in part.comments if comment.comment]
    return render(
        paper.name,
        (listed.name if listed is not None else "") or student,
        submission.score - penalty,
        submission.max_score,
        _parts(paper, notebook, known, marks),
        about + comments,
        submission.timestamp,
        rule.moment.zone if rule.moment is not None else "UTC",
        now,
    )


def _parts(paper: Paper, notebook: dict[str, Any], known: dict[str, Any], marks: dict[str, Any]) -> list[Part]:
    answers: dict[str, Any] = {}
    told: dict[str, str] = {}
    for cell in notebook["cells"]:
        answers.update(assignments(_joined(cell.get("source", ""))))
        outputs = [_joined(output.get("text", "")) for output in cell.get("outputs", [])]
        told[cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", "")] = "\n".join(filter(None, outputs))
    parts = []
    for question in paper.bank.questions:
        mark = marks.get(question.id)
        conflict = known.get(question.id, {}).get("conflict")
        answer = answers.get(question.name, "")
        said = listed(conflict) if conflict else answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        parts.append(
            Part(
                question.name,
                question.prompt,
                said,
                float(mark.score) if mark is not None else 0.0,
                question.points,
                mark is not None and mark.manual_score is not None,
                mark is not None and bool(mark.needs_manual_grade) and mark.manual_score is None,
                told.get(question.id, ""),
            )
        )
    return parts


def render(
    assignment: str,
    name: str,
    score: float,
    most: float,
    parts: list[Part],
    about: list[str],
    handed: datetime | None,
    zone: str,
    now: datetime,
) -> str:
    """The page. Pure; every text goes in escaped. `handed` is naive UTC, `now` has a zone."""
    title = _("{name}, {assignment}: {score:g} of {most:g}").format(name=name, assignment=assignment, score=score, most=most)
    when = _("a time that is not known") if handed is None else shown(handed.replace(tzinfo=UTC), zone)
    made = shown(now.replace(microsecond=0), zone)
    rows = [f"<h1><bdi>{_text(title)}</bdi></h1>"]
    rows.append(f"<p>{_text(_('Of what was handed in at {when}; written {made}.').format(when=when, made=made))}</p>")
    rows += [f"<p>{_text(line)}</p>" for line in about]
    for part in parts:
        points = _("{name}: {score:g} of {most:g}").format(name=part.name, score=part.score, most=part.most)
        rows.append(f"<h2>{_text(points)}</h2><p>{_text(part.prompt)}</p>")
        answer = _("Your answer: {answer}").format(answer=part.answer) if part.answer.strip() else _("Your answer: none")
        rows.append(f"<p><bdi>{_text(answer, _LONGEST)}</bdi></p>")
        if part.by_hand:
            rows.append(f"<p>{_text(_('Your instructor gave these points by hand.'))}</p>")
        elif part.open:
            rows.append(f"<p>{_text(_('Your instructor has yet to decide.'))}</p>")
        rows.append("".join(f"<p>{_text(line)}</p>" for line in part.told.splitlines() if line.strip()))
    head = f'<meta charset="utf-8">{_POLICY}{_REFERRER}<title>{_text(assignment)}</title>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(rows)}</body></html>\n'


def _text(words: str, most: int = 10_000) -> str:
    return escape(clean(" ".join(words.split()), most))


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def _graded(course: Path, assignment: str, student: str) -> dict[str, Any] | None:
    """The notebook that was graded; None where there is none."""
    path = course / "autograded" / student / assignment / f"{assignment}.ipynb"
    try:
        data = read_file(path, LARGEST)
        content = json.loads(data or b"null")
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("cells"), list) else None


def is_newer(course: Path, assignment: str, student: str) -> bool:
    """Whether another notebook lies in the submission than the one that was graded."""
    notebook = _graded(course, assignment, student) or {}
    held = notebook.get("metadata", {}).get(KNOWN, {}).get("submission", {}).get("sha256", "")
    path, _notes = notebook_in(course / "submitted" / student / assignment, assignment)
    return fingerprint(path) != held
