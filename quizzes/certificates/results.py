"""What `offload-quiz grade --json` printed, and whether a student passed by it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from quizzes.certificates import strict_json
from quizzes.say import N_, _

LARGEST_SCORE = Decimal(10**6)
_STEP = Decimal("0.000001")


class ResultsError(ValueError):
    """No certificate can be issued from these results; the message says why and what to do."""


@dataclass(frozen=True)
class Outcome:
    """One student's graded quiz."""

    assignment: str
    score: Decimal
    """Points reached, to six decimals: sums of binary fractions carry dust behind that."""
    max_score: Decimal
    """Points that could be reached, to six decimals."""
    notes: tuple[str, ...]
    """The grader's remarks."""

    def passed(self, pass_mark: Decimal) -> bool:
        """Whether the share `pass_mark` of the points was reached, in exact decimal arithmetic: 2.4 of 3 reaches 0.8."""
        return self.score >= pass_mark * self.max_score


def outcome_of(data: bytes, student: str) -> Outcome:
    """The outcome of `student` in the results file `data`.

    Raises ResultsError when the file is malformed, the student is missing or there twice, or the score cannot be one. An entry
    of another student is looked at only as far as its name, so that one broken entry does not keep the class waiting.
    """
    try:
        value = strict_json.loads(data, number=Decimal)
    except strict_json.MalformedJsonError as error:
        raise ResultsError(_("The results are malformed: {error}. {advice}").format(error=error, advice=_(_AGAIN))) from None
    if not isinstance(value, dict) or not isinstance(value.get("results"), list):
        raise ResultsError(
            _('The results are malformed: there is no object with a list "results". {advice}').format(advice=_(_AGAIN))
        )
    assignment = value.get("assignment")
    if not isinstance(assignment, str) or not assignment.strip():
        raise ResultsError(_('The results are malformed: "assignment" is not a name. {advice}').format(advice=_(_AGAIN)))
    entries = [_named(entry, place) for place, entry in enumerate(value["results"], start=1)]
    found = [entry for entry in entries if entry["student"] == student]
    if not found:
        raise ResultsError(
            _(
                "There is no student {student!r} among the {count} of these results. Write the name exactly as it stands "
                "in them, or grade the student's submission first."
            ).format(student=student, count=len(entries))
        )
    if len(found) > 1:
        raise ResultsError(
            _("Student {student!r} stands in these results {count} times. {advice}").format(
                student=student, count=len(found), advice=_(_AGAIN)
            )
        )
    return _outcome(assignment, found[0])


_AGAIN = N_("Write them anew with `offload-quiz grade --json`.")


def _named(entry: Any, place: int) -> dict[str, Any]:
    if not isinstance(entry, dict) or not isinstance(entry.get("student"), str):
        raise ResultsError(
            _('The results are malformed: entry {place} has no "student". {advice}').format(place=place, advice=_(_AGAIN))
        )
    return entry


def _outcome(assignment: str, entry: dict[str, Any]) -> Outcome:
    student = entry["student"]
    score = _points(entry, "score")
    max_score = _points(entry, "max_score")
    notes = entry.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ResultsError(
            _('The results of {student!r} are malformed: "notes" is not a list of texts. {advice}').format(
                student=student, advice=_(_AGAIN)
            )
        )
    if max_score == 0:
        raise ResultsError(_("The quiz of {student!r} had no points to win, so nobody can pass it.").format(student=student))
    if score > max_score:
        raise ResultsError(
            _("The results of {student!r} cannot be: {score} points of {max_score}. {advice}").format(
                student=student, score=score, max_score=max_score, advice=_(_AGAIN)
            )
        )
    return Outcome(assignment, score, max_score, tuple(notes))


def _points(entry: dict[str, Any], key: str) -> Decimal:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ResultsError(
            _('The results of {student!r} are malformed: "{key}" is not a number. {advice}').format(
                student=entry["student"], key=key, advice=_(_AGAIN)
            )
        )
    if not 0 <= value <= LARGEST_SCORE:
        span = _("between 0 and {largest_score}").format(largest_score=LARGEST_SCORE)
        raise ResultsError(
            _('The results of {student!r} cannot be: "{key}" is not {span}. {advice}').format(
                student=entry["student"], key=key, span=span, advice=_(_AGAIN)
            )
        )
    return Decimal(value).quantize(_STEP, rounding=ROUND_HALF_EVEN)
