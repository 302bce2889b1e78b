"""Scores as CSV for a spreadsheet: quoted, and no cell that the spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def safe(value: Any) -> Any:
    """A cell: text that begins like a formula gets an apostrophe before it; a plain negative number stays a number."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    # Spreadsheets skip leading blanks before they look for a formula.
    return f"'{value}" if value[:1] in ("\t", "\r", "\n") or value.lstrip()[:1] in ("=", "+", "-", "@") else value


def to_csv(rows: Iterable[tuple[str, float, float, list[str]]]) -> str:
    """`student,score,max_score,notes` lines of (student, score, max score, notes)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["student", "score", "max_score", "notes"])
    for student, score, most, notes in rows:
        writer.writerow([safe(student), score, most, safe("; ".join(notes))])
    return text.getvalue()
