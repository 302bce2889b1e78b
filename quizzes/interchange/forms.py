"""What each format holds of a question. Pure."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from quizzes.interchange.decimals import listed
from quizzes.interchange.notes import Form
from quizzes.interchange.report import Report
from quizzes.interchange.texts import as_html_shows
from quizzes.question import Question
from quizzes.say import N_, _

_EXPLAINED = {"choices.explanation", "traps.explanation", "wrong.explanation"}

GIFT = Form(
    "gift",
    frozenset(_EXPLAINED | {"choices.credit"}),
    sayable=lambda text: "->" not in text,
    unexplained=frozenset({"order"}),
)
MOODLE = Form("moodle", frozenset(_EXPLAINED | {"choices.credit", "points", "hints", "hint_cost", "unit"}))
QTI = Form(
    "qti",
    frozenset(
        _EXPLAINED
        | {"choices.id", "choices.credit", "credit exactly", "choices.stays_last", "steps.id", "pairs.id", "extra.id"}
    ),
    normal=as_html_shows,
)


def tell(question: Question, form: Form, report: Report) -> None:
    """Say in `report` what of `question`, an edition, this format can't hold."""
    for name, used, said in _LOOSE:
        if used(question) and not form.carries(name):
            report.add(question.id, name, _(said), "ours")
    parts = {name: getattr(question, name) for name in ("choices", "traps", "wrong", "pairs", "steps")}
    for name, held in parts.items():
        for field in ("misconception", "explanation", "exclusive", "stays_last", "credit"):
            if any(getattr(part, field, None) for part in held) and not form.carries(f"{name}.{field}"):
                report.add(question.id, f"{name}.{field}", _("the format has no place for it"), "ours")
    if question.explanation and question.kind in form.unexplained:
        report.add(question.id, "explanation", _("the format has no place for it"), "ours")
    if question.kind == "order" and form.name == "qti":
        report.add(question.id, "scoring", _("a partly right order earns nothing in other programs that read this"), "lost")
    if question.kind == "several" and not all(choice.correct for choice in question.choices):
        report.add(question.id, "scoring", _("choosing everything earns nothing here only"), "lost")
    if question.kind == "match" and form.name != "qti":
        report.add(question.id, "scoring", _("a wrong pair takes points away here only"), "lost")


def unsayable(question: Question, form: Form, report: Report) -> bool:
    """Whether `question` can't be written in this format at all; `report` says why."""
    if question.kind == "text" and not any(form.sayable(text) for text in question.accepted):
        report.add(question.id, "accepted", _('every accepted answer holds "->", which GIFT takes for a pair'), "skipped")
        return True
    if question.kind == "match" and not all(form.normal(pair.left) for pair in question.pairs):
        report.add(question.id, "pairs.left", _("a left side without text is no question to others"), "skipped")
        return True
    return False


def tell_weights(question: Question, report: Report) -> None:
    """Say in `report` which shares of the points Moodle has no weight for."""
    right = sum(choice.correct for choice in question.choices)
    if question.kind == "several" and not listed(Fraction(1, right)):
        said = _("1/{right} is no weight that Moodle knows; the nearest was written").format(right=right)
        report.add(question.id, "scoring", said, "changed")
    for choice in question.choices:
        if not listed(Fraction(str(choice.credit))):
            said = _("{share} is no weight that Moodle knows; the nearest was written").format(share=choice.credit)
            report.add(question.id, "choices.credit", said, "changed")


_LOOSE: tuple[tuple[str, Callable[[Question], object], str], ...] = (
    ("figure", lambda q: q.figure, N_("the figure is not in the file; others see the words alone")),
    ("hints", lambda q: q.hints, N_("the format has no place for it")),
    ("hint_cost", lambda q: q.hints, N_("the format has no place for it")),
    ("level", lambda q: q.level != 1, N_("the format has no place for it")),
    ("points", lambda q: q.points != 1, N_("the format has no place for it")),
    ("reread", lambda q: q.reread, N_("the format has no place for it")),
    ("unit", lambda q: q.unit not in (None, "count"), N_("others take the bare number in the base unit only")),
    ("mistakes", lambda q: q.mistakes, N_("the format has no place for it")),
)
