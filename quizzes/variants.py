"""One learner's edition of a question: its numbers and the order of what is shown. Pure.

Everything follows from SHA-256 of learner, question and name, so it is the same in every process and every Python. The order
of choices is the learner's own and stays the same over attempts; numbers change with each attempt. `Question.variant` holds
both as a text that goes into the answer record, and `redraw` makes the same edition of it again.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from quizzes.formula import evaluate, exact
from quizzes.numbers import render
from quizzes.parts import Figure
from quizzes.question import Question
from quizzes.say import _
from quizzes.values import PLACE

_ORDER = "#"  # beside the names of a variant, and no name itself
_COMPUTED = re.compile(r"\{=([^{}]+)\}")
_RAW = {"plain", "parameters", "dtype"}
_KEPT = {"id", "option", "misconception", "kind", "name", "unit", "formula", "variants", "order", "variant", "shown"}


class VariantError(ValueError):
    """A recorded variant is none of this question; the message says why."""


def draw(question: Question, learner: str, attempt: int = 0, locale: str = "en") -> Question:
    """The edition of `question` for a learner's attempt (0, 1, …): concrete numbers in texts and values, `shown` in order.

    Numbers of two attempts in a row always differ, for each name that has two values or more. `{=formula}` in a text is
    computed. Choices with `stays_last` stay last. Raises ValueError for a negative attempt.
    """
    if attempt < 0:
        raise ValueError(_("attempt={attempt}: 0 or more is needed").format(attempt=attempt))
    chosen: dict[str, Any] = {}
    for name, values in question.variants.items():
        seed = _number(learner, question.id, name)
        # A walk with a step that has no common factor with the length comes to every value before it comes back.
        steps = [step for step in range(1, max(2, len(values))) if math.gcd(step, len(values)) == 1]
        chosen[name] = values[(seed + attempt * steps[(seed >> 64) % len(steps)]) % len(values)]
    order = f"{_number(learner, question.id, _ORDER) % 16**8:08x}"
    return _concrete(question, chosen, order, locale)


def redraw(question: Question, variant: str, locale: str = "en") -> Question:
    """The edition that `variant` records. Raises VariantError for a text that no draw of this question gives."""
    try:
        held = json.loads(variant)
    except (ValueError, RecursionError, TypeError):
        held = None
    if not isinstance(held, dict) or not re.fullmatch(r"[0-9a-f]{8}", str(held.get(_ORDER))):
        raise VariantError(_("question {id}: the recorded variant is not one").format(id=question.id))
    chosen = {name: value for name, value in held.items() if name != _ORDER}
    if set(chosen) != set(question.variants):
        raise VariantError(_("question {id}: the variant is of another edition of the question").format(id=question.id))
    for name, value in chosen.items():
        if isinstance(value, bool) or value not in question.variants[name]:
            raise VariantError(
                _("question {id}: {name} = {value!r} is in no variant of it").format(id=question.id, name=name, value=value)
            )
    return _concrete(question, chosen, str(held[_ORDER]), locale)


def figures(question: Question) -> Iterator[tuple[dict[str, Any], Figure]]:
    """The figure of every edition: the values that a draw may choose together, and the figure with them in it."""
    if question.figure is not None:
        for values in product(*question.variants.values()):
            chosen = dict(zip(question.variants, values, strict=True))
            yield chosen, Figure.model_validate(_bare(question.figure.model_dump(), chosen))


def _number(*parts: str) -> int:
    # Lengths keep ("a", "bc") and ("ab", "c") apart.
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(joined.encode("utf-8", "surrogatepass")).digest(), "big")


def shuffled(ids: list[str], seed: str) -> list[str]:
    """`ids` in an order that depends on `seed` and the ids alone, not on the order given."""
    return sorted(ids, key=lambda name: (_number(seed, name), name))


def _concrete(question: Question, chosen: dict[str, Any], order: str, locale: str) -> Question:
    data = _filled(question.model_dump(), chosen, locale, "")
    last = {choice.id for choice in question.choices if choice.stays_last}
    ids = [choice.id for choice in question.choices]
    if question.choices:
        shown = shuffled([name for name in ids if name not in last], order) + [name for name in ids if name in last]
        data["choices"] = sorted(data["choices"], key=lambda choice: shown.index(choice["id"]))
    elif question.steps:
        shown = shuffled([step.id for step in question.steps], order)
        if shown == [step.id for step in question.steps]:
            shown.reverse()
    else:
        shown = shuffled(list(question.options()), order)
    data["shown"] = shown
    data["variant"] = json.dumps(chosen | {_ORDER: order}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Question.model_validate(data)


def _filled(node: Any, chosen: dict[str, Any], locale: str, key: str) -> Any:
    if isinstance(node, dict):
        if key == "variants":
            return node
        if key == "figure":
            return _bare(node, chosen)
        found = {name: _filled(value, chosen, locale, name) for name, value in node.items()}
        if node.get("formula") is not None:
            found["names"] = chosen | node["names"]
        return found
    if isinstance(node, (list, tuple)):
        return [_filled(part, chosen, locale, key) for part in node]
    if not isinstance(node, str) or key in _KEPT:
        return node
    if key in _RAW:
        return _bare(node, chosen)
    text = PLACE.sub(lambda place: render(_shown(chosen[place[1]]), locale) if place[1] in chosen else place[0], node)
    if chosen:
        text = _COMPUTED.sub(lambda place: render(evaluate(place[1], chosen), locale), text)
    return text


def _bare(node: Any, chosen: dict[str, Any]) -> Any:
    """With the values in their places as they are: numbers for the engine, not for a reader."""
    if isinstance(node, dict):
        return {name: _bare(value, chosen) for name, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [_bare(part, chosen) for part in node]
    if not isinstance(node, str):
        return node
    whole = PLACE.fullmatch(node)
    if whole and whole[1] in chosen:
        return chosen[whole[1]]
    return PLACE.sub(lambda place: str(chosen.get(place[1], place[0])), node)


def _shown(value: Any) -> int | str | Fraction:
    """YAML reads 1e9 as text; a text that is a number is rendered as one."""
    try:
        return exact(value)
    except ValueError:
        return str(value)
