"""How well "I am sure" fits what was right. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from quizzes.say import _

_BANDS = ((0, 50), (50, 70), (70, 90), (90, 101))
ENOUGH = 20
"""Answers with a confidence, below which the table says that it can be chance."""


@dataclass(frozen=True)
class Bin:
    """Answers with a confidence from `low` to `high` per cent: how many, mean confidence and share right, in [0, 1]."""

    low: int
    high: int
    count: int
    said: float
    right: float


def _share(entry: dict[str, Any]) -> float:
    # What was known counts here, not what was left of it when the hints were paid.
    return float(entry.get("earned", entry["share"]))


def brier(entries: Iterable[dict[str, Any]]) -> float | None:
    """The mean of (confidence - share of the points)², in [0, 1]: 0 is perfect, 0.25 is saying 50 % always. None for none."""
    squares = [(entry["confidence"] / 100 - _share(entry)) ** 2 for entry in entries if "confidence" in entry]
    return sum(squares) / len(squares) if squares else None


def bins(entries: Iterable[dict[str, Any]]) -> list[Bin]:
    """The bands of confidence that have answers, from low to high."""
    asked, found = [entry for entry in entries if "confidence" in entry], []
    for low, high in _BANDS:
        held = [entry for entry in asked if low <= entry["confidence"] < high]
        if held:
            said = sum(entry["confidence"] for entry in held) / len(held) / 100
            found.append(Bin(low, min(high, 100), len(held), said, sum(map(_share, held)) / len(held)))
    return found


def table(entries: Iterable[dict[str, Any]]) -> str:
    """Lines of text: for each band of confidence how many answers there are and what share was right; and the Brier score."""
    asked = [entry for entry in entries if "confidence" in entry]
    score = brier(asked)
    if score is None:
        return _('No answer has a confidence yet. Say one before you answer: quiz.sure("q1", 90)')
    lines = [_("You said      answers  right")]
    lines += [f"{one.low:3d} to {one.high:3d} %  {one.count:7d}  {one.right:5.0%}" for one in bins(asked)]
    lines.append(_("Brier score {score:.2f} (0 is perfect; 0.25 is what saying 50 % each time gives).").format(score=score))
    if len(asked) < ENOUGH:
        said = _("Answers with a confidence: {count}. With fewer than {least}, all this can be chance.")
        lines.append(said.format(count=len(asked), least=ENOUGH))
    return "\n".join(lines)
