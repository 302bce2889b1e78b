"""What a format can't hold, as one line of JSON that stands in a comment and that other programs pass over. Pure.

A note adds to what the file says and never speaks against it: a part of it counts only where the text or number that it
belongs to is still the one in the file. So a file that was edited is read as it was edited.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quizzes.interchange.decimals import decimal, rational, weight
from quizzes.interchange.texts import clean, one_space
from quizzes.parts import Right
from quizzes.question import Question

MARK = "offload-quiz:"
VERSION = 1
_LOOSE = ("name", "level", "points", "reread", "hints", "hint_cost", "unit", "figure", "several_right")
_TEXTS = ("prompt", "explanation")
_KEYS = {
    "choices": ("text",),
    "traps": ("value",),
    "wrong": ("text",),
    "steps": ("text",),
    "pairs": ("left", "right"),
    "extra": ("text",),
}
_KINDS = frozenset({"one", "plot", "several", "number", "text", "order", "match"})
_ALWAYS = frozenset({"choices.correct", "several_right"})
_LONGEST = 200_000


@dataclass(frozen=True)
class Form:
    """What a format holds: the fields that it carries itself ("points", "choices.id"), what is read of a text that was
    written, and whether that is sure: a short answer of which it is not can't be written at all."""

    name: str
    carried: frozenset[str]
    normal: Callable[[str], str] = clean
    sayable: Callable[[str], bool] = bool
    unexplained: frozenset[str] = frozenset()
    """The kinds of question that have no explanation of their own there."""

    def carries(self, field: str) -> bool:
        """Texts of the question itself are carried by every format but where `unexplained` says otherwise."""
        kind, _dot, name = field.partition(".")
        named = name == "prompt" or (name == "explanation" and kind not in self.unexplained)
        return field in self.carried or field in _ALWAYS or (kind in _KINDS and named)


def note(question: Question, form: Form) -> dict[str, Any]:
    """What a file of this format needs beside its own words to give `question`, an edition, back."""
    whole = question.model_dump(exclude_defaults=True)
    # A format that knows units does not know all of ours.
    loose = [name for name in _LOOSE if name in whole and (name == "unit" or not form.carries(name))]
    found: dict[str, Any] = {name: whole[name] for name in loose}
    if question.kind == "plot":
        found["kind"] = "plot"
    for name in _TEXTS:
        if whole.get(name) and not (_says(form, name, whole[name]) and form.carries(f"{question.kind}.{name}")):
            found[name] = whole[name]
    if any(form.normal(text) != text or not form.sayable(text) for text in question.accepted):
        found["accepted"] = list(question.accepted)
    if question.kind == "number":
        found["right"] = [_exactly(part) for part in question.right]
    for trap, part in zip(question.traps, whole.get("traps", ()), strict=True):
        part["value"] = str(Fraction(trap.value.number()))
    for name, keys in _KEYS.items():
        found[name] = [{"of": _digest(form, part, keys)} | _less(part, name, keys, form) for part in whole.get(name, ())]
    found["mistakes"] = whole.get("mistakes")
    return {"version": VERSION} | {name: value for name, value in found.items() if value or name == "points"}


def _less(part: dict[str, Any], name: str, keys: tuple[str, ...], form: Form) -> dict[str, Any]:
    kept = {}
    for field, value in part.items():
        held = field in keys or form.carries(f"{name}.{field}")
        if field == "option" or (held and _says(form, field, value)):
            continue
        kept[field] = value
    return kept


def _says(form: Form, field: str, value: Any) -> bool:
    """Whether a format that carries this field gives this value of it back exactly."""
    if field == "value":
        return rational(decimal(rational(value))) == rational(value)
    if field == "credit":
        return form.carries("credit exactly") or Fraction(weight(rational(value))) == 100 * rational(value)
    return not isinstance(value, str) or (form.normal(value) == value and form.sayable(value))


def _digest(form: Form, part: dict[str, Any], keys: tuple[str, ...]) -> str:
    texts = [decimal(rational(part[key])) if key == "value" else one_space(form.normal(part[key])) for key in keys]
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:8]


def margin(part: Right) -> Fraction:
    """How far an answer may be from the value, as the judge has it."""
    relative = Fraction(str(part.tolerance)) * abs(Fraction(part.value.number()))
    return max(relative, Fraction(str(part.absolute)) if part.absolute is not None else Fraction(0))


def _exactly(part: Right) -> dict[str, Any]:
    more = {"absolute": part.absolute} if part.absolute is not None else {}
    seen = f"{decimal(part.value.number())}:{decimal(margin(part))}"
    return {"of": seen, "value": str(Fraction(part.value.number())), "tolerance": part.tolerance, **more}


def to_line(content: dict[str, Any]) -> str:
    """One line of ASCII in which no text holds "-" or "[": "--" ends a comment of XML, "[tag:" begins a tag of GIFT."""
    found, inside, escaped = [], False, False
    for char in json.dumps(content, ensure_ascii=True, separators=(",", ":"), sort_keys=True):
        found.append(f"\\u{ord(char):04x}" if inside and not escaped and char in "-[" else char)
        if char == '"' and not escaped:
            inside = not inside
        escaped = char == "\\" and not escaped
    return f"{MARK} {''.join(found)}"


def from_line(line: str) -> dict[str, Any] | None:
    """The note of a comment; None where it is none, or none of this version."""
    text = line.strip()
    if not text.startswith(MARK) or len(text) > _LONGEST:
        return None
    try:
        found = json.loads(text[len(MARK) :])
    except (ValueError, RecursionError):
        return None
    return _cleaned(found) if isinstance(found, dict) and found.get("version") == VERSION else None


def _cleaned(node: Any) -> Any:
    # Outer spaces, which files lose, are what notes are for.
    if isinstance(node, dict):
        return {str(name): _cleaned(value) for name, value in node.items()}
    if isinstance(node, list):
        return [_cleaned(value) for value in node]
    return clean(f"|{node}|")[1:-1] if isinstance(node, str) else node


def with_note(data: dict[str, Any], content: dict[str, Any], form: Form) -> dict[str, Any]:
    """`data` (a question as a file gave it, in the shape of the bank) with what the note adds to it. Nothing is checked: a
    note that was tampered with makes a question that does not validate. Raises ValueError, TypeError for such a one."""
    found = copy.deepcopy(data)
    for name in _LOOSE:
        if name in content and (name not in found or (name == "unit" and found["unit"] == "count")):
            found[name] = content[name]
    if content.get("kind") == "plot" and found["kind"] == "one":
        found["kind"] = "plot"
    for name in _TEXTS:
        told = content.get(name)
        absent = name not in found and not form.carries(f"{found['kind']}.{name}")
        if isinstance(told, str) and (absent or _same(form, name, told, found.get(name, ""))):
            found[name] = told
    told = content.get("accepted")
    if "accepted" in found and isinstance(told, list):
        written = [form.normal(text) for text in told if form.sayable(text)]
        if sorted(set(written)) == sorted(set(found["accepted"])):
            found["accepted"] = told
    _right(found, content.get("right"))
    for name, keys in _KEYS.items():
        left = _join(found.get(name) or [], content.get(name), form, keys)
        if name == "wrong" and found["kind"] == "text":
            found[name] += [entry for entry in left if not form.sayable(entry["text"])]
    if found["kind"] == "order" and isinstance(content.get("mistakes"), list):
        found["mistakes"] = content["mistakes"]
    return found


def _notes(told: Any) -> list[dict[str, Any]]:
    return [entry for entry in told if isinstance(entry, dict)] if isinstance(told, list) else []


def _right(found: dict[str, Any], told: Any) -> None:
    left = _notes(told)
    for part in found.get("answers") or []:
        seen = f"{decimal(rational(part['value']))}:{decimal(rational(part.get('absolute', 0)))}"
        mine = next((entry for entry in left if entry.get("of") == seen), None)
        if mine is None or decimal(rational(mine.get("value"))) != decimal(rational(part["value"])):
            continue
        left.remove(mine)
        part.pop("absolute", None)
        part |= {name: mine[name] for name in ("value", "tolerance", "absolute") if name in mine}


def _join(parts: list[dict[str, Any]], told: Any, form: Form, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    left = _notes(told)
    for part in parts:
        of = _digest(form, part, keys)
        mine = next((entry for entry in left if entry.get("of") == of), None)
        if mine is None:
            continue
        left.remove(mine)
        for name, value in mine.items():
            if name not in ("of", "correct", "option") and (name not in part or _same(form, name, value, part[name])):
                part[name] = value
    return [{name: value for name, value in entry.items() if name != "of"} for entry in left if "text" in entry]


def _same(form: Form, name: str, one: Any, other: Any) -> bool:
    try:
        if name == "value":
            return decimal(rational(one)) == decimal(rational(other))
        if name == "credit":
            return weight(rational(one)) == weight(rational(other))
    except ValueError:
        return False
    return isinstance(one, str) and isinstance(other, str) and one_space(form.normal(one)) == one_space(other)
