"""What a learner types for a question. Pure."""

from __future__ import annotations

import difflib
import unicodedata
from typing import Any

from quizzes.question import Bank, Question
from quizzes.say import _


class UnknownQuestion(KeyError):
    """No question has this name; the message says which there are, and which was probably meant."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError alone would show it in quotes, with \\n for each line


def find(bank: Bank, name: Any) -> Question:
    """The question of `name` ("q3", "Q3", " q3", "ｑ３", 3 or its id). Raises UnknownQuestion."""
    text = f"q{name}" if type(name) is int else name
    typed = unicodedata.normalize("NFKC", text).strip().casefold() if isinstance(text, str) else ""
    for question in bank.questions:
        if typed in (question.name.casefold(), question.id):
            return question
    names = [question.name for question in bank.questions]
    near = difflib.get_close_matches(typed, names, n=1, cutoff=0.5)
    said = _("There is no question {name!r}; there are {names}.").format(name=name, names=", ".join(names))
    raise UnknownQuestion(said + (" " + _("Did you mean {name}?").format(name=near[0]) if near else ""))
