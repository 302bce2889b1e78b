"""What the predictions of the whole course came to: how near, how sure, and which way off. Reads the saved notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import NamedTuple

from course.landing import Guess, guesses_in, heads_in
from course.prediction import said
from quizzes.answers import notebook_path
from quizzes.calibration import bins, table
from quizzes.calibration_plot import draw
from quizzes.say import N_, _, _n

_KINDS = {
    "bytes": N_("bytes"),
    "seconds": N_("times"),
    "bytes_per_second": N_("bandwidths"),
    "percent": N_("shares, in per cent"),
    "count": N_("counts"),
    "dollars": N_("money"),
    "ratio": N_("how many times"),
}
_MOST = 3


class Made(NamedTuple):
    """A prediction that was compared, and the lesson in which it was made."""

    lesson: str
    guess: Guess

    @property
    def factor(self) -> float:
        """How many times too high or too low, at least 1."""
        found = self.guess.found or self.guess.value
        return max(self.guess.value / found, found / self.guess.value)

    @property
    def high(self) -> bool:
        return self.guess.value > (self.guess.found or self.guess.value)


class Taught(str):
    """A text, which a notebook shows with the figure of the calibration above it."""

    figure = ""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'{self.figure}<pre style="font-size: inherit">{escape(self)}</pre>'


def taught(folder: str | Path | None = None) -> Taught:
    """What the predictions in the notebooks of `folder` came to; the running notebook's own folder where it is left out.

    A notebook is read as it was last saved. One that cannot be read is said.
    """
    own = notebook_path()
    where = Path(folder) if folder is not None else own.parent if own is not None else Path()
    notes: list[str] = []
    compared, alone, skipped = list[Made](), 0, 0
    for head in heads_in(where, notes):
        for guess in guesses_in(where / head.file, notes):
            if guess is None:
                skipped += 1
            elif guess.found is None:
                alone += 1
            else:
                compared.append(Made(head.number, guess))
    return told(compared, alone, skipped, notes)


def told(compared: Sequence[Made], alone: int = 0, skipped: int = 0, notes: Sequence[str] = ()) -> Taught:
    """The text and the figure. `alone`: predictions with which nothing was compared yet. `skipped`: those not made. Pure."""
    lines = [*notes]
    if alone:
        said_ = _n(
            "{count} prediction has nothing beside it yet: its lesson was not run to the end, or not saved.",
            "{count} predictions have nothing beside them yet: their lessons were not run to the end, or not saved.",
            alone,
        )
        lines.append(said_.format(count=alone))
    if skipped:
        lines.append(_n("{count} was skipped.", "{count} were skipped.", skipped).format(count=skipped))
    if not compared:
        lines.insert(
            len(notes),
            _(
                "There is no prediction to look back on: none was found in the lessons beside this notebook. They are read as "
                "they were last saved. Save the lessons in which you predicted, and run this cell again."
            ),
        )
        return Taught("\n".join(lines))
    near, high = sum(made.guess.near for made in compared), sum(made.high for made in compared)
    low = sum(made.guess.value < (made.guess.found or 0) for made in compared)
    counted = _n(
        "{count} prediction was compared; {near} came near. {high} too high, {low} too low.",
        "{count} predictions were compared; {near} came near. {high} too high, {low} too low.",
        len(compared),
    )
    first = [counted.format(count=len(compared), near=near, high=high, low=low)]
    first.append(_("Near is within a factor of two, or ten points of per cent."))
    parts = ["\n".join([*first, *lines]), _by_kind(compared), _furthest(compared)]
    sure = [
        {"share": float(made.guess.near), "confidence": made.guess.confidence} for made in compared if made.guess.confidence
    ]
    parts.append(table(sure) if sure else _("With none of them you said how sure you were."))
    shown = Taught("\n\n".join(part for part in parts if part))
    found = bins(sure)
    shown.figure = draw(found, table(sure)) if found else ""
    return shown


def _by_kind(compared: Sequence[Made]) -> str:
    lines = []
    for unit, name in _KINDS.items():
        mine = [made for made in compared if made.guess.unit == unit]
        if mine:
            row = _("{kind}: {near} of {count} near, typically off by a factor of {factor:.1f}")
            near = sum(made.guess.near for made in mine)
            factor = median(made.factor for made in mine)
            lines.append(row.format(kind=_(name), near=near, count=len(mine), factor=factor))
    return "\n".join(lines)


def _furthest(compared: Sequence[Made]) -> str:
    """Those furthest off, which taught most; "" where all came near."""
    off = sorted((made for made in compared if not made.guess.near), key=lambda made: -made.factor)[:_MOST]
    if not off:
        return ""
    row = _("lesson {lesson}: you said {value}, it was {found}")
    lines = [
        row.format(
            lesson=int(made.lesson),
            value=said(made.guess.value, made.guess.unit),
            found=said(made.guess.found or 0.0, made.guess.unit, 2),
        )
        for made in off
    ]
    return "\n".join([_("Furthest off:"), *lines])
