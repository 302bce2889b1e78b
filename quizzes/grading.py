"""Judging an answer. Pure: the same question and answer give the same verdict, in a notebook and in a gradebook."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quizzes.numbers import NotANumber, parse_bytes
from quizzes.question import Choice, Question


@dataclass(frozen=True)
class Verdict:
    """`share` of the points in [0, 1]; `understood` is False when nothing could be judged, which costs no attempt."""

    share: float
    message: str
    misconceptions: tuple[str, ...] = ()
    understood: bool = True
    answer: Any = None
    """The answer in the form in which it is recorded: a choice id, a sorted list of them, or the text typed."""

    @property
    def correct(self) -> bool:
        return self.share == 1.0


def judge(question: Question, answer: Any, locale: str = "en") -> Verdict:
    """Judge `answer`: a choice id, several (a list, or text such as "a, c"), or a number with a unit as text.

    Several choices earn (right ones chosen - wrong ones chosen) / right ones, never less than nothing. Anything that is not
    an answer to this question gives a verdict that is not understood and says what to write; nothing is raised.
    """
    if question.kind == "number":
        return _number(question, answer, locale)
    picked = _ids(answer)
    known = [choice.id for choice in question.choices]
    unknown = [name for name in picked if name not in known]
    if not picked or unknown:
        said = f"{unknown[0]!r} is none of the choices" if unknown else "Nothing was chosen"
        example = f'"{known[0]}"' if question.kind == "one" else f'"{known[0]}, {known[1]}"'
        return Verdict(0.0, f"{said}. Choose from {', '.join(known)}; write for example {example}.", understood=False)
    if question.kind == "one":
        if len(picked) > 1:
            return Verdict(0.0, "This question has one answer; choose one.", understood=False)
        (choice,) = (choice for choice in question.choices if choice.id == picked[0])
        return Verdict(float(choice.correct), _line(choice, True), _named(choice), answer=choice.id)
    right = [choice for choice in question.choices if choice.correct]
    chosen = [choice for choice in question.choices if choice.id in picked]
    wrong = [choice for choice in chosen if not choice.correct]
    missed = [choice for choice in right if choice.id not in picked]
    share = max(0.0, (len(right) - len(missed) - len(wrong)) / len(right))
    lines = [_line(choice, True) for choice in chosen]
    if missed:
        lines.append(f"{len(missed)} more {'belongs' if len(missed) == 1 else 'belong'} to the answer.")
    ideas = tuple(idea for choice in wrong for idea in _named(choice))
    return Verdict(share, "\n".join(lines), ideas, answer=sorted(choice.id for choice in chosen))


def _ids(answer: Any) -> list[str]:
    if isinstance(answer, str):
        parts = re.split(r"[\s,;]+", answer.strip().lower())
    elif isinstance(answer, (list, tuple, set, frozenset)):
        parts = [part.strip().lower() for part in answer if isinstance(part, str)]
    else:
        return []
    return sorted({part for part in parts if part})


def _line(choice: Choice, chosen: bool) -> str:
    return f"{'Right' if choice.correct else 'Not so'} ({choice.id}): {choice.explanation}"


def _named(choice: Choice) -> tuple[str, ...]:
    return (choice.misconception,) if choice.misconception else ()


def _number(question: Question, answer: Any, locale: str) -> Verdict:
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)) or not str(answer).strip():
        return Verdict(0.0, 'Write a number with a unit as text, for example "12 GB".', understood=False)
    try:
        given = parse_bytes(str(answer), locale)
    except NotANumber as error:
        return Verdict(0.0, f"{error}.", understood=False)
    text = str(answer).strip()
    value = question.value.number()
    if _close(given, value, question.tolerance):
        return Verdict(1.0, f"Right: {question.explanation}", answer=text)
    for trap in question.traps:
        if _close(given, trap.value.number(), question.tolerance):
            return Verdict(0.0, f"Not so: {trap.explanation}", (trap.misconception,), answer=text)
    powers = range(1, 5)
    if any(_close(given * Fraction(1000, 1024) ** p, value, question.tolerance) for p in powers):
        said = "Not so: the digits are right, but 1 GiB is 1024³ bytes and 1 GB is 1000³."
        return Verdict(0.0, said, ("gib-for-gb",), answer=text)
    if any(_close(given * Fraction(1000) ** p, value, question.tolerance) for p in (*powers, *(-p for p in powers))):
        return Verdict(0.0, "Not so: the digits are right, the unit is not.", answer=text)
    side = "less" if given > value else "more"
    return Verdict(0.0, f"Not so: it is {side}. Count the bytes of one parameter first, then multiply.", answer=text)


def _close(given: Fraction, value: int, tolerance: float) -> bool:
    return abs(given - value) <= Fraction(tolerance) * abs(value)
