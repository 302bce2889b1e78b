"""Hints of a graded quiz on the learner's side: which are asked for, what came, what is told. Pure; its holder has the lock.

A hint is asked for by its number and is never waited for by itself: where the service is away the wish is given up and said, so
that nothing is paid for later that nobody wants any more. Asked for again, the same number costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from quizzes.online.asked import Asked, Offer
from quizzes.say import _


class Hints:
    def __init__(self) -> None:
        self.wanted: dict[str, dict[str, Any]] = {}
        """By question, what is sent to the service."""
        self.said: dict[str, str] = {}
        """By question, why no hint came."""

    def ask(self, question: Asked, number: int, locale: str) -> str:
        """Ask for a hint; why it is not asked for, in a sentence, or "". One that is here already is not asked for again."""
        offer = question.offer
        if offer is None or not offer.count:
            return _("There is no hint to {name}.").format(name=question.name)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= offer.count:
            return _("There is no such hint: write a number from 1 to {count}.").format(count=offer.count)
        if number <= len(offer.texts):
            self.said.pop(question.name, None)
            return ""
        if question.settled:
            return _("No hint was asked for: this question is settled.")
        if number > len(offer.texts) + 1:
            return _("Nothing was asked for: hints come one after the other, and the next is number {number}.").format(
                number=len(offer.texts) + 1
            )
        self.said.pop(question.name, None)
        self.wanted[question.name] = {
            "question": question.name,
            "attempt": question.attempt,
            "hint": number,
            "cost": offer.cost,
            "locale": locale,
            "edition": question.edition,
        }
        return ""

    def came(self, question: Asked, reply: dict[str, Any]) -> Asked | None:
        """The question with the hint that came; None where the questions are to be fetched again to tell."""
        self.wanted.pop(question.name, None)
        offer = question.offer
        if offer is None or reply.get("attempt") != question.attempt or reply.get("hint") != len(offer.texts) + 1:
            return None
        told = {"texts": [*offer.texts, reply.get("text")], "paid": reply.get("paid")}
        try:
            return question.model_copy(update={"offer": Offer.model_validate(offer.model_dump() | told)})
        except ValidationError:
            return None

    def fetched(self, before: Mapping[str, Asked], now: Iterable[Asked]) -> None:
        """A hint whose reply was lost is there after all."""
        for question in now:
            old = before.get(question.name)
            if old is not None and len(lines(old)) < len(lines(question)):
                self.said.pop(question.name, None)

    def refused(self, name: str, why: str) -> None:
        self.wanted.pop(name, None)
        self.said[name] = why

    def give_up(self, why: str) -> set[str]:
        """The service is away: no hint is waited for. The names of the questions of which that is to be said."""
        names = set(self.wanted)
        said = _("No hint came. {why} Ask again later: one hint is paid for once, however often it is asked for.")
        for name in names:
            self.refused(name, said.format(why=why))
        return names


def offered(question: Asked) -> str:
    """How many hints there are and what one costs, in a line; "" where there are none."""
    offer = question.offer
    if offer is None or not offer.count:
        return ""
    told = _("Hints: {count}; each costs {cost:.0%} of the points.").format(count=offer.count, cost=offer.cost)
    if offer.texts:
        told += " " + _("Taken: {taken}, for {paid:.0%} of the points.").format(taken=len(offer.texts), paid=offer.paid)
    return told


def lines(question: Asked) -> list[str]:
    """The hints that were taken, each in a line that says which it is."""
    texts = question.offer.texts if question.offer is not None else ()
    return [_("Hint {number}: {text}").format(number=number, text=text) for number, text in enumerate(texts, 1)]


def how_to(question: Asked) -> str:
    """How to take the next hint as text; "" where there is none to take."""
    offer = question.offer
    if offer is None or question.settled or len(offer.texts) >= offer.count:
        return ""
    number = len(offer.texts) + 1
    return _("To take hint {number}: {code}").format(number=number, code=f'quiz.hint("{question.name}", {number})')
