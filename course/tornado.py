"""A tornado: what a step takes with each bandwidth halved and doubled, the one that matters most on top."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from offload_lab.plots.drawing import MARGIN, NORMAL, SMALL, Drawing
from offload_lab.plots.lettering import width_of
from offload_lab.plots.palette import LANES
from offload_lab.plots.scale import second_label
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table
from quizzes.say import _

_LEFT, _RIGHT, _ROW, _APART = 150, 80, 22, 12


@dataclass(frozen=True)
class Tornado(Shown):
    """`rows`: (name, seconds with it half as fast, seconds with it twice as fast); `base`: the step as the machine is.

    Bars go from `base`: hatched to where half the bandwidth leads, plain to where twice leads. Raises ValueError for a time
    that is negative or not finite, and for a source that there is not.
    """

    title: str
    base: float
    rows: Sequence[tuple[str, float, float]]
    source: Source = "predicted"

    def __post_init__(self) -> None:
        checked_source(self.source)
        for name, value in [("base", self.base), *((row[0], value) for row in self.rows for value in row[1:])]:
            if not (math.isfinite(value) and value >= 0):
                said = _("{name}: {value} is no time; a finite number of at least 0 is needed")
                raise ValueError(said.format(name=name, value=value))

    def change(self, seconds: float) -> str:
        """Against `base`, in per cent."""
        if not self.base:
            return _("no base")
        return f"{100 * (seconds / self.base - 1):+.1f} %"

    def summary(self) -> list[str]:
        said = _("The step as it is, {source}: {time}.").format(source=_(self.source), time=second_label(self.base))
        if not self.rows:
            return [said]
        best = min(self.rows, key=lambda row: row[2])
        if best[2] >= self.base * (1 - 1e-9):
            return [said, _("Doubling any one of them alone changes nothing.")]
        told = _("Doubled alone, {name} helps most: {time} ({change}).")
        idle = [name for name, _half, twice in self.rows if twice >= self.base * (1 - 0.005)]
        without = [_("These change it by less than half a per cent: {names}.").format(names=", ".join(idle))] if idle else []
        return [said, told.format(name=best[0], time=second_label(best[2]), change=self.change(best[2])), *without]

    def tables(self) -> list[Table]:
        headers = ("", _("half as fast"), _("change"), _("twice as fast"), _("change"))
        rows = [
            (name, second_label(half), self.change(half), second_label(twice), self.change(twice))
            for name, half, twice in self.rows
        ]
        return [Table(_("One step, {source}").format(source=_(self.source)), headers, rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        plain, hatched = LANES["cpu"], LANES["disk-write"]
        values = [self.base, *(value for row in self.rows for value in row[1:])]
        low, high = min(values), max(values)
        room = drawing.width - _LEFT - _RIGHT - 60
        scale = room / (high - low) if high > low else 0.0
        start = _LEFT + 60.0
        middle = start + (self.base - low) * scale
        top = drawing.below + 22
        bottom = top + max(len(self.rows), 1) * (_ROW + _APART)
        for name, half, twice in self.rows:
            drawing.text(MARGIN, top + 16, name, room=_LEFT - MARGIN - 8, size=NORMAL)
            for style, value in ((hatched, half), (plain, twice)):
                x = start + (value - low) * scale
                if abs(x - middle) >= 0.5:
                    drawing.block(style, min(x, middle), top, abs(x - middle), _ROW)
                    drawing.text(
                        x + (6 if x > middle else -6), top + 16, second_label(value), anchor="start" if x > middle else "end"
                    )
            if abs(half - self.base) * scale < 0.5 and abs(twice - self.base) * scale < 0.5:
                drawing.text(middle + 6, top + 16, _("no change"), role="faint", halo=True)
            top += _ROW + _APART
        drawing.line(f"M{middle:.1f} {drawing.below + 12:.1f}V{bottom:.1f}", thick=2, halo=True)
        words = _("as it is: {time}").format(time=second_label(self.base))
        half_width = width_of(words, SMALL) / 2
        at = min(max(middle, MARGIN + half_width), drawing.width - MARGIN - half_width)
        drawing.text(at, drawing.below + 8, words, anchor="middle", role="faint")
        drawing.below = bottom + 2
        drawing.key(((plain, _("twice as fast")), (hatched, _("half as fast"))))
        for remark in self.summary()[1:]:
            drawing.paragraph(remark)
        return drawing.document(self.summary(), "tornado-plot")
