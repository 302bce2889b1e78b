"""Words of a learner's (a name, an error, a file's name) as one line that can be printed anywhere. Pure."""

from __future__ import annotations


def clean(text: str, most: int = 1000) -> str:
    """One line without control characters, halves of surrogate pairs or marks that turn the direction of writing.

    A learner's words must not move an instructor's cursor, forge a line of the report or stop its printing.
    """
    return "".join(char if char.isprintable() else "�" for char in text)[:most]
