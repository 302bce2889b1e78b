"""How well "I am sure" fits what was right. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_BANDS = ((0, 50), (50, 70), (70, 90), (90, 101))


def brier(entries: Iterable[dict[str, Any]]) -> float | None:
    """The mean of (confidence - share of the points)², in [0, 1]: 0 is perfect, 0.25 is saying 50 % always. None for none."""
    squares = [(entry["confidence"] / 100 - entry["share"]) ** 2 for entry in entries if "confidence" in entry]
    return sum(squares) / len(squares) if squares else None


def table(entries: Iterable[dict[str, Any]]) -> str:
    """Lines of text: for each band of confidence how many answers there are and what share was right; and the Brier score."""
    asked = [entry for entry in entries if "confidence" in entry]
    score = brier(asked)
    if score is None:
        return 'No answer has a confidence yet. Say one before you answer: quiz.sure("q1", 90)'
    lines = ["You said      answers  right"]
    for low, high in _BANDS:
        held = [entry["share"] for entry in asked if low <= entry["confidence"] < high]
        if held:
            lines.append(f"{low:3d} to {min(high, 100):3d} %  {len(held):7d}  {sum(held) / len(held):5.0%}")
    return "\n".join([*lines, f"Brier score {score:.2f} (0 is perfect; 0.25 is what saying 50 % each time gives)."])
