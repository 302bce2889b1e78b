"""What comes back of the whole course, and when. Pure but for reading the bank; the time is passed in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quizzes.question import BANK, every
from quizzes.repetition import due_at
from quizzes.say import _


@dataclass(frozen=True)
class Back:
    """A question that comes back at `when` (with its zone)."""

    lesson: str
    name: str
    question: str
    when: datetime


def agenda(cards: dict[str, Any]) -> list[Back]:
    """Every question that comes back, the first due first. A card of a question that is not asked any more is left out."""
    asked = {question.id: (bank.lesson, question.name) for bank in every(BANK).values() for question in bank.questions}
    found = [Back(*asked[question], question, when) for question, when in due_at(cards).items() if question in asked]
    return sorted(found, key=lambda back: (back.when, back.question))


def elsewhere(backs: Iterable[Back], lesson: str, now: datetime) -> list[str]:
    """Lines on what is due in other lessons, and where nothing is due at all, when the next comes back, in local time."""
    every_one = list(backs)
    waiting: dict[str, list[str]] = {}
    for back in every_one:
        if back.when <= now and back.lesson != lesson:
            waiting.setdefault(back.lesson, []).append(back.name)
    lines = [
        _("Lesson {lesson}: {names} due. Ask them with Quiz({lesson!r}).review().").format(
            lesson=number, names=", ".join(names)
        )
        for number, names in sorted(waiting.items())
    ]
    later = [back for back in every_one if back.when > now]
    if later and not any(back.when <= now for back in every_one):
        first, when = later[0], later[0].when.astimezone(now.astimezone().tzinfo).strftime("%Y-%m-%d %H:%M %z")
        lines.append(_("Next is {name} of lesson {lesson}, {when}.").format(name=first.name, lesson=first.lesson, when=when))
    return lines
