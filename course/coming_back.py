"""When a question that was missed comes back, if it is answered right from then on. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from quizzes.repetition import after, due_at

_DAY = 86_400


def days(answers: int = 6, missed: int = 1) -> list[float]:
    """Days from each answer to the next: `missed` wrong ones, then right ones, `answers` in all, each given when it is due.

    The first is answered now; a time below a day is a fraction. Raises ValueError for fewer than one answer that is wrong.
    """
    if missed < 1:
        raise ValueError(f"missed={missed}: what was never missed does not come back")
    now, card, gaps = datetime(2026, 1, 1, tzinfo=UTC), None, list[float]()
    for number in range(answers):
        card = after(card, 0.0 if number < missed else 1.0, 0, now)
        due = due_at({"question": card})["question"]
        gaps.append((due - now).total_seconds() / _DAY)
        now = due + timedelta(seconds=1)
    return gaps


def told(gap: float) -> str:
    """A gap in days as people say it."""
    if gap < 1 / 24:
        return f"{gap * 1440:.0f} min"
    return f"{gap * 24:.0f} h" if gap < 1 else f"{gap:.0f} d"
