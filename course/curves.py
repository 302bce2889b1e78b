"""A figure of lines: numbers over steps, or over whatever was changed; `offload_lab.plots` has none of that kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offload_lab.plots.drawing import Drawing
from offload_lab.plots.palette import LANES
from offload_lab.plots.scale import ticks
from offload_lab.plots.shown import SOURCES, Shown, Source
from offload_lab.plots.tables import Table
from quizzes.say import N_, _

_DASHES = ("", "8 4", "2 3", "10 3 2 3")
_LEFT, _TALL = 70.0, 220.0
_SAID = (N_("measured"), N_("predicted"), N_("quoted"), N_("simulated"))  # the sources, for the catalogue
_ROWS = 12  # of a table; a longer one says less


@dataclass(frozen=True)
class Curves(Shown):
    """Lines by name, each a sequence of (x, y). `across` and `up` name the axes, with their units.

    Each line has a look of its own (colour and dashes) and its name at its end. Raises ValueError for a number that is not
    finite, for more than four lines, and for a source that there is not.
    """

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    across: str
    up: str
    source: Source = "measured"

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            said = _("source={source!r}: one of {names} is needed")
            raise ValueError(said.format(source=self.source, names=", ".join(SOURCES)))
        if len(self.lines) > len(_DASHES):
            said = _("{count} lines cannot be told apart; at most {most} can")
            raise ValueError(said.format(count=len(self.lines), most=len(_DASHES)))
        for name, points in self.lines.items():
            if not all(math.isfinite(x) and math.isfinite(y) for x, y in points):
                raise ValueError(_("the line {name!r} has a point that is not finite").format(name=name))

    def summary(self) -> list[str]:
        told = _("{up} over {across}, {source}.")
        said = [told.format(up=self.up, across=self.across, source=_(self.source))]
        for name, points in self.lines.items():
            if points:
                line = _("{name}: from {first:.4g} to {last:.4g}.")
                said.append(line.format(name=name, first=points[0][1], last=points[-1][1]))
        return said

    def tables(self) -> list[Table]:
        xs = sorted({x for points in self.lines.values() for x, _y in points})
        chosen = xs if len(xs) <= _ROWS else [xs[round(i * (len(xs) - 1) / (_ROWS - 1))] for i in range(_ROWS)]
        held = [dict(points) for points in self.lines.values()]
        rows = [(f"{x:g}", *(f"{line[x]:.4g}" if x in line else "" for line in held)) for x in chosen]
        return [Table(_("{up}, {source}").format(up=self.up, source=_(self.source)), (self.across, *self.lines), rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        points = [point for line in self.lines.values() for point in line]
        room = max((len(name) for name in self.lines), default=0) * 7.0 + 20
        width = drawing.width - _LEFT - room
        top, bottom = drawing.below + 14, drawing.below + 14 + _TALL
        right = max((x for x, _y in points), default=1.0) or 1.0
        low, high = min((y for _x, y in points), default=0.0), max((y for _x, y in points), default=1.0)
        low = 0.0 if 0 <= low < high / 2 else low
        high = high if high > low else low + 1.0
        drawing.axis(_LEFT, width, top, bottom, right, lambda value: f"{value:g}")
        for value in ticks(high - low, 5):
            y = bottom - _TALL * value / (high - low)
            drawing.line(f"M{_LEFT:.1f} {y:.1f}H{_LEFT + width:.1f}", "grid")
            drawing.text(_LEFT - 6, y + 4, f"{low + value:.3g}", role="faint", anchor="end")
        drawing.text(_LEFT, top - 8, self.up, role="faint")
        drawing.text(_LEFT + width, bottom + 30, self.across, role="faint", anchor="end")
        ends = {}
        for (name, line), style, dashes in zip(self.lines.items(), LANES.values(), _DASHES, strict=False):
            if not line:
                continue
            path = [(_LEFT + width * x / right, bottom - _TALL * (y - low) / (high - low)) for x, y in line]
            drawing.line("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in path), thick=2, dashes=dashes, halo=True)
            for x, y in path if len(path) <= 16 else [path[-1]]:
                drawing.block(style, x - 4, y - 4, 8, 8)
            ends[name] = path[-1]
        for name, y in _apart({name: y for name, (_x, y) in ends.items()}, bottom).items():
            drawing.text(ends[name][0] + 10, y + 4, name)
        drawing.below = bottom + 40
        return drawing.document(self.summary(), "curves-plot")


def _apart(wanted: Mapping[str, float], lowest: float, apart: float = 15.0) -> dict[str, float]:
    """Heights for names near the `wanted` ones, each `apart` from the next and none below `lowest` (y grows downwards)."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name, y in sorted(wanted.items(), key=lambda item: item[1]):
        last = placed[name] = max(y, last + apart)
    floor = lowest
    for name in reversed(placed):
        placed[name] = min(placed[name], floor)
        floor = placed[name] - apart
    return placed


def smoothed(values: Sequence[float], over: int = 10) -> list[tuple[float, float]]:
    """(step, mean of the last `over` values), one for each full window; fewer values than that give their one mean."""
    if not values:
        return []
    over = min(over, len(values))
    return [(float(end), sum(values[end - over : end]) / over) for end in range(over, len(values) + 1)]
