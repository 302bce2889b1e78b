"""The edition of a question that is exported: its numbers drawn, its choices in the order of the bank. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from quizzes.interchange.decimals import as_value
from quizzes.interchange.report import Report
from quizzes.parts import Right, Trap
from quizzes.question import Question
from quizzes.say import _
from quizzes.values import Value
from quizzes.variants import draw

READER = "interchange"
"""For whom the numbers of an export are drawn: always the same, so that a second export changes nothing."""


def edition(question: Question, report: Report | None = None) -> Question:
    """`question` with concrete numbers and no variants: what another program can hold, and what its answers are judged by.

    What that leaves out is said in `report`.
    """
    if question.variants and report is not None:
        said = _("one edition was drawn; its other numbers stay in the bank")
        report.add(question.id, "variants", said, "changed")
    drawn = draw(question, READER) if question.variants else question
    data: dict[str, Any] = drawn.model_dump(exclude_defaults=True)
    for name in ("variants", "variant", "shown"):
        data.pop(name, None)
    ids = [choice.id for choice in question.choices]
    if ids:
        data["choices"] = sorted(data["choices"], key=lambda choice: ids.index(choice["id"]))
    for part in (*data.get("pairs", ()), *data.get("extra", ())):
        part.pop("option", None)
    if drawn.value is not None:
        data["value"] = _plain(drawn.value)
    valued: tuple[Right | Trap, ...] = (*drawn.answers, *drawn.traps)
    for held, part in zip(valued, (*data.get("answers", ()), *data.get("traps", ())), strict=True):
        part["value"] = _plain(held.value)
    return Question.model_validate(data)


def _plain(value: Value) -> int | float | str:
    return as_value(Fraction(value.number()))
