"""A question on its way into the bank: what a file said of it, made whole or refused with a reason. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from quizzes.interchange.decimals import as_tolerance, as_value, rational
from quizzes.interchange.notes import Form, with_note
from quizzes.interchange.report import Report
from quizzes.question import UNNAMED, Question, misconceptions
from quizzes.say import _

_NONE = "unnamed0"  # the name of a question until it gets one
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Skipped(ValueError):
    """A question can't be taken over; the message says why and what to do."""


@dataclass
class Draft:
    """One question as a file says it: `data` in the shape of the bank, ids and misconceptions where it has them. `said`: field
    and what of it was lost. `skip` is the reason why it can't be taken over."""

    where: str
    data: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    title: str = ""
    note: dict[str, Any] | None = None
    said: list[tuple[str, str]] = field(default_factory=list)
    skip: str = ""

    def lost(self, name: str, said: str) -> None:
        self.said.append((name, said))


def slug(text: str) -> str:
    """An id of this bank out of any name; "" where nothing of it can stay."""
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,59}", text):
        return text
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:50].strip("-_")


@dataclass
class Names:
    """Ids and names given so far, so that no question gets one twice."""

    lesson: str
    ids: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    times: dict[str, int] = field(default_factory=dict)
    """How often an id or a name was asked for, so that a thousandth copy is not compared with all before it."""

    def id(self, wanted: str) -> str:
        base = slug(wanted) or f"i{self.lesson}-{len(self.ids) + 1}"
        found = base
        while found in self.ids:
            self.times[base] = self.times.get(base, 1) + 1
            found = f"{base[:50]}-{self.times[base]}"
        self.ids.add(found)
        return found

    def name(self, wanted: Any) -> str:
        good = isinstance(wanted, str) and re.fullmatch(r"[A-Za-z]\w{0,30}", wanted) is not None
        found = wanted if good else "q1"
        while found.casefold() in self.names:
            self.times["q#"] = self.times.get("q#", 0) + 1
            found = f"q{self.times['q#']}"
        self.names.add(found.casefold())
        return found


def finish(draft: Draft, form: Form, names: Names, report: Report) -> Question | None:
    """The question of a draft; None, with the reason in `report`, for one that can't be made whole."""
    called = draft.id or draft.title or draft.where
    shown = f"{called} ({draft.where})" if called != draft.where else called
    if draft.skip:
        report.add(shown, "question", draft.skip, "skipped")
        return None
    wanted = slug(draft.id or draft.title)
    found = None
    try:
        if draft.note is not None:
            found = _whole(with_note(draft.data, draft.note, form), names.lesson)
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError):
        report.add(shown, "note", _("it was changed and does not fit the question; the question was read without it"), "lost")
    try:
        found = found or _whole(draft.data, names.lesson)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        report.add(shown, "question", f"{place}: {said}" if place else said, "skipped")
        return None
    except ValueError as error:
        report.add(shown, "question", str(error), "skipped")
        return None
    given = names.id(wanted)
    if wanted and given != wanted:
        report.add(given, "id", _("another question of the file has the id {id}").format(id=wanted), "changed")
    name = names.name(found.name if found.name != _NONE else None)
    if found.name not in (name, _NONE):
        report.add(given, "name", _("another question of the file has the same name"), "changed")
    for name_, said in draft.said:
        report.add(given, name_, said, "lost")
    unnamed = sum(idea == UNNAMED for idea in found.misconceptions)
    if unnamed:
        said = _("the file names none; its wrong answers got {id}").format(id=UNNAMED)
        report.add(given, "misconception", said, "changed")
    return found.model_copy(update={"id": given, "name": name})


def _whole(data: dict[str, Any], lesson: str) -> Question:
    """Every field that the bank wants and no file may have. Raises ValidationError where that does not make a question."""
    found: dict[str, Any] = {"id": "x", "name": _NONE, **data}
    if "prompt" in found and not found["prompt"].strip():
        found["prompt"] = _("(no text)") if not found["prompt"] else found["prompt"]
    known = misconceptions()
    _fill(found, known)
    answers = found.get("answers") or []
    for part in (*answers, *found.get("traps", ())):
        part["value"] = as_value(rational(part["value"]))
        if isinstance(part.get("absolute"), Fraction):
            part["absolute"] = as_tolerance(part["absolute"])
    if answers and answers[0].get("absolute") is None:
        first = answers.pop(0)
        found |= {"value": first["value"], "tolerance": first.get("tolerance", 0.0)}
    if found["kind"] in ("number", "text", "order") and not found.get("explanation"):
        found["explanation"] = _("The imported question has no explanation.")
    return Question.model_validate({name: value for name, value in found.items() if value not in ([], None)})


def _fill(found: dict[str, Any], known: dict[str, Any]) -> None:
    for name, letters in (("choices", _LETTERS), ("pairs", "p"), ("extra", "x"), ("steps", "s")):
        parts = found[name] = [dict(part) for part in found.get(name) or ()]
        used = {part["id"] for part in parts if part.get("id")}
        order = list(range(len(parts)))
        if name == "steps":
            # Steps are shown in the order of their ids, which must tell nothing of the right one.
            order = sorted(order, key=lambda place: hashlib.sha256(parts[place]["text"].encode()).digest())
            order = order[1:] + order[:1] if order == sorted(order) else order
        for rank, place in enumerate(order):
            if not parts[place].get("id"):
                parts[place]["id"] = _free(letters, rank, used)
    for part in (*found["choices"], *found["steps"], *found["extra"]):
        part["text"] = part.get("text") or _("(no text)")
    for part in found["pairs"]:
        part |= {side: part.get(side) or _("(no text)") for side in ("left", "right")}
    for name in ("traps", "wrong", "mistakes"):
        found[name] = [dict(part) for part in found.get(name) or ()]
    for part in (*found["choices"], *found["pairs"], *found["traps"], *found["wrong"], *found["mistakes"]):
        part["explanation"] = part.get("explanation") or _("The imported question does not explain this.")
        if not part.get("correct") and part.get("misconception") not in known:
            part["misconception"] = UNNAMED


def _free(letters: str, rank: int, used: set[str]) -> str:
    wanted = letters[rank] if len(letters) > 1 and rank < len(letters) else f"{letters[0]}{rank + 1}"
    while wanted in used:
        rank += 1
        wanted = f"{letters[0]}{rank + 1}"
    used.add(wanted)
    return wanted
