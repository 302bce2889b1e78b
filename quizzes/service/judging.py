"""Judges an answer for the service, and says no more of the key than the learner has earned. Pure but for reading the bank.

What a reply says:
A wrong answer with attempts left: the points, the idea behind it by name (for a choice, a number or a word), what to reread.
A wrong answer with none left: also why what was chosen is wrong. Never which choice, number, word or pair is right.
A right answer: its explanation.
An answer that cannot be read: how to write it. It costs no attempt and is not recorded.
A hint: once it is paid for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import did_key, ed25519
from quizzes.grading import Verdict, judge, paid
from quizzes.question import Bank, BankError, Question, every, misconceptions, version
from quizzes.receipts import Claims, ReceiptError, answer_hash, sign, time_text
from quizzes.say import _, _n, language
from quizzes.service.body import Sent, SentHint
from quizzes.service.errors import ServiceError, StartError, encode
from quizzes.service.hints import Paid
from quizzes.translated import asked_in
from quizzes.variants import draw

_EDITIONS = 8192  # drawn questions that are remembered
_OWN_IDEA = ("one", "plot", "number", "text")
"""Kinds whose one answer has one idea. Of several, naming the ideas would tell which of the chosen are wrong."""


@dataclass(frozen=True)
class Judged:
    """`recorded` is False for an answer that could not be read. `reply` is what goes to the learner, bytes of JSON."""

    reply: bytes
    recorded: bool
    question: str = ""
    """The id of the question."""
    share: float = 0.0
    """Before hints."""
    at: str = ""
    after: Callable[[Paid], bytes] | None = None
    """The reply to the same answer after hints were taken, with a receipt of its own."""


class Judge:
    """The graded questions of a folder. Raises StartError for a folder without any, and for a file that cannot be used."""

    def __init__(self, folder: Path, private_key: Ed25519PrivateKey, attempts: int) -> None:
        try:
            banks = every(folder)
            self._ideas: Mapping[str, Mapping[str, str]] = misconceptions()
        except (BankError, OSError) as error:
            raise StartError(f"The questions in {folder} cannot be used: {error}") from None
        if not banks:
            raise StartError(
                f"There are no graded questions in {folder}. They stay with the instructor; name their folder with --keys."
            )
        self.banks: dict[str, Bank] = {bank.lesson: bank for bank in banks.values()}
        if len(self.banks) < len(banks):
            raise StartError(f"Two files in {folder} have questions of the same lesson; put them into one.")
        self._versions = {question.id: version(question) for bank in banks.values() for question in bank.questions}
        self.attempts = attempts
        self._key = private_key
        self.issuer = did_key.did_of(ed25519.public_key(private_key))
        self._edition = lru_cache(maxsize=_EDITIONS)(self._draw)

    def lesson(self, lesson: str) -> Bank:
        """Raises ServiceError 404."""
        if lesson not in self.banks:
            raise ServiceError(404, "no-lesson", _("There are no graded questions of this lesson."))
        return self.banks[lesson]

    def edition(self, lesson: str, name: str, learner: str, attempt: int, locale: str) -> Question:
        """The edition of a question that a learner meets at an attempt (from 1). Raises ServiceError 404."""
        bank = self.lesson(lesson)
        if all(question.name != name for question in bank.questions):
            raise ServiceError(404, "no-question", _("There is no question of this name in the lesson."))
        return self._edition(lesson, name, learner, attempt, locale)

    def _draw(self, lesson: str, name: str, learner: str, attempt: int, locale: str) -> Question:
        with language(locale):
            return draw(asked_in(self.banks[lesson][name], "keys"), learner, attempt - 1, locale)

    def shown(
        self,
        lesson: str,
        learner: str,
        locale: str,
        used: Mapping[str, tuple[int, float]],
        costs: Mapping[str, tuple[float, ...]] | None = None,
    ) -> list[dict[str, Any]]:
        """The questions as a learner may see them, each in the edition to answer next, or the last where it is settled.

        `used`: question id -> (attempts used, best share before hints). `costs`: question id -> those of the hints taken.
        """
        found = []
        for plain in self.lesson(lesson).questions:
            count, best = used.get(plain.id, (0, 0.0))
            settled = best >= 1.0 or count >= self.attempts
            attempt = count if settled else count + 1
            question = self._edition(lesson, plain.name, learner, attempt, locale)
            public = _public(question, locale)
            place = {"attempt": attempt, "attempts_left": 0 if settled else self.attempts - count, "settled": settled}
            # What stands outside the edition may change without making an answer one to another text.
            found.append(public | place | {"edition": _edition_of(public), "confidence": True})
            taken = (costs or {}).get(plain.id, ())
            if question.hints or taken:
                found[-1]["hint_offer"] = {
                    "count": len(question.hints),
                    "cost": question.hint_cost,
                    "texts": question.hints[: len(taken)],
                    "paid": Paid(taken).cost,
                }
        return found

    def asked_for(self, learner: str, lesson: str, sent: SentHint) -> Question:
        """The question to which a hint is asked for. Raises ServiceError 404 for a question or a hint that isn't there, 409 for
        a question that reads otherwise than the learner saw it."""
        question = self.edition(lesson, sent.question, learner, sent.attempt, sent.locale)
        if sent.hint > len(question.hints):
            said = _("There is no such hint; hints to this question: {count}. Nothing was taken.")
            raise ServiceError(404, "no-hint", said.format(count=len(question.hints)))
        if sent.edition and sent.edition != _edition_of(_public(question, sent.locale)):
            said = _("This question has changed since you read it; no hint was taken. Load it again.")
            raise ServiceError(409, "changed", said)
        return question

    def hint(self, learner: str, lesson: str, sent: SentHint, bought: Paid) -> bytes:
        """The reply to somebody who has paid for the hint; with the numbers of the attempt that is asked now."""
        attempt = min(sent.attempt, bought.attempts + 1)
        question = self.edition(lesson, sent.question, learner, attempt, sent.locale)
        reply = {
            "lesson": lesson,
            "question": sent.question,
            "attempt": attempt,
            "hint": sent.hint,
            "count": len(question.hints),
            "text": question.hints[sent.hint - 1],
            "cost": bought.costs[sent.hint - 1],
            "taken": len(bought.costs),
            "paid": bought.cost,
        }
        return encode(reply)

    def judge(self, learner: str, run: str, lesson: str, sent: Sent) -> Judged:
        """Judges, and signs a receipt. It is worth something only once it is recorded: hand it out after that.

        Raises ServiceError 404 for a question that is not there, 409 for one that reads otherwise than the learner saw it, 422
        for an answer that cannot be recorded.
        """
        question = self.edition(lesson, sent.question, learner, sent.attempt, sent.locale)
        if sent.edition and sent.edition != _edition_of(_public(question, sent.locale)):
            said = _("This question has changed since you read it; nothing was recorded, and no attempt used. Load it again.")
            raise ServiceError(409, "changed", said)
        with language(sent.locale):
            verdict = judge(question, sent.answer, sent.locale)
            if not verdict.understood:
                said = {"understood": False, "question": sent.question, "attempt": sent.attempt, "message": verdict.message}
                return Judged(encode(said), recorded=False)
        at = time_text(datetime.now(UTC))
        after = partial(self._reply, learner, run, lesson, sent, question, verdict, at)
        share = min(max(verdict.share, 0.0), 1.0)
        return Judged(after(Paid()), recorded=True, question=question.id, share=share, at=at, after=after)

    def _reply(
        self, learner: str, run: str, lesson: str, sent: Sent, question: Question, verdict: Verdict, at: str, bought: Paid
    ) -> bytes:
        """Raises ServiceError 422."""
        earned = min(max(verdict.share, 0.0), 1.0)
        verdict = paid(verdict, len(bought.costs), bought.cost)
        share = min(max(verdict.share, 0.0), 1.0)
        # Hints stay paid for: whoever has answered right cannot earn more.
        left = 0 if earned >= 1.0 else max(0, self.attempts - sent.attempt)
        with language(sent.locale):
            try:
                claims = Claims(
                    learner=learner,
                    run=run,
                    question=question.id,
                    variant=question.variant,
                    answer_hash=answer_hash(verdict.answer),
                    score=question.points * share,
                    max_score=question.points,
                    attempt=sent.attempt,
                    at=at,
                    nonce=sent.nonce,
                    bank=self._versions[question.id],
                    hints=len(bought.costs),
                )
                receipt = sign(claims, self._key, self.issuer)
            except ReceiptError:
                raise ServiceError(422, "no-answer", _("This answer cannot be recorded; write it shorter.")) from None
            reply = {
                "understood": True,
                "lesson": lesson,
                "run": run,
                "question": sent.question,
                "attempt": sent.attempt,
                "attempts_left": left,
                "settled": left == 0,
                "answer": verdict.answer,
                "variant": question.variant,
                "share": share,
                "score": claims.score,
                "max_score": claims.max_score,
                "message": self._said(question, verdict, left),
                "misconceptions": self._named(question, verdict, left),
                "reread": question.reread,
                "at": at,
                "nonce": sent.nonce,
                "receipt": receipt,
            }
        if sent.confidence is not None:
            reply["confidence"] = sent.confidence
        if bought.costs:
            reply |= {"hints": len(bought.costs), "earned": earned}
        return encode(reply)

    def _named(self, question: Question, verdict: Verdict, left: int) -> list[dict[str, str]]:
        if left and question.kind not in _OWN_IDEA:
            return []
        known = [(name, self._ideas[name]) for name in verdict.misconceptions if name in self._ideas]
        return [{"id": name, "idea": _(idea["idea"]), "reread": _(idea["reread"])} for name, idea in known]

    @staticmethod
    def _said(question: Question, verdict: Verdict, left: int) -> str:
        points = _("{score:g} of {all:g} points.").format(score=question.points * verdict.share, all=question.points)
        if verdict.hints:
            after = _n(
                "{count} hint was taken, and its cost is in the points.",
                "{count} hints were taken, and their cost is in the points.",
                verdict.hints,
            )
            points += " " + after.format(count=verdict.hints)
        if verdict.correct:
            return f"{points}\n{verdict.message}" if verdict.hints else verdict.message
        if left == 1:
            return points + " " + _("One attempt is left.")
        if left:
            return points + " " + _("{count} attempts are left.").format(count=left)
        lines = [points + " " + _("No attempt is left; the best one counts.")]
        if question.kind in ("number", "text", "order"):
            lines.append(verdict.message)
        else:
            chosen = verdict.answer if isinstance(verdict.answer, list) else [verdict.answer]
            lines += [
                f"{_('Not so')} ({choice.id}): {_(choice.explanation)}"
                for choice in question.choices
                if choice.id in chosen and not choice.correct
            ]
        return "\n".join(lines)


def _public(question: Question, locale: str) -> dict[str, Any]:
    public = question.public(locale)
    # An id is the author's and may say what the question is after. Hints stand beside the edition: see `Judge.shown`.
    del public["id"], public["hints"], public["hint_cost"]
    return public


def _edition_of(public: Mapping[str, Any]) -> str:
    """16 hexadecimal digits of all that a learner is shown of a question."""
    return hashlib.sha256(encode(public)).hexdigest()[:16]
