"""Where a learner stands in the course: what the landing notebook shows. Reads the progress file and the notebooks' records."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from course.heads import Head, head
from course.prediction import near
from quizzes.answers import MIME, contents, notebook_path, read_records
from quizzes.calibration import bins, table
from quizzes.calibration_plot import draw
from quizzes.progress import Progress, ProgressError
from quizzes.question import BANK, every
from quizzes.reviewing import agenda
from quizzes.say import _, _n
from quizzes.units import EXAMPLES


@dataclass(frozen=True)
class Guess:
    """A prediction as a notebook holds it; `found` is None where nothing was compared with it yet."""

    value: float
    confidence: float | None
    found: float | None
    unit: str

    @property
    def near(self) -> bool:
        return self.found is not None and near(self.value, self.found, self.unit)


@dataclass
class Stand:
    """A lesson: `asked` questions, the entries of those answered, the predictions made, and those skipped."""

    head: Head
    asked: int
    answered: list[dict[str, Any]] = field(default_factory=list)
    guesses: list[Guess] = field(default_factory=list)
    skipped: int = 0

    @property
    def begun(self) -> bool:
        return bool(self.answered or self.guesses or self.skipped)

    @property
    def done(self) -> bool:
        return len(self.answered) >= self.asked

    @property
    def name(self) -> str:
        return f"{int(self.head.number)} · {self.head.title}"

    def cells(self) -> list[str]:
        """What the table says of it: answered, right, predictions."""
        right = sum(entry["share"] for entry in self.answered) / len(self.answered) if self.answered else None
        return [
            _("{count} of {all}").format(count=len(self.answered), all=self.asked) if self.asked else "–",
            "–" if right is None else f"{right:.0%}",
            _("{count} of {all}").format(count=len(self.guesses), all=max(self.head.asks, len(self.guesses))),
            _("{count} of {all}").format(
                count=sum(guess.near for guess in self.guesses), all=sum(guess.found is not None for guess in self.guesses)
            )
            if any(guess.found is not None for guess in self.guesses)
            else "–",
        ]


def heads_in(folder: Path, notes: list[str]) -> list[Head]:
    """The lessons in a folder of notebooks. One that cannot be read is said in `notes`."""
    found = []
    for path in sorted(folder.glob("[0-9][0-9]_*.ipynb")):
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            read = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            notes.append(_("{path} could not be read as a notebook.").format(path=path.name))
            continue
        told = head(path.name, read)
        if told is not None:
            found.append(told)
    return found


def guesses_in(path: Path, notes: list[str]) -> Iterator[Guess | None]:
    """Every prediction that a notebook file holds; None for one that was skipped."""
    told = contents(path, MIME, [])
    names = [content.get("lesson") for content in told if isinstance(content, dict)]
    for name in dict.fromkeys(name for name in names if isinstance(name, str) and name.startswith("prediction ")):
        for record in read_records(path, name, notes)[-1:]:
            for entry in record.answers.values():
                yield _guess(entry["answer"])


def _guess(answer: Any) -> Guess | None:
    held = answer if isinstance(answer, dict) else {}
    value, sure, found = (_number(held.get(key)) for key in ("value", "confidence", "found"))
    unit = held.get("unit")
    return None if value is None else Guess(value, sure, found, unit if unit in EXAMPLES else "count")


def _number(value: Any) -> float | None:
    # A file can hold anything; a truth value is a number to Python.
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if good else None


class Standing(str):
    """A text, which a notebook shows as a table with links and the figure of the calibration."""

    html: str

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.html


def standing(folder: str | Path | None = None, now: datetime | None = None) -> Standing:
    """Where the learner stands. The notebooks are those in `folder`, the landing notebook's own where it is left out."""
    own = notebook_path()
    where = Path(folder) if folder is not None else own.parent if own is not None else Path()
    notes: list[str] = []
    try:
        content = Progress().read()
    except ProgressError as error:
        notes.append(str(error))
        content = {"answers": {}, "cards": {}}
    asked = {bank.lesson: {question.id for question in bank.questions} for bank in every(BANK).values()}
    stands = []
    for told in heads_in(where, notes):
        mine = asked.get(told.number, set())
        stand = Stand(told, len(mine), [entry for name, entry in content["answers"].items() if name in mine])
        for guess in guesses_in(where / told.file, notes):
            if guess is None:
                stand.skipped += 1
            else:
                stand.guesses.append(guess)
        stands.append(stand)
    return _shown(stands, content, notes, (now or datetime.now(UTC)).astimezone(UTC))


def next_of(stands: list[Stand]) -> Stand | None:
    """The lesson to go on with: the one that was answered in last, while it has questions left; else the first such after it,
    else the first at all. None where every question is answered."""

    def last(stand: Stand) -> str:
        return max((entry["at"] for entry in stand.answered), default="")

    touched = max(stands, key=last, default=None)
    place = stands.index(touched) if touched is not None and last(touched) else 0
    return next((stand for stand in stands[place:] + stands[:place] if not stand.done), None)


def _shown(stands: list[Stand], content: dict[str, Any], notes: list[str], now: datetime) -> Standing:
    titles = [_("Lesson"), _("Answered"), _("Right"), _("Predictions"), _("Near")]
    rows = [(stand.name, *stand.cells()) for stand in stands]
    wide = [max(len(row[place]) for row in (titles, *rows)) for place in range(len(titles))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in (titles, *rows)]
    after = _next(stands)
    says = [*notes, *([after[0]] if after else []), *_due(content["cards"], now)]
    quiz = [entry for stand in stands for entry in stand.answered]
    guesses = [guess for stand in stands for guess in stand.guesses]
    sure = [{"share": float(g.near), "confidence": g.confidence} for g in guesses if g.found is not None and g.confidence]
    parts = ["\n".join(lines), "\n".join(says)]
    if quiz:
        parts.append(_("Your quizzes, by how sure you were:") + "\n" + table(quiz))
    if sure:
        near_is = _("Near is within a factor of two, or ten points of per cent.")
        parts.append(_("Your predictions, by how sure you were:") + "\n" + table(sure) + "\n" + near_is)
    shown = Standing("\n\n".join(part for part in parts if part))
    figure = draw(found, table(quiz)) if (found := bins(quiz)) else ""
    shown.html = _html(titles, stands, says, after, figure, parts[2:])
    return shown


def _next(stands: list[Stand]) -> tuple[str, Stand] | None:
    if not stands:
        return None
    after = next_of(stands)
    if after is None:
        return _("Every question is answered."), stands[-1]
    said = _("Go on here: lesson {lesson}") if any(stand.begun for stand in stands) else _("Begin here: lesson {lesson}")
    return said.format(lesson=after.name), after


def _due(cards: dict[str, Any], now: datetime) -> list[str]:
    waiting = [back for back in agenda(cards) if back.when <= now]
    if not waiting:
        return []
    lessons = ", ".join(dict.fromkeys(str(int(back.lesson)) for back in waiting))
    said = _n(
        "{count} question comes back today: lesson {lessons}.",
        "{count} questions come back today: lessons {lessons}.",
        len(waiting),
    )
    return [said.format(count=len(waiting), lessons=lessons)]


def _html(
    titles: list[str], stands: list[Stand], says: list[str], after: tuple[str, Stand] | None, figure: str, texts: Iterable[str]
) -> str:
    head_row = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join(
        f'<tr><th scope="row" style="text-align: left"><a href="{escape(stand.head.file)}">{escape(stand.name)}</a></th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in stand.cells())
        + "</tr>"
        for stand in stands
    )
    told = "".join(f"<p>{_linked(said, after)}</p>" for said in says)
    more = "".join(f'<pre style="font-size: inherit">{escape(text)}</pre>' for text in texts)
    caption = escape(_("Where you are"))
    return f"<table><caption>{caption}</caption><tr>{head_row}</tr>{body}</table>{told}{figure}{more}"


def _linked(text: str, after: tuple[str, Stand] | None) -> str:
    if after is None or text != after[0]:
        return escape(text)
    name = escape(after[1].name)
    return escape(text).replace(name, f'<a href="{escape(after[1].head.file)}">{name}</a>')
