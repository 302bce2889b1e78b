"""Whether receipts of the judging service bear the score that a certificate is to state. Pure but for the bank."""

from __future__ import annotations

from decimal import Decimal

from quizzes.receipts import PREFIXES, Tally, tally
from quizzes.say import _

_DUST = Decimal("0.000001")  # the step of a certificate's score


class JudgedError(ValueError):
    """The receipts do not bear the score; the message says why and what to do."""


def require(data: bytes, judge: str, student: str, lesson: str, score: Decimal) -> Tally:
    """The receipts of `student` for `lesson` in a file, where they are worth at least `score` points.

    The file has a receipt a line; other lines, and receipts of others, of other lessons and other judges, count nothing.
    `judge` is the did:key of the service. Raises JudgedError where the receipts are worth less, or the points of the lesson are
    not known here.
    """
    from quizzes.question import BankError, graded  # brings torch: whoever only verifies shall not wait for it

    try:
        points = {question.id: question.points for question in graded(lesson).questions}
    except BankError as error:
        raise JudgedError(
            _("The points of lesson {lesson} are not known here: {error}.").format(lesson=lesson, error=error)
        ) from None
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    begins = tuple(f"{prefix}." for prefix in PREFIXES)
    found = tally([line for line in lines if line.startswith(begins)], {judge}, student, points)
    if Decimal(repr(found.score)) + _DUST < score:
        why = "; ".join(sorted({reason for _place, reason in found.refused})[:3])
        raise JudgedError(
            _(
                "The receipts of {student} for lesson {lesson} are worth {score:g} points of this judge, and the results "
                "say {normalize:f}."
            ).format(student=student, lesson=lesson, score=found.score, normalize=score.normalize())
            + (f" Refused: {why}" if why else "")
        )
    return found
