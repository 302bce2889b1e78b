"""What makes a question whole: which fields its kind wants, and what an author may get wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from quizzes.formula import FormulaError
from quizzes.say import _
from quizzes.values import PLACE, Value

if TYPE_CHECKING:
    from quizzes.question import Question

_OF_KIND = {
    "one": {"choices", "several_right"},
    "plot": {"choices", "several_right"},
    "several": {"choices"},
    "number": {"value", "answers", "tolerance", "unit", "traps"},
    "text": {"accepted", "wrong"},
    "order": {"steps", "mistakes"},
    "match": {"pairs", "extra"},
}
_EVERY = set().union(*_OF_KIND.values())


def with_options(data: dict[str, Any]) -> dict[str, Any]:
    """Number the right sides of a match question by their text, so that a number tells nothing about its pair."""
    pairs, extra = data.get("pairs") or (), data.get("extra") or ()
    if not all(isinstance(part, dict) for part in (*pairs, *extra)) or not pairs:
        return data
    if all(part.get("option") for part in (*pairs, *extra)):
        return data
    texts = {str(part.get("right")) for part in pairs} | {str(part.get("text")) for part in extra}
    number = {text: str(place) for place, text in enumerate(sorted(texts), 1)}
    return data | {
        "pairs": [part | {"option": number[str(part.get("right"))]} for part in pairs],
        "extra": [part | {"option": number[str(part.get("text"))]} for part in extra],
    }


def complaint(question: Question) -> str:
    """What is wrong with a question, beginning with the field; "" when it is whole."""
    for name in sorted(_EVERY - _OF_KIND[question.kind]):
        if getattr(question, name):
            return _("{name}: a question of kind {kind} has no {name}").format(name=name, kind=question.kind)
    if question.hints and len(question.hints) * question.hint_cost > 1 + 1e-9:
        return _("hint_cost: all hints together cost more than the question is worth")
    by_kind = {"number": _number, "text": _text, "order": _order, "match": _match}
    return by_kind.get(question.kind, _choices)(question) or _variants(question)


def _twice(ids: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _choices(question: Question) -> str:
    choices = question.choices
    right = [choice for choice in choices if choice.correct]
    if twice := _twice(choice.id for choice in choices):
        return _("choices: two have the same id {twice!r}").format(twice=twice)
    if len(choices) < 2:
        return _("choices: at least two are needed, one of them right (several: at least one)")
    if question.kind == "several":
        if not right:
            return _("choices: none is right; at least one of them right is needed")
        if len(right) > 1 and any(choice.exclusive for choice in right):
            return _("choices: a right choice that is exclusive has to be the only right one")
    elif question.several_right and len(right) < 2:
        return _("several_right: {count} of the choices are right; at least two are needed").format(count=len(right))
    elif not question.several_right and len(right) != 1:
        return _(
            "choices: {count} are right; a question of kind {kind} has one of them right (kind: several for more, or "
            "several_right: true where any will do)"
        ).format(count=len(right), kind=question.kind)
    if question.kind == "plot" and question.figure is None:
        return _("figure: a question of kind plot shows one")
    for choice in choices:
        if not choice.correct and choice.misconception is None:
            return _("choices.{id}.misconception: every wrong choice names one").format(id=choice.id)
        if choice.credit and (choice.correct or question.kind == "several"):
            return _("choices.{id}.credit: only a wrong choice of a one-choice question earns a part").format(id=choice.id)
    return ""


def _number(question: Question) -> str:
    if question.value is None and not question.answers:
        return _("value: a number question has a value and no choices")
    if question.unit is None:
        return _(
            "unit: a number question says what it counts; bytes, seconds, bytes_per_second, percent, count, dollars or ratio"
        )
    if not question.explanation:
        return _("explanation: a number question explains its answer")
    return ""


def _text(question: Question) -> str:
    from quizzes.words import plain

    if not question.accepted or not question.explanation:
        return _("accepted: a text question has accepted answers and an explanation")
    right = {plain(word) for word in question.accepted}
    if "" in right:
        return _("accepted: an answer without a letter or digit would accept anything")
    both = [word.text for word in question.wrong if plain(word.text) in right]
    return _("wrong: {both!r} is accepted too").format(both=both[0]) if both else ""


def _order(question: Question) -> str:
    ids = [step.id for step in question.steps]
    if len(ids) < 3:
        return _("steps: at least three are needed")
    if twice := _twice(ids):
        return _("steps: two have the same id {twice!r}").format(twice=twice)
    if not question.explanation:
        return _("explanation: a question of kind order explains its order")
    for mistake in question.mistakes:
        strange = [name for name in mistake.order if name not in ids]
        if strange or len(mistake.order) < 2 or _twice(mistake.order):
            return _("mistakes: {order} has to name two or more of the steps, each once").format(order=list(mistake.order))
        places = [ids.index(name) for name in mistake.order]
        if places == sorted(places):
            return _("mistakes: {order} is in the right order").format(order=list(mistake.order))
    return ""


def _match(question: Question) -> str:
    if len(question.pairs) < 2:
        return _("pairs: at least two are needed")
    if twice := _twice(part.id for part in (*question.pairs, *question.extra)):
        return _("pairs: two have the same id {twice!r}").format(twice=twice)
    if twice := _twice(pair.left for pair in question.pairs):
        return _("pairs: two have the same left side {twice!r}").format(twice=twice)
    rights = {pair.right for pair in question.pairs}
    if len(rights | {part.text for part in question.extra}) < 2:
        return _("pairs: at least two different right sides are needed")
    both = [part.text for part in question.extra if part.text in rights]
    return _("extra: {both!r} belongs to a pair").format(both=both[0]) if both else ""


def values_of(question: Question) -> list[Value]:
    """Every value of a number question, right and wrong."""
    return [part.value for part in (*question.right, *question.traps)]


def _variants(question: Question) -> str:
    for name, values in question.variants.items():
        if not PLACE.fullmatch("{" + name + "}"):
            return _("variants.{name}: a name has letters, digits and _ only").format(name=name)
        if not values or len(set(map(str, values))) != len(values) or any(isinstance(value, bool) for value in values):
            return _("variants.{name}: at least one value is needed, each of them once").format(name=name)
    if question.variant:
        return ""
    for value in values_of(question) if question.kind == "number" else []:
        try:
            strange = value.open_names() - set(question.variants)
        except FormulaError as error:
            return f"value: {error}"
        if strange:
            return _("value: {strange!r} is in no variant and has no value").format(strange=sorted(strange)[0])
    return ""
