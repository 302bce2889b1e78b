"""The one thread that writes. What has come in while a transaction was being committed goes into the next one together.

A reply goes out only after its transaction is on the disk, so that whoever has one can lose power, and a batch costs one flush
instead of one an answer.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from quizzes.say import _
from quizzes.service.errors import ServiceError
from quizzes.service.hints import Paid, Wanted, paid_by, refusal
from quizzes.service.store import Store, answers, hints

MOST = 256
"""Answers in one transaction."""
GATHER = 0.005
"""Seconds for which the first answer of a batch waits for others: nobody notices, and a class needs a tenth of the commits."""


@dataclass(frozen=True)
class Entry:
    """A judged answer on its way into the database; the fields but `after` are the columns of `answers`."""

    run: str
    learner: str
    lesson: str
    question: str
    attempt: int
    nonce: str
    fingerprint: str
    share: float
    at: str
    reply: bytes
    after: Callable[[Paid], bytes] | None = None
    """The reply to the same answer after hints were taken; None where the question has none."""

    def row(self, reply: bytes) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "after"} | {"reply": reply}


Outcome = bytes | Paid | ServiceError
"""The reply that is recorded, of this answer or of the one that it repeats; what is paid for, once a hint is; or why nothing
was recorded."""
_Costs = dict[tuple[str, str], tuple[float, ...]]


class Writer:
    """`deliver` is called in the thread of the writer with the tickets and outcomes of a batch."""

    def __init__(self, store: Store, attempts: int, deliver: Callable[[Sequence[tuple[Any, Outcome]]], None]) -> None:
        self._store, self._attempts, self._deliver = store, attempts, deliver
        self._queue: queue.SimpleQueue[tuple[Any, Entry | Wanted] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="answers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Writes what is waiting, then ends. It can be started again."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def put(self, ticket: Any, entry: Entry | Wanted) -> None:
        self._queue.put((ticket, entry))

    def _work(self) -> None:
        last = False
        while not last:
            batch = [self._queue.get()]
            time.sleep(GATHER)
            while len(batch) < MOST and batch[-1] is not None and not self._queue.empty():
                batch.append(self._queue.get())
            last = batch[-1] is None
            waiting = [one for one in batch if one is not None]
            if waiting:
                outcomes = self.record([entry for _ticket, entry in waiting])
                self._deliver([(ticket, outcome) for (ticket, _entry), outcome in zip(waiting, outcomes, strict=True)])

    def record(self, entries: Sequence[Entry | Wanted]) -> list[Outcome]:
        """Records a batch; an outcome for each entry, in order. Nothing is raised for a database that fails."""
        try:
            return self._together(entries)
        except SQLAlchemyError as error:
            if _met_another(error):
                # Another process recorded one of them meanwhile. Each by itself tells which.
                return [self._alone(entry) for entry in entries]
            return [_unavailable()] * len(entries)

    def _alone(self, entry: Entry | Wanted) -> Outcome:
        for _try in range(3):
            try:
                return self._together([entry])[0]
            except SQLAlchemyError as error:
                if not _met_another(error):
                    break  # else what the other process wrote is visible now
        return _unavailable()

    def _together(self, entries: Sequence[Entry | Wanted]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        new: list[dict[str, Any]] = []
        asked: list[dict[str, Any]] = []
        with self._store.writing() as connection:
            # Asked again in the transaction: an answer whose body came after a hint had been sent finds it recorded.
            costs = paid_by(connection, entries)
            held = self._repeated(connection, [entry for entry in entries if isinstance(entry, Entry)])
            taken = self._taken(connection, entries)
            for entry in entries:
                place = (entry.run, entry.question)
                if isinstance(entry, Wanted):
                    outcomes.append(self._hint(entry, costs, *taken.get(place, (0, 0.0)), asked))
                    continue
                before = held.get((entry.run, entry.nonce))
                if before is not None:
                    outcomes.append(before[1] if before[0] == entry.fingerprint else _another())
                    continue
                count, best = taken.get(place, (0, 0.0))
                refused = self._refusal(entry, count, best)
                if refused is not None:
                    outcomes.append(refused)
                    continue
                reply = entry.reply
                if entry.after is not None and costs.get(place):
                    reply = entry.after(Paid(costs[place], count))
                held[entry.run, entry.nonce] = (entry.fingerprint, reply)
                taken[place] = (entry.attempt, max(best, entry.share))
                new.append(entry.row(reply))
                outcomes.append(reply)
            if asked:
                asked.sort(key=lambda row: (row["run"], row["question"], row["number"]))
                connection.execute(sa.insert(hints), asked)
            if new:
                # All processes in one order: two that wait for each other's rows would be a deadlock.
                new.sort(key=lambda row: (row["run"], row["question"], row["attempt"]))
                # RETURNING makes SQLAlchemy send many rows in one statement; each statement gives up the interpreter once.
                connection.execute(sa.insert(answers).returning(answers.c.number), new)
        return outcomes

    def _hint(
        self,
        wanted: Wanted,
        costs: _Costs,
        count: int,
        best: float,
        asked: list[dict[str, Any]],
    ) -> Outcome:
        place = (wanted.run, wanted.question)
        paid = Paid(costs.get(place, ()), count)
        if wanted.number <= len(paid.costs):
            return paid
        refused = refusal(wanted, paid, best, self._attempts)
        if refused is not None:
            return refused
        asked.append(wanted.row())
        costs[place] = (*paid.costs, wanted.cost)
        return Paid(costs[place], count)

    def _refusal(self, entry: Entry, count: int, best: float) -> ServiceError | None:
        if best >= 1.0:
            return ServiceError(409, "settled", _("This question is answered right already; nothing can be added."))
        if entry.attempt > self._attempts:
            return ServiceError(409, "no-attempts", _("No attempt is left at this question; the best one counts."))
        if entry.attempt != count + 1:
            said = _("Another answer to this question is recorded since; this one isn't counted. Load the question again.")
            return ServiceError(409, "stale", said)
        return None

    @staticmethod
    def _repeated(connection: sa.Connection, entries: Sequence[Entry]) -> dict[tuple[str, str], tuple[str, bytes]]:
        """(run, nonce) -> (fingerprint, reply) of what is recorded under one of the nonces."""
        chosen = sa.select(answers.c.run, answers.c.nonce, answers.c.fingerprint, answers.c.reply).where(
            answers.c.run.in_({entry.run for entry in entries}), answers.c.nonce.in_({entry.nonce for entry in entries})
        )
        return {(row.run, row.nonce): (row.fingerprint, bytes(row.reply)) for row in connection.execute(chosen)}

    @staticmethod
    def _taken(connection: sa.Connection, entries: Sequence[Entry | Wanted]) -> dict[tuple[str, str], tuple[int, float]]:
        """(run, question) -> (attempts used, best share before hints)."""
        chosen = (
            sa.select(answers.c.run, answers.c.question, sa.func.max(answers.c.attempt), sa.func.max(answers.c.share))
            .where(
                answers.c.run.in_({entry.run for entry in entries}),
                answers.c.question.in_({entry.question for entry in entries}),
            )
            .group_by(answers.c.run, answers.c.question)
        )
        return {(run, question): (count, best) for run, question, count, best in connection.execute(chosen)}


def _met_another(error: SQLAlchemyError) -> bool:
    """Whether a transaction failed only because another process wrote at the same time: a row that is there already, or
    PostgreSQL's 40001 (serialization failure) and 40P01 (deadlock)."""
    return isinstance(error, IntegrityError) or getattr(getattr(error, "orig", None), "sqlstate", None) in ("40001", "40P01")


def _another() -> ServiceError:
    return ServiceError(
        409, "nonce-used", _("Another answer was recorded under this nonce. Choose a new one for a new answer.")
    )


def _unavailable() -> ServiceError:
    return ServiceError(
        503, "not-recorded", _("This could not be recorded and took nothing; send the same again, with the same nonce."), 2.0
    )
