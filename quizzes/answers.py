"""The answer record: what was answered, kept as data in the notebook itself.

The record is one output of the quiz's cell, under a media type of its own beside a table that anyone can read. It is saved
with the notebook, shown when the notebook is opened without a kernel, and read back from the file when the quiz is built
again. Reading never raises on a notebook that is broken: no record is found there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

MIME = "application/vnd.offload-lab.answers+json"
VERSION = 1


@dataclass
class Record:
    """Answers of one lesson by question id: {"answer": …, "share": share of the points, "at": ISO time in UTC}."""

    lesson: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put(self, question: str, answer: Any, share: float) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self.answers[question] = {"answer": answer, "share": share, "at": now}

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, "lesson": self.lesson, "answers": self.answers}


def read_records(path: str | os.PathLike[str], lesson: str) -> list[Record]:
    """Every record of `lesson` in a notebook file, in the order of its cells; none if it can't be read."""
    try:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        cells = notebook["cells"]
        outputs = [output for cell in cells if isinstance(cell, dict) for output in cell.get("outputs") or []]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    found = []
    for output in outputs:
        data = output.get("data") if isinstance(output, dict) else None
        content = data.get(MIME) if isinstance(data, dict) else None
        if isinstance(content, str):
            try:
                content = json.loads(content)
            except ValueError:
                continue
        if isinstance(content, dict) and content.get("version") == VERSION and content.get("lesson") == lesson:
            found.append(Record(lesson, {k: v for k, v in content.get("answers", {}).items() if _is_entry(v)}))
    return found


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("at"), str) and "answer" in entry and "share" in entry


def merge(lesson: str, records: Iterable[Record]) -> tuple[Record, list[str]]:
    """One record of several, the newest answer to each question, and the questions on which they differ."""
    merged, conflicts = Record(lesson), []
    for record in records:
        for question, entry in record.answers.items():
            held = merged.answers.get(question)
            if held is not None and held["answer"] != entry["answer"] and question not in conflicts:
                conflicts.append(question)
            if held is None or entry["at"] > held["at"]:
                merged.answers[question] = dict(entry)
    return merged, conflicts


def notebook_path() -> Path | None:
    """The file of the notebook that this kernel runs, where the front end tells: Jupyter by an environment variable, VS Code
    by a name in the user's namespace. None elsewhere."""
    told = os.environ.get("JPY_SESSION_NAME", "")
    running = shell()
    if running is not None:
        told = told or str(running.user_ns.get("__vsc_ipynb_file__", ""))
    path = Path(told)
    return path if path.suffix == ".ipynb" and path.is_file() else None


def shell() -> Any:
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


def as_html(record: Record, rows: list[tuple[str, str, str, str]]) -> str:
    """A table of (name, prompt, answer, verdict) with the record's own words only; readable without a kernel."""
    if not rows:
        return "<p>No answers yet.</p>"
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    head = "".join(f'<th scope="col">{title}</th>' for title in ("", "Question", "Your answer", "Verdict"))
    return f"<table><caption>Your answers, lesson {escape(record.lesson)}</caption><tr>{head}</tr>{body}</table>"
