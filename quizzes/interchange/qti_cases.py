"""The response processing of an item, as far as it compares one answer with values. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from xml.etree.ElementTree import Element

from quizzes.interchange.decimals import number
from quizzes.interchange.qti_names import attribute, named
from quizzes.interchange.safe_xml import words


@dataclass(frozen=True)
class Case:
    """An answer that is compared: with `value`, or where that is None with the correct one; what it earns, 0 to 1, and the
    identifier of what is told. `near` is how far off a number may be, in per cent where it is `relative`."""

    value: str | None
    score: Fraction
    told: str
    near: Fraction = Fraction(0)
    relative: bool = False


def cases(root: Element, test: str) -> list[Case]:
    """Every case whose condition is one comparison of kind `test`, or any of several. Raises ValueError for no number."""
    found = [case for branch in root.iter() if named(branch) in ("responseIf", "responseElseIf") for case in _of(branch, test)]
    most = max((case.score for case in found), default=Fraction(0))
    if most in (0, 1):
        return found
    return [Case(case.value, case.score / most, case.told, case.near, case.relative) for case in found]


def _of(branch: Element, test: str) -> Iterator[Case]:
    condition = next((part for part in branch if named(part) not in ("", "setOutcomeValue")), None)
    if condition is None or named(condition) not in (test, "or"):
        return
    score, told = Fraction(0), ""
    for outcome in branch:
        base = next((part for part in outcome.iter() if named(part) == "baseValue"), None)
        if named(outcome) != "setOutcomeValue" or base is None:
            continue
        if attribute(base, "baseType") == "identifier":
            told = words(base).strip()
        elif attribute(outcome, "identifier") in ("SCORE", "score"):
            score = number(words(base))
    for part in [condition] if named(condition) == test else condition:
        if named(part) != test:
            continue
        value = next((words(inner) for inner in part if named(inner) == "baseValue"), None)
        near = [number(text) for text in attribute(part, "tolerance").split()] or [Fraction(0)]
        yield Case(value, score, told, min(near), attribute(part, "toleranceMode") == "relative")
