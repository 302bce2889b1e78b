"""What could not be carried from one format into another, question by question. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from quizzes.printable import clean
from quizzes.say import _

Fate = Literal["ours", "changed", "lost", "skipped"]
_SHOWN = 8  # questions named on one printed line; the JSON report names all


@dataclass(frozen=True)
class Entry:
    """One thing that did not go over as it was. `fate`: "ours" is kept in a note that only this program reads, "changed" was
    written or read in another way, "lost" is gone, "skipped" is a question that was left out."""

    question: str
    field: str
    said: str
    fate: Fate


@dataclass
class Report:
    """Everything that an export or import has to say. `questions` counts those that went over."""

    format: str = ""
    questions: int = 0
    entries: list[Entry] = field(default_factory=list)
    _seen: set[Entry] = field(default_factory=set, repr=False)

    def add(self, question: str, name: str, said: str, fate: Fate) -> None:
        entry = Entry(clean(question, 100), clean(name, 100), clean(said, 500), fate)
        if entry not in self._seen:
            self._seen.add(entry)
            self.entries.append(entry)

    def skipped(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.fate == "skipped"]

    def to_json(self) -> dict[str, Any]:
        """{"format", "questions", "skipped", "entries": [{"question", "field", "said", "fate"}]}."""
        entries = [vars(entry) for entry in self.entries]
        skipped = len({entry.question for entry in self.skipped()})
        return {"format": self.format, "questions": self.questions, "skipped": skipped, "entries": entries}

    def lines(self) -> list[str]:
        """For people: one line for each field and what became of it, with the questions that it concerns."""
        grouped: dict[tuple[str, str, str], list[str]] = {}
        for entry in self.entries:
            grouped.setdefault((entry.fate, entry.field, entry.said), []).append(entry.question)
        words = {
            "ours": _("kept for this program only"),
            "changed": _("changed"),
            "lost": _("not carried"),
            "skipped": _("left out"),
        }
        order = list(words)
        found = []
        for (fate, name, said), questions in sorted(grouped.items(), key=lambda row: order.index(row[0][0])):
            found.append(f"{words[fate]}: {name}: {said} ({_listed(questions)})")
        return found


def _listed(questions: Iterable[str]) -> str:
    names = [name for name in dict.fromkeys(questions) if name]
    if not names:
        return _("the file")
    shown = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return shown if more <= 0 else _("{shown} and {more} more").format(shown=shown, more=more)
