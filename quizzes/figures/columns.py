"""Memory over time: a column for each moment, its kinds stacked, the limit as a line. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab.plots.drawing import MARGIN, SMALL, WIDTH, Drawing
from offload_lab.plots.palette import FALLING, KINDS, RISING, Style
from offload_lab.plots.scale import ticks
from offload_lab.plots.tables import Table
from quizzes.figures.picture import Picture
from quizzes.figures.trainings import Moments
from quizzes.say import _

LEFT, HIGH, GAP = 74, 220, 14
GREYS = (
    Style("A", "A", "#d0d0d0", "", ""),
    Style("B", "B", "#a8a8a8", FALLING, "\\"),
    Style("C", "C", "#f0f0f0", "M2,2 h1.6 M6,6 h1.6", "."),
    Style("D", "D", "#c0c0c0", RISING, "/"),
)


@dataclass(frozen=True)
class Columns(Picture):
    moments: Moments

    def remark(self) -> str:
        said = _("Predicted, without activations. Each column is one moment, its parts are what memory holds then.")
        if self.moments.limit is not None:
            said += " " + _("The dashed line is the memory of the card: {size}.").format(size=self._limit())
        return said

    def _limit(self) -> str:
        return self.size((self.moments.limit or 0) * 1e9)

    def _moment(self, step: str, what: str) -> str:
        return _("{step}, {what}").format(step=step, what=what) if step else what

    def summary(self) -> list[str]:
        names = self.moments.names()
        return [
            _("{moment}: {kinds}; together {size}.").format(
                moment=self._moment(step, what),
                kinds=", ".join(f"{name} {self.size(held[kind])}" for kind, name in names.items() if kind in held),
                size=self.size(sum(held.values())),
            )
            for step, what, held in self.moments.columns()
        ]

    def tables(self) -> list[Table]:
        names = self.moments.names()
        rows = [
            (
                self._moment(step, what),
                *(self.size(held[kind]) if kind in held else "-" for kind in names),
                self.size(sum(held.values())),
            )
            for step, what, held in self.moments.columns()
        ]
        return [Table(_("What memory holds, moment by moment"), ("", *names.values(), _("together")), rows)]

    def styles(self) -> dict[str, Style]:
        """Behind letters no kind has the look by which the rest of the course knows it."""
        names = self.moments.names()
        return dict(zip(names, GREYS, strict=False)) if self.moments.letters else {kind: KINDS[kind] for kind in names}

    def draw(self, drawing: Drawing) -> None:
        columns, names, styles = self.moments.columns(), self.moments.names(), self.styles()
        largest = float(max(sum(held.values()) for _step, _what, held in columns))
        largest = max(largest, (self.moments.limit or 0) * 1e9) * 1.08
        top = drawing.below + 14
        bottom, width = top + HIGH, WIDTH - LEFT - MARGIN
        for value in ticks(largest, 6):
            y = bottom - HIGH * value / largest
            drawing.line(f"M{LEFT} {y:.1f}H{LEFT + width}", "grid")
            drawing.text(LEFT - 8, y + 4, self.size(value) if value else "0", role="faint", anchor="end")
        apart = width / len(columns)
        for place, (step, what, held) in enumerate(columns):
            x, floor = LEFT + place * apart + GAP / 2, bottom
            for kind, name in names.items():
                if kind not in held:
                    continue
                high = HIGH * held[kind] / largest
                drawing.block(styles[kind], x, floor - high, apart - GAP, high)
                if high > SMALL + 3:
                    drawing.on(styles[kind], x + (apart - GAP) / 2, floor - high / 2 + 4, name, apart - GAP)
                floor -= high
            middle = x + (apart - GAP) / 2
            drawing.text(middle, bottom + 16, what, room=apart, anchor="middle")
            drawing.text(middle, bottom + 31, step, room=apart, anchor="middle", role="faint")
        drawing.line(f"M{LEFT} {bottom:.1f}H{LEFT + width}")
        if self.moments.limit is not None:
            y = bottom - HIGH * self.moments.limit * 1e9 / largest
            drawing.line(f"M{LEFT} {y:.1f}H{LEFT + width}", "limit", thick=2, dashes="8 5", halo=True)
            drawing.text(LEFT + 6, y - 5, self._limit(), bold=True, halo=True)
        drawing.below = bottom + 40
        drawing.key((styles[kind], name) for kind, name in names.items())
