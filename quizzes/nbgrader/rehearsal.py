"""A made-up class for a rehearsal: four learners hand in a lesson's quiz, one of them something that is no notebook."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quizzes.nbgrader.course import CourseError
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.notebook import answer_line
from quizzes.question import Question
from quizzes.say import N_, _

PREFIX = "rehearsal-"
"""What the names of made-up learners begin with, so that nobody takes one for a person."""
_UNITS = {"bytes": "{} B", "seconds": "{} s", "bytes_per_second": "{} B/s", "percent": "{} %"}


def right(question: Question) -> Any:
    """An answer that the key says is right, as a learner types it. The question is drawn."""
    if question.kind == "several":
        return [choice.id for choice in question.choices if choice.correct]
    if question.choices:
        return next(choice.id for choice in question.choices if choice.correct)
    if question.kind == "order":
        return [step.id for step in question.steps]
    if question.kind == "match":
        return {pair.id: pair.option for pair in question.pairs}
    if question.kind == "text":
        return question.accepted[0]
    number = f"{float(question.right[0].value.number())!r}".removesuffix(".0")
    return _UNITS.get(question.unit or "", "{}").format(number)


def first(question: Question) -> Any:
    """What somebody answers who takes whatever is printed first."""
    if question.choices:
        return question.choices[0].id
    if question.kind == "order":
        return [step.id for step in question.shown_steps()]
    if question.kind == "match":
        return {pair.id: next(iter(question.options())) for pair in question.pairs}
    return "1"


_PEOPLE: dict[str, tuple[str, Callable[[Question, int], Any] | None]] = {
    "ada": (N_("answers everything right"), lambda question, _place: right(question)),
    "ben": (N_("takes whatever is printed first"), lambda question, _place: first(question)),
    "cleo": (N_("leaves every second question out"), lambda question, place: right(question) if place % 2 == 0 else None),
    "dan": (N_("hands in a file that is no notebook"), None),
}


def hand_in(course: Path, lesson: str) -> dict[str, str]:
    """Fill `course/submitted` with the made-up class; name -> what that learner does.

    Raises CourseError where nothing was released yet, and where people are in `submitted` who are not made up: a rehearsal has
    a course folder of its own. Raises BankError without the keys, OSError where it cannot be written.
    """
    bank = handed_out(lesson)
    name = f"quiz-{bank.lesson}"
    released = course / "release" / name / f"{name}.ipynb"
    if not released.is_file():
        said = _("{path} is not there. Build it first: offload-quiz build --course {course} --lesson {lesson}")
        raise CourseError(said.format(path=released, course=course, lesson=lesson))
    submitted = course / "submitted"
    real = sorted(entry for entry in os.listdir(submitted) if not entry.startswith(PREFIX)) if submitted.is_dir() else []
    if real:
        said = _("{path} has submissions of people ({name} …). Rehearse in a course folder of its own; nothing was written.")
        raise CourseError(said.format(path=submitted, name=ascii(real[0])))
    told = {}
    for person, (does, answers) in _PEOPLE.items():
        target = submitted / f"{PREFIX}{person}" / name / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        if answers is None:
            target.write_bytes(b"\x89PNG, the wrong file")
        else:
            given = {question.name: answers(question, place) for place, question in enumerate(bank.questions)}
            target.write_text(_filled(released, given), encoding="utf-8")
        told[f"{PREFIX}{person}"] = _(does)
    return told


def _filled(released: Path, given: dict[str, Any]) -> str:
    notebook = json.loads(released.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = str(cell.get("id", "")).removesuffix("-answer")
        if cell["cell_type"] == "code" and given.get(name) is not None and str(cell["id"]).endswith("-answer"):
            cell["source"] = answer_line(name, given[name])
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
