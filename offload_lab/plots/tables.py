"""The text twin of a figure: sentences and tables, for a terminal, for a screen reader, and for a copy into a message. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; the first column names the row."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Columns of equal width, the first to the left, the others to the right."""
        lines = [list(self.headers), *map(list, self.rows)]
        widths = [max(map(_cells, column)) for column in zip(*lines, strict=True)]
        printed = [
            "  ".join(_padded(cell, widths[number], left=number == 0) for number, cell in enumerate(line)) for line in lines
        ]
        return "\n".join(line.rstrip() for line in ([f"{self.caption}:"] if self.caption else []) + printed)

    def html(self) -> str:
        """A <table> whose headers a screen reader announces with each cell."""
        head = "".join(f'<th scope="col">{escape(header)}</th>' for header in self.headers)
        body = "".join(
            f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
            for first, *rest in self.rows
        )
        return f"<table><caption>{escape(self.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(text: str) -> int:
    """Columns that `text` takes in a terminal."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _padded(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - _cells(text))
    return text + space if left else space + text
