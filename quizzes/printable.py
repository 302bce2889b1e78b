"""Words of others where they are shown: a learner's name on a printed line, a question in a cell of a notebook. Pure."""

from __future__ import annotations

import re


def clean(text: str, most: int = 1000) -> str:
    """One line without control characters, halves of surrogate pairs or marks that turn the direction of writing.

    A learner's words must not move an instructor's cursor, forge a line of the report or stop its printing.
    """
    return "".join(char if char.isprintable() else "�" for char in text)[:most]


def tagless(text: str) -> str:
    """`text` for a Markdown cell: what could begin a tag of HTML is shown as it is written. "a < b" stays as it is."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)
