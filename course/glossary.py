"""The words of the course, from `glossary.yaml`, as Markdown. Pure but for reading that file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from course.heads import Head
from quizzes.say import _

FILE = Path(__file__).parent / "glossary.yaml"
_KNOWN = {"term", "unit", "lesson", "text", "as"}


class GlossaryError(ValueError):
    """The glossary's source is not as it should be; the message names the file and the term."""


@dataclass(frozen=True)
class Term:
    """`forms` are what its lesson says, the term itself or others; one of them has to be there. `unit` is "" for none."""

    name: str
    lesson: str
    text: str
    unit: str = ""
    forms: tuple[str, ...] = ()


def terms(path: Path = FILE) -> list[Term]:
    """All terms, in the order of the alphabet. Raises GlossaryError."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise GlossaryError(_("{path} cannot be read: {why}").format(path=path, why=error)) from None
    if not isinstance(content, list):
        raise GlossaryError(_("{path} is not a list of terms.").format(path=path))
    found = [_term(path, entry) for entry in content]
    names = [term.name.casefold() for term in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise GlossaryError(_("{path}: {term} is there twice.").format(path=path.name, term=twice))
    return sorted(found, key=lambda term: term.name.casefold())


def _term(path: Path, entry: Any) -> Term:
    named = entry.get("term") if isinstance(entry, dict) else entry
    wrong = _(
        "{path}, {term}: give it `term`, `lesson` (two digits in quotes) and `text`; `unit` and `as` (a list) may be there."
    )
    forms = entry.get("as", []) if isinstance(entry, dict) else None
    whole = isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("term", "lesson", "text"))
    if not whole or not isinstance(forms, list) or not isinstance(entry.get("unit", ""), str) or set(entry) - _KNOWN:
        raise GlossaryError(wrong.format(path=path.name, term=named))
    return Term(entry["term"], entry["lesson"], entry["text"], entry.get("unit", ""), tuple(forms) or (entry["term"],))


def texts(known: Iterable[Term]) -> Iterable[str]:
    """What a translator translates: definitions, units, and terms that are not names."""
    for term in known:
        yield from (term.name, term.text, *filter(None, [term.unit]))


def markdown(known: Iterable[Term], heads: Sequence[Head], say: Callable[[str], str] = str) -> str:
    """The terms whose lesson there is: a heading each, so that a table of contents lists it and a link can lead to it."""
    there = {head.number: head for head in heads}
    parts = []
    for term in sorted((term for term in known if term.lesson in there), key=lambda term: say(term.name).casefold()):
        head = there[term.lesson]
        link = f"[{int(head.number)} · {head.title}]({head.file})"
        behind = _("Unit: {unit}. Taught in {lesson}.") if term.unit else _("Taught in {lesson}.")
        parts.append(
            f"### {say(term.name)}\n\n{say(term.text)} {behind.format(unit=say(term.unit) if term.unit else '', lesson=link)}"
        )
    return "\n\n".join(parts)
