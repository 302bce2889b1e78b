"""Rows for the item analysis, out of what grading leaves: a results file, the gradebook, and the notebooks that were graded."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from quizzes.analysis import Row, rows
from quizzes.grading import Verdict, judge
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.folder import read_file
from quizzes.nbgrader.notebook import LARGEST, read_answers
from quizzes.question import Bank, Question, every
from quizzes.say import _

_LONGEST = 60  # characters of a typed answer that are shown


class AnalysisError(ValueError):
    """What was given cannot be analysed; the message says what it is and what is needed."""


def read(results: Path, gradebook: Path | None = None, students: Path | None = None) -> list[Row]:
    """One row for each learner and question.

    `results` is what `offload-quiz grade --json` or `offload-quiz exercises grade --json` printed, or rows as JSON or CSV (see
    `quizzes.analysis.rows`). The first holds no answers: `gradebook` is then the course's gradebook.db, beside which the
    graded notebooks lie. `students` is a class list with the columns id and language; `students.csv` beside the gradebook
    where there is one. Raises AnalysisError, and BankError where the keys are not installed.
    """
    text = _text(results)
    languages = _languages(students or (gradebook.parent / "students.csv" if gradebook is not None else None), students)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return _rows(results, list(csv.DictReader(io.StringIO(text))))
    if isinstance(content, list):
        return _rows(results, content)
    if not isinstance(content, dict) or not isinstance(content.get("results"), list):
        raise AnalysisError(
            _("{path} holds no results; make it with: offload-quiz grade --json > results.json").format(path=str(results))
        )
    entries = [entry for entry in content["results"] if isinstance(entry, dict) and isinstance(entry.get("student"), str)]
    if any(isinstance(entry.get("exercises"), list) for entry in entries):
        return _rows(results, _of_exercises(entries, languages))
    if gradebook is None:
        if not entries:
            return []
        told = _("{path} has scores and no answers; add --gradebook COURSE/gradebook.db, beside which the answers lie")
        raise AnalysisError(told.format(path=str(results)))
    name = str(content.get("assignment"))
    bank = handed_out(name.removeprefix("quiz-"))
    return _of_course(gradebook, bank, name, [entry["student"] for entry in entries], languages)


def _text(path: Path) -> str:
    try:
        data = read_file(path, 10 * LARGEST)
        if data is None:
            raise AnalysisError(_("{path} is too large to be results").format(path=str(path)))
        return data.decode("utf-8-sig")
    except OSError as error:
        raise AnalysisError(_("{path} cannot be read: {why}").format(path=str(path), why=error.strerror or error)) from None
    except UnicodeDecodeError:
        raise AnalysisError(_("{path} is no text in UTF-8").format(path=str(path))) from None


def _rows(path: Path, records: Sequence[Any]) -> list[Row]:
    if not all(isinstance(record, Mapping) for record in records):
        raise AnalysisError(_("{path} is no list of objects").format(path=str(path)))
    try:
        return rows(records)
    except ValueError as error:
        raise AnalysisError(f"{path}: {error}") from None


def _languages(path: Path | None, asked: Path | None) -> dict[str, str]:
    """Student -> language, of a class list that has such a column."""
    if path is None or (asked is None and not path.is_file()):
        return {}
    listed = csv.DictReader(io.StringIO(_text(path)))
    if "id" not in (listed.fieldnames or []):
        raise AnalysisError(_("{path} has no column id").format(path=str(path)))
    return {(line["id"] or "").strip(): (line.get("language") or "").strip() for line in listed}


def _of_exercises(entries: Sequence[Mapping[str, Any]], languages: Mapping[str, str]) -> list[dict[str, Any]]:
    found = []
    for entry in entries:
        marks = entry.get("exercises")
        for mark in marks if isinstance(marks, list) else []:
            if isinstance(mark, dict) and mark.get("cases"):
                share = mark["passed"] / mark["cases"] if isinstance(mark.get("passed"), int) else None
                who = entry["student"]
                language = languages.get(who, "")
                found.append({"learner": who, "question": mark.get("exercise"), "share": share, "language": language})
    return found


def _of_course(gradebook: Path, bank: Bank, name: str, students: Sequence[str], languages: Mapping[str, str]) -> list[Row]:
    """Rows of a graded quiz. The answers are those that were graded; a mark given by hand in the gradebook is what counts."""
    if not gradebook.is_file():
        raise AnalysisError(_("there is no gradebook {path}").format(path=str(gradebook)))
    shares = _shares(gradebook, name)
    known = {student for student, _question in shares}
    found = []
    for student in students:
        # A name that grading refused has no folder of ours, and must not become a path.
        path = gradebook.parent / "cleaned" / student / name / f"{name}.ipynb"
        if student not in known or not path.is_file():
            continue
        answers, _notes = read_answers(path, bank.questions)
        for question in bank.questions:
            verdict = judge(question, answers.get(question.name))
            share = shares.get((student, question.id), verdict.share)
            language = languages.get(student, "")
            found.append(
                Row(student, question.id, share, picked(question, verdict), verdict.misconceptions, language, question.variant)
            )
    return found


def _shares(path: Path, name: str) -> dict[tuple[str, str], float]:
    """(student, question id) -> share of the points in the gradebook, within 0 and 1."""
    from nbgrader.api import Gradebook, MissingEntry

    found = {}
    with Gradebook(f"sqlite:///{path.resolve()}") as gradebook:
        try:
            submissions = gradebook.find_assignment(name).submissions
        except MissingEntry:
            raise AnalysisError(_("{name} is not in the gradebook {path}").format(name=name, path=str(path))) from None
        for submission in submissions:
            for part in submission.notebooks:
                for mark in part.grades:
                    if mark.max_score:  # a question of no points is judged anew
                        share = float(mark.score) / mark.max_score
                        found[submission.student_id, mark.name] = min(max(share, 0.0), 1.0)
    return found


def picked(question: Question, verdict: Verdict) -> tuple[str, ...]:
    """What an answer counts as: choice ids, "pair: option", one typed text; "(no answer)" where none was understood."""
    answer = verdict.answer
    if not verdict.understood or answer is None:
        return (_("(no answer)"),)
    if question.kind == "order":
        return (" > ".join(answer),)
    if isinstance(answer, dict):
        return tuple(f"{left}: {right}" for left, right in answer.items())
    if isinstance(answer, list):
        return tuple(answer)
    return (str(answer)[:_LONGEST],)


def choices_of(questions: Collection[str]) -> dict[str, dict[str, bool]]:
    """Question id -> choice id -> whether it is right, of the questions that are in a bank here: so that a choice that nobody
    took is shown too. Raises BankError."""
    return {
        one.id: {choice.id: choice.correct for choice in one.choices}
        for bank in every().values()
        for one in bank.questions
        if one.id in questions and one.choices
    }
