"""Bars side by side, in one panel or two: bytes a parameter, seconds of lanes, machines. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offload_lab.plots.drawing import MARGIN, NORMAL, SMALL, WIDTH, Drawing
from offload_lab.plots.lettering import width_of
from offload_lab.plots.palette import Style
from offload_lab.plots.tables import Table
from quizzes.figures.picture import Picture
from quizzes.say import _

LEFT, RIGHT, ROW, APART = 196, 96, 24, 8


@dataclass(frozen=True)
class Bar:
    """`parts`: what is stacked in it, name -> value."""

    name: str
    parts: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True)
class Panel:
    """Bars on one scale. `unit`: a text with {number}; `mark`: a name and a value, drawn as a line through all bars."""

    caption: str
    unit: str
    bars: Sequence[Bar]
    mark: tuple[str, float] | None = None


@dataclass(frozen=True)
class Bars(Picture):
    told: str
    """How to read it."""
    panels: Sequence[Panel]
    styles: Mapping[str, Style]
    """The look of each part, by its name."""

    def remark(self) -> str:
        return self.told

    def kind(self) -> str:
        return "question-bars"

    def value(self, panel: Panel, value: float) -> str:
        return panel.unit.format(number=self.number(value))

    def summary(self) -> list[str]:
        return [self._said(panel, bar) for panel in self.panels for bar in panel.bars] + [
            f"{panel.mark[0]}: {self.value(panel, panel.mark[1])}." for panel in self.panels if panel.mark is not None
        ]

    def _said(self, panel: Panel, bar: Bar) -> str:
        total = self.value(panel, bar.total)
        named = f"{panel.caption}, {bar.name}" if len(self.panels) > 1 else bar.name
        if len(bar.parts) == 1:
            return f"{named}: {total}."
        parts = ", ".join(f"{name} {self.number(value)}" for name, value in bar.parts.items())
        return _("{bar}: {parts}; together {total}.").format(bar=named, parts=parts, total=total)

    def tables(self) -> list[Table]:
        found = []
        for panel in self.panels:
            parts = list(dict.fromkeys(name for bar in panel.bars for name in bar.parts))
            stacked = any(len(bar.parts) > 1 for bar in panel.bars)
            rows = [
                (
                    bar.name,
                    *((self.number(bar.parts[name]) if name in bar.parts else "-" for name in parts) if stacked else ()),
                    self.value(panel, bar.total),
                )
                for bar in panel.bars
            ]
            if panel.mark is not None:
                rows.append((panel.mark[0], *(["-"] * len(parts) if stacked else ()), self.value(panel, panel.mark[1])))
            headers = ("", *(parts if stacked else ()), _("together") if stacked else _("value"))
            found.append(Table(panel.caption, headers, rows))
        return found

    def draw(self, drawing: Drawing) -> None:
        for panel in self.panels:
            self._panel(drawing, panel)
        if any(len(bar.parts) > 1 for panel in self.panels for bar in panel.bars):
            drawing.key((style, name) for name, style in self.styles.items())

    def _panel(self, drawing: Drawing, panel: Panel) -> None:
        if len(self.panels) > 1:
            drawing.text(MARGIN, drawing.below + 14, panel.caption, size=NORMAL, bold=True)
            drawing.below += 22
        largest = max(bar.total for bar in panel.bars)
        largest = max(largest, panel.mark[1]) if panel.mark is not None else largest
        width, first = WIDTH - LEFT - RIGHT, drawing.below + (20 if panel.mark is not None else 6)
        bottom = first + len(panel.bars) * (ROW + APART)
        drawing.axis(LEFT, width, first - 4, bottom, largest, lambda value: self.value(panel, value))
        if panel.mark is not None:
            x = LEFT + width * panel.mark[1] / largest
            drawing.line(f"M{x:.1f} {first - 6:.1f}V{bottom:.1f}", thick=2, dashes="8 4", halo=True)
            drawing.flags([(x, panel.mark[0])], first - 10, LEFT)
        top = first + APART / 2
        for bar in panel.bars:
            drawing.text(MARGIN, top + 16, bar.name, room=LEFT - MARGIN - 8, size=NORMAL)
            x = float(LEFT)
            for name, value in bar.parts.items():
                wide = width * value / largest
                drawing.block(self.styles[name], x, top, wide, ROW)
                if len(bar.parts) > 1:
                    words = self.number(value)
                    longer = f"{name} {words}"
                    if not drawing.on(self.styles[name], x + wide / 2, top + 16, longer, wide):
                        drawing.on(self.styles[name], x + wide / 2, top + 16, words, wide)
                x += wide
            said = self.value(panel, bar.total)
            crossing = LEFT + width * panel.mark[1] / largest if panel.mark is not None else -1.0
            # A number never lies under the line of the mark: beside it where the bar ends just before.
            place = x + 6 if not x <= crossing <= x + 10 + width_of(said, SMALL) else crossing + 6
            drawing.text(place, top + 16, said, bold=True, halo=True)
            top += ROW + APART
        drawing.below = bottom + 22
