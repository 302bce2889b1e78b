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

from quizzes.copies import past, standing
from quizzes.say import _

MIME = "application/vnd.offload-lab.answers+json"
VERSION = 2
KEEPS_BOTH = 3
"""The version of a record with answers in conflict: a program that would drop one of them must refuse it."""


@dataclass
class Record:
    """Answers of one lesson by question id: {"answer": …, "share": share of the points, "at": ISO time in UTC}, and where
    there are such: "variant", "hints" (how many were taken), "confidence" (per cent), "attempt" (from 1), "earned" (share
    before hints), "past" (see quizzes.copies), "receipt". `others` are the answers of other copies, none of which was chosen
    yet, newest first.

    `pending` holds hints and confidence of questions that are not answered yet, so that a restart forgets no cost.
    """

    lesson: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    learner: str = ""
    """A random name that seeds the variants of practice; says nothing of the person."""

    def put(self, question: str, answer: Any, share: float, **more: Any) -> None:
        """Keep an answer; `more` are the optional fields, of which None and empty ones are left out. It replaces every copy."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        before = past(self.held(question))
        self.others.pop(question, None)
        given = {"answer": answer, "share": share, "at": now, **more, "past": before}
        self.answers[question] = {name: value for name, value in given.items() if value or name in ("answer", "share")}

    def held(self, question: str) -> list[dict[str, Any]]:
        """Every answer to a question that is not replaced: none, one, or those in conflict, the one that counts first."""
        return [self.answers[question], *self.others.get(question, [])] if question in self.answers else []

    def to_json(self) -> dict[str, Any]:
        content = {"version": KEEPS_BOTH if self.others else VERSION, "lesson": self.lesson, "answers": self.answers}
        more = {"learner": self.learner, "pending": self.pending, "others": self.others}
        return content | {name: value for name, value in more.items() if value}


def read_records(path: str | os.PathLike[str], lesson: str, notes: list[str] | None = None) -> list[Record]:
    """Every record of `lesson` in a notebook file, in the order of its cells; none if it can't be read.

    What could not be read, and what it was, is added to `notes` as sentences. Nothing is raised.
    """
    told = notes if notes is not None else []
    found = [_record(content, lesson, told) for content in contents(path, MIME, told)]
    return [record for record in found if record is not None]


def contents(path: str | os.PathLike[str], mime: str, notes: list[str]) -> list[Any]:
    """What the outputs of a notebook file hold under a media type, in the order of its cells; text that is cut off comes as
    None. A file that is no notebook is said in `notes`."""
    try:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        cells = notebook["cells"]
        outputs = [output for cell in cells if isinstance(cell, dict) for output in cell.get("outputs") or []]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        notes.append(_("{path} could not be read as a notebook; no earlier answers were taken from it.").format(path=path))
        return []
    datas = [output.get("data") for output in outputs if isinstance(output, dict)]
    return [_whole(data[mime]) for data in datas if isinstance(data, dict) and mime in data]


def _whole(content: Any) -> Any:
    """`content` in one piece, None where it is cut off."""
    if isinstance(content, list) and all(isinstance(line, str) for line in content):
        content = "".join(content)  # nbformat may split text into lines
    if isinstance(content, str):
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            return None
    return content


def _record(content: Any, lesson: str, notes: list[str]) -> Record | None:
    """A record of version 1 to 3; None for another lesson's, and, said in `notes`, for what is none."""
    if content is None:
        notes.append(_("An answer record in this notebook is cut off or damaged; nothing was taken from it."))
        return None
    if not isinstance(content, dict) or not isinstance(content.get("lesson"), str):
        notes.append(_("An answer record in this notebook is damaged: it names no lesson. Nothing was taken from it."))
        return None
    if content["lesson"] != lesson:
        return None
    version, answers, pending = content.get("version"), content.get("answers"), content.get("pending", {})
    if isinstance(version, bool) or version not in (1, VERSION, KEEPS_BOTH):
        said = _(
            "An answer record has version {version!r}; this program reads 1 to {newest}. Nothing was taken from it."
        ).format(version=version, newest=KEEPS_BOTH)
        notes.append(said)
        return None
    if not isinstance(answers, dict):
        notes.append(_("An answer record in this notebook holds no answers; nothing was taken from it."))
        return None
    # Version 1 has the same three fields and no others: read, it is version 2.
    bad = [name for name, entry in answers.items() if not is_entry(entry)]
    if bad:
        notes.append(
            _("The recorded answer to {list} is damaged or was edited, and was left out; answer again.").format(
                list=", ".join(bad)
            )
        )
    kept = {name: dict(entry) for name, entry in answers.items() if name not in bad}
    open_ = pending if isinstance(pending, dict) else {}
    learner = content.get("learner")
    kept_open = {name: dict(more) for name, more in open_.items() if _is_more(more)}
    others = kept_others(content.get("others"), notes)
    return Record(lesson, kept, kept_open, others, learner if isinstance(learner, str) else "")


def kept_others(content: Any, notes: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Answers in conflict as a file holds them; what is damaged is left out and said in `notes`."""
    found = {}
    for name, entries in content.items() if isinstance(content, dict) else ():
        good = [dict(entry) for entry in entries if is_entry(entry)] if isinstance(entries, list) else []
        if not isinstance(entries, list) or len(good) < len(entries):
            notes.append(_("A second answer to {name} is damaged or was edited, and was left out.").format(name=name))
        if good:
            found[name] = good
    return found


def _is_number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _is_more(more: Any) -> bool:
    if not isinstance(more, dict):
        return False
    whole = all(type(more.get(name, 1)) is int and 0 <= more.get(name, 1) <= 10_000 for name in ("hints", "attempt"))
    return whole and _is_number(more.get("confidence", 50), 0, 100) and isinstance(more.get("variant", ""), str)


def is_answer(answer: Any) -> bool:
    """Text, a number, or one level of them in a list or by name: all that any kind of question records."""
    plain = (str, int, float, type(None))
    if isinstance(answer, list):
        return all(isinstance(part, plain) for part in answer)
    return all(isinstance(p, plain) for p in answer.values()) if isinstance(answer, dict) else isinstance(answer, plain)


def is_entry(entry: Any) -> bool:
    """Whether this is an answer as a record holds it."""
    if not isinstance(entry, dict) or "answer" not in entry or not isinstance(entry.get("at"), str):
        return False
    before = entry.get("past", [])
    if not isinstance(before, list) or not all(isinstance(at, str) for at in before):
        return False
    if not _is_number(entry.get("earned", 0), 0, 1):
        return False
    return is_answer(entry["answer"]) and _is_number(entry.get("share"), 0, 1) and _is_more(entry)


def merge(lesson: str, records: Iterable[Record]) -> tuple[Record, list[str]]:
    """One record of several, the newest answer to each question, and the questions on which copies are in conflict: their
    other answers are in `others`. An answer that another one replaced is history, and no conflict."""
    merged, found = Record(lesson), dict[str, list[dict[str, Any]]]()
    for record in records:
        merged.learner = merged.learner or record.learner
        for question in (*record.answers, *record.others):
            found.setdefault(question, [])
        for question, entry in record.answers.items():
            found[question].append(entry)
        for question, entries in record.others.items():
            found[question].extend(entries)
        for question, more in record.pending.items():
            held = merged.pending.setdefault(question, dict(more))
            held["hints"] = max(held.get("hints", 0), more.get("hints", 0))
    for question, entries in found.items():
        merged.answers[question], *rest = standing(entries)
        if rest:
            merged.others[question] = rest
    return merged, list(merged.others)


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
        return f"<p>{escape(_('No answers yet.'))}</p>"
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in ("", _("Question"), _("Your answer"), _("Verdict")))
    caption = escape(_("Your answers, lesson {lesson}").format(lesson=record.lesson))
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"
