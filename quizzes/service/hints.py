"""Hints that learners have asked for. A hint has its number, so asking twice is asking once, and a lost reply costs nothing.

A row is written before the hint is sent: whoever has read a hint has paid for it; who never got it asks again, for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from quizzes.say import _
from quizzes.service.errors import ServiceError
from quizzes.service.store import hints


@dataclass(frozen=True)
class Wanted:
    """A hint on its way into the database; the fields but `attempt` and `told` are the columns of `hints`."""

    run: str
    learner: str
    lesson: str
    question: str
    number: int
    """1 for the first."""
    cost: float
    """The share of the points that it takes."""
    at: str
    attempt: int
    """The attempt for which it is asked."""
    told: float
    """The share that the learner was told it takes."""

    def row(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("attempt", "told")}


@dataclass(frozen=True)
class Paid:
    """What a learner has paid for at one question: the cost of each hint, as a share of the points, in order."""

    costs: tuple[float, ...] = ()
    attempts: int = 0
    """Attempts used."""

    @property
    def cost(self) -> float:
        """Of all of them, in [0, 1]."""
        return min(1.0, sum(self.costs))


def refusal(wanted: Wanted, paid: Paid, best: float, attempts: int) -> ServiceError | None:
    """Why a hint that was not paid for yet is not to be had; `best` is the best share so far, of `attempts` that there are."""
    if best >= 1.0 or paid.attempts >= attempts:
        return ServiceError(409, "settled", _("This question is settled; a hint would change nothing. Nothing was taken."))
    if wanted.attempt != paid.attempts + 1:
        said = _("Another answer to this question is recorded since; no hint was taken. Load the question again.")
        return ServiceError(409, "stale", said)
    if wanted.told != wanted.cost:
        said = _("A hint to this question costs {cost:.0%} of the points now, which you were not told. Nothing was taken.")
        return ServiceError(409, "changed", said.format(cost=wanted.cost))
    if wanted.number != len(paid.costs) + 1:
        said = _("Hints come one after the other; the next is number {number}. Nothing was taken.")
        return ServiceError(409, "hint-order", said.format(number=len(paid.costs) + 1))
    return None


def paid_by(connection: sa.Connection, entries: Sequence[Any]) -> dict[tuple[str, str], tuple[float, ...]]:
    """(run, question) -> the costs of the hints that are recorded, for the runs and questions of `entries`."""
    chosen = (
        sa.select(hints.c.run, hints.c.question, hints.c.cost)
        .where(hints.c.run.in_({entry.run for entry in entries}), hints.c.question.in_({entry.question for entry in entries}))
        .order_by(hints.c.number)
    )
    found: dict[tuple[str, str], tuple[float, ...]] = {}
    for run, question, cost in connection.execute(chosen):
        found[run, question] = (*found.get((run, question), ()), cost)
    return found
