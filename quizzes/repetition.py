"""Spaced repetition of what was missed, by FSRS. Pure: cards are dicts of JSON values, the time is given."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fsrs import Card, Rating, Scheduler

# No fuzz: the same answers give the same dates on every computer.
_SCHEDULER = Scheduler(enable_fuzzing=False)


def after(card: Any, share: float, hints: int, now: datetime) -> dict[str, Any] | None:
    """The card after an answer that earned `share` of the points in [0, 1] with `hints` taken, at `now` (with its zone).

    `share` is before hints were paid. None for a question that was never missed and needed no hint: it does not come back. A
    damaged card is begun again.
    """
    held = _card(card)
    if held is None and share == 1.0 and not hints:
        return None
    if held is None:
        held = Card(card_id=1, due=now.astimezone(UTC))  # the default id sleeps to be unique; ours are the names of questions
    rating = Rating.Again if share < 0.5 else Rating.Hard if share < 1 or hints else Rating.Good
    return dict(_SCHEDULER.review_card(held, rating, now.astimezone(UTC))[0].to_dict())


def due_at(cards: dict[str, Any]) -> dict[str, datetime]:
    """When each question is due, in UTC. A damaged card is due at once."""
    never = datetime.min.replace(tzinfo=UTC)
    return {name: held.due if (held := _card(card)) is not None else never for name, card in cards.items()}


def due(cards: dict[str, Any], now: datetime) -> list[str]:
    """The ids of the questions to ask again at `now`, the longest overdue first. A damaged card is due."""
    when = due_at(cards)
    return sorted((name for name, moment in when.items() if moment <= now), key=lambda name: (when[name], name))


def _card(content: Any) -> Card | None:
    try:
        card = Card.from_dict(content)
        return card if card.due.tzinfo is not None else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
