"""Judging an answer. Pure: the same question and answer give the same verdict, in a notebook and in a gradebook.

Shares, by kind:
one, plot: all for a right choice, a wrong one's `credit` where it has one.
several: (right ones chosen - wrong ones chosen) / right ones, at least 0; everything chosen earns 0.
number, text: all or nothing.
order: the share of neighbouring pairs of the right order that are neighbours in the answer, in that order.
match: (right pairs - wrong pairs) / pairs, at least 0; a pair left out is neither.
Each hint taken costs `hint_cost` of the points, whatever the answer earns, down to 0.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from quizzes.numbers import NotANumber, read
from quizzes.parts import Choice, Right
from quizzes.question import Question
from quizzes.say import _, _n
from quizzes.words import plain

_LONGEST = 10_000  # characters of an answer; more is no answer


@dataclass(frozen=True)
class Verdict:
    """`share` of the points in [0, 1]; `understood` is False when nothing could be judged, which costs no attempt."""

    share: float
    message: str
    misconceptions: tuple[str, ...] = ()
    understood: bool = True
    answer: Any = None
    """The answer in the form in which it is recorded: a choice id, a list of ids, a dict of them, or the text typed."""
    hints: int = 0
    """Hints taken, which are in `share` already."""
    earned: float | None = None
    """The share before hints, where some were taken."""

    @property
    def correct(self) -> bool:
        return (self.share if self.earned is None else self.earned) == 1.0


def judge(question: Question, answer: Any, locale: str = "en", hints: int = 0) -> Verdict:
    """Judge `answer`: a choice id, several (a list, or text such as "a, c"), a number with a unit as text, a short text, step
    ids in order, or pairs ({"left id": "option"}, or text such as "a: 1, b: 3").

    Anything that is not an answer to this question gives a verdict that is not understood and says what to write; nothing is
    raised for it. Raises ValueError for a question whose variants are not drawn.
    """
    if question.variants and not question.variant:
        raise ValueError(f"question {question.id} has variants; use quizzes.variants.draw first")
    if isinstance(answer, (str, list, tuple, set, frozenset, dict)) and len(answer) > _LONGEST:
        return _asked(_("The answer is too long to be one."))
    if question.kind == "number":
        verdict = _number(question, answer, locale)
    elif question.kind == "text":
        verdict = _text(question, answer)
    elif question.kind == "order":
        verdict = _order(question, answer)
    elif question.kind == "match":
        verdict = _match(question, answer)
    else:
        verdict = _choices(question, answer)
    taken = min(max(int(hints), 0), len(question.hints))
    return paid(verdict, taken, taken * question.hint_cost)


def paid(verdict: Verdict, hints: int, cost: float) -> Verdict:
    """`verdict` after `hints` hints were taken, which cost the share `cost` of the points in all."""
    if not verdict.understood or not hints:
        return verdict
    share = max(0.0, min(verdict.share, 1.0) - cost)
    return replace(verdict, share=share, hints=hints, earned=verdict.share)


def _asked(message: str) -> Verdict:
    return Verdict(0.0, message, understood=False)


def _choices(question: Question, answer: Any) -> Verdict:
    picked = _ids(answer)
    known = [choice.id for choice in question.choices]
    unknown = [name for name in picked if name not in known]
    if not picked or unknown:
        said = _("{name!r} is none of the choices").format(name=unknown[0]) if unknown else _("Nothing was chosen")
        example = f'"{known[0]}, {known[1]}"' if question.kind == "several" else f'"{known[0]}"'
        told = _("{said}. Choose from {known}; write for example {example}.")
        return _asked(told.format(said=said, known=", ".join(known), example=example))
    chosen = [choice for choice in question.choices if choice.id in picked]
    if question.kind != "several":
        if len(picked) > 1:
            return _asked(_("This question has one answer; choose one."))
        share = 1.0 if chosen[0].correct else chosen[0].credit
        return Verdict(share, _line(chosen[0]), _named(chosen), answer=chosen[0].id)
    alone = [choice for choice in chosen if choice.exclusive]
    if alone and len(chosen) > 1:
        return _asked(_("Choice {name} stands alone; choose it or others.").format(name=alone[0].id))
    right = [choice for choice in question.choices if choice.correct]
    wrong = [choice for choice in chosen if not choice.correct]
    missed = [choice for choice in right if choice.id not in picked]
    share = max(0, len(right) - len(missed) - len(wrong)) / len(right)
    if wrong and len(chosen) == len(question.choices):
        share = 0.0
    lines = [_line(choice) for choice in chosen]
    if missed:
        told = _n("One more belongs to the answer.", "{count} more belong to the answer.", len(missed))
        lines.append(told.format(count=len(missed)))
    return Verdict(share, "\n".join(lines), _named(wrong), answer=sorted(choice.id for choice in chosen))


def _listed(answer: Any) -> list[str]:
    if isinstance(answer, str):
        parts = re.split(r"[\s,;>]+", plain(answer))
    elif isinstance(answer, (list, tuple, set, frozenset)):
        # What is no text stays in, so that it is named as none of the choices and not passed over.
        parts = [plain(part) if isinstance(part, str) else repr(part)[:40] for part in answer]
    else:
        return []
    return [part for part in parts if part]


def _ids(answer: Any) -> list[str]:
    return sorted(set(_listed(answer)))


def _line(choice: Choice) -> str:
    return _told(choice.correct, choice.id, choice.explanation)


def _told(right: bool, name: str, text: str) -> str:
    said = _("Right ({name}): {text}") if right else _("Not so ({name}): {text}")
    return said.format(name=name, text=text)


def _named(choices: list[Choice]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(choice.misconception for choice in choices if choice.misconception and not choice.correct))


def _right(text: str) -> str:
    return _("Right: {text}").format(text=text)


def _wrong(text: str) -> str:
    return _("Not so: {text}").format(text=text)


def _number(question: Question, answer: Any, locale: str) -> Verdict:
    unit = question.unit or "count"
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)) or not str(answer).strip():
        return _asked(_('Write a number with a unit as text, for example "12 GB".'))
    try:
        # A number that is not text comes from Python, not from a keyboard, and is written as Python writes it.
        given = read(str(answer), unit, locale if isinstance(answer, str) else "en")
    except NotANumber as error:
        return _asked(f"{error}.")
    text = str(answer).strip()
    note = f"\n{given.note}." if given.note else ""
    if any(_close(given.value, right) for right in question.right):
        return Verdict(1.0, _right(question.explanation) + note, answer=text)
    nearest = question.right[0]
    for trap in question.traps:
        if _close(given.value, Right(value=trap.value, tolerance=nearest.tolerance, absolute=nearest.absolute)):
            return Verdict(0.0, _wrong(trap.explanation) + note, (trap.misconception,), answer=text)
    if unit in ("bytes", "bytes_per_second"):
        powers = range(1, 5)
        if any(_close(given.value * Fraction(1000, 1024) ** p, nearest) for p in powers):
            said = _wrong(_("the digits are right, but 1 GiB is 1024³ bytes and 1 GB is 1000³."))
            return Verdict(0.0, said, ("gib-for-gb",), answer=text)
        if any(_close(given.value * Fraction(1000) ** p, nearest) for p in (*powers, *(-p for p in powers))):
            return Verdict(0.0, _wrong(_("the digits are right, the unit is not.")), answer=text)
    if given.value < nearest.value.number():
        said = _("your number is too small.")
    else:
        said = _("your number is too large.")
    return Verdict(0.0, _wrong(said) + note, answer=text)


def _close(given: Fraction, right: Right) -> bool:
    value = right.value.number()
    # str() gives back what the author wrote, so that 45.8 ± 0.2 ends at 46 and not at the double beside it.
    relative = Fraction(str(right.tolerance)) * abs(value)
    absolute = Fraction(str(right.absolute)) if right.absolute is not None else Fraction(0)
    return abs(given - value) <= max(relative, absolute)


def _text(question: Question, answer: Any) -> Verdict:
    if not isinstance(answer, str) or not plain(answer):
        return _asked(_("Write a word or a few as text."))
    found = plain(answer)
    if found in {plain(word) for word in question.accepted}:
        return Verdict(1.0, _right(question.explanation), answer=answer.strip())
    for word in question.wrong:
        if plain(word.text) == found:
            return Verdict(0.0, _wrong(word.explanation), (word.misconception,), answer=answer.strip())
    return Verdict(0.0, _wrong(_("that is another word than the one looked for.")), answer=answer.strip())


def _order(question: Question, answer: Any) -> Verdict:
    right = [step.id for step in question.steps]
    given = [] if isinstance(answer, (set, frozenset)) else _listed(answer)
    if sorted(given) != sorted(right):
        example = ", ".join(step.id for step in question.shown_steps())
        return _asked(_('Write every step once, in order, for example "{example}".').format(example=example))
    neighbours = set(itertools.pairwise(given))
    kept = sum(pair in neighbours for pair in itertools.pairwise(right))
    if given == right:
        return Verdict(1.0, _right(question.explanation), answer=given)
    place = {name: number for number, name in enumerate(given)}
    told = [mistake for mistake in question.mistakes if _in_order([place[name] for name in mistake.order])]
    said = _("{kept} of {all} steps follow the one before them as they should.").format(kept=kept, all=len(right) - 1)
    lines = [_wrong(said), *(mistake.explanation for mistake in told)]
    ideas = tuple(dict.fromkeys(mistake.misconception for mistake in told))
    return Verdict(kept / (len(right) - 1), "\n".join(lines), ideas, answer=given)


def _in_order(places: list[int]) -> bool:
    return places == sorted(places)


def _match(question: Question, answer: Any) -> Verdict:
    given = _pairs(question, answer)
    if given is None:
        example = ", ".join(f"{pair.id}: {name}" for pair, name in zip(question.pairs, question.options(), strict=False))
        return _asked(_('Write which belongs to which, for example "{example}".').format(example=example))
    lines, ideas, right, wrong = [], [], 0, 0
    for pair in question.pairs:
        if pair.id not in given:
            continue
        if given[pair.id] == pair.option:
            right += 1
            lines.append(_told(True, pair.id, pair.explanation))
        else:
            wrong += 1
            ideas.append(pair.misconception)
            lines.append(_told(False, pair.id, pair.explanation))
    share = max(0, right - wrong) / len(question.pairs)
    return Verdict(share, "\n".join(lines), tuple(dict.fromkeys(ideas)), answer=dict(sorted(given.items())))


def _pairs(question: Question, answer: Any) -> dict[str, str] | None:
    """Pair id -> option number; None for what is no answer."""
    if isinstance(answer, str):
        answer = dict(re.findall(r"([a-z0-9_-]+?)\s*[:=>]\s*([a-z0-9_-]+)", plain(answer)))
    if not isinstance(answer, dict) or not answer:
        return None
    # Only the numbers offered: a pair's own id, taken for its right side, would be the key.
    options = question.options()
    known = {pair.id for pair in question.pairs}
    found = {}
    for left, right in answer.items():
        if not isinstance(left, str) or not isinstance(right, (str, int)) or plain(left) not in known:
            return None
        option = plain(str(right))
        if option not in options:
            return None
        found[plain(left)] = option
    return found
