"""Bytes a parameter, by kind: what a way of training takes, whatever the size of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from offload_lab.plots.checks import amounts
from offload_lab.plots.drawing import MARGIN, NORMAL, WIDTH, Drawing
from offload_lab.plots.lettering import named, wrapped
from offload_lab.plots.palette import KINDS, styles_of
from offload_lab.plots.scale import byte_label
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table

LEFT, TIER, ROW, APART = 180, 92, 24, 6
SHOWN = 40


@dataclass(frozen=True)
class Bar:
    """One row: what it is of, where the bytes are ("" for one place only), and bytes a parameter by kind."""

    name: str
    tier: str
    kinds: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.kinds.values())


@dataclass(frozen=True)
class BytesPerParameter(Shown):
    """What `bytes_per_parameter` returns."""

    bars: list[Bar]
    source: Source
    title: str

    def summary(self) -> list[str]:
        if not self.bars:
            return ["Nothing to compare."]
        said = "; ".join(f"{_name(bar)}: {figure(bar.total)}" for bar in self.bars[:6])
        more = f"; and {len(self.bars) - 6} more" if len(self.bars) > 6 else ""
        return [f"Bytes a parameter, {self.source}. {said}{more}."]

    def kinds(self) -> list[str]:
        return list(dict.fromkeys(kind for bar in self.bars for kind in bar.kinds))

    def tables(self) -> list[Table]:
        kinds = self.kinds()
        rows = [
            (_name(bar), *(figure(bar.kinds[kind]) if kind in bar.kinds else "-" for kind in kinds), figure(bar.total))
            for bar in self.bars
        ]
        return [Table(f"Bytes a parameter, {self.source}", ("", *map(named, kinds), "together"), rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, f"Bytes a parameter, {self.source}.")
        largest = max((bar.total for bar in self.bars), default=0.0)
        tiers = any(bar.tier for bar in self.bars)
        left = LEFT + (TIER if tiers else 0)
        width = WIDTH - left - 100
        styles = styles_of(self.kinds(), KINDS)
        shown = self.bars[:SHOWN]
        top = drawing.below + 6
        first, before = top, ""
        tops: list[float] = []
        for bar in shown:
            top += (ROW + APART) if tops else 0
            top += 10 if tops and bar.name != before else 0
            tops.append(top)
            before = bar.name
        bottom = top + ROW + APART if shown else top
        if shown:
            drawing.axis(left, width, first - 4, bottom, largest, lambda value: f"{value:g}")
        before = ""
        for bar, y in zip(shown, tops, strict=True):
            if bar.name != before:
                lines = wrapped(named(bar.name), LEFT - MARGIN - 10, NORMAL, 1)
                drawing.text(MARGIN, y + 16, lines[0], size=NORMAL)
            if bar.tier:
                drawing.text(left - 8, y + 16, named(bar.tier), room=TIER - 12, role="faint", anchor="end")
            x = float(left)
            for kind in sorted(bar.kinds, key=list(styles).index):
                wide = width * (bar.kinds[kind] / largest) if largest else 0.0
                if wide <= 0:
                    continue
                drawing.block(styles[kind], x, y, wide, ROW)
                words = figure(bar.kinds[kind])
                label = f"{styles[kind].label} {words}"
                if not drawing.on(styles[kind], x + wide / 2, y + 16, label, wide):
                    drawing.on(styles[kind], x + wide / 2, y + 16, words, wide)
                x += wide
            drawing.text(x + 8, y + 17, figure(bar.total), size=NORMAL, bold=True, halo=True)
            before = bar.name
        drawing.below = bottom + (20 if shown else 0)
        drawing.key((style, named(style.label)) for style in list(styles.values())[:SHOWN])
        if len(self.bars) > SHOWN:
            drawing.paragraph(f"{len(self.bars) - SHOWN} more are in the table.")
        return drawing.document(self.summary(), "bytes-plot")


def bytes_per_parameter(
    rows: Mapping[str, Mapping[str, Any]], *, source: Source, title: str = "Bytes a parameter"
) -> BytesPerParameter:
    """Stacked bars of bytes a parameter.

    `rows`: {"AdamW": {"weights": 2, "moments": 8}}, or with tiers {"disk tier": {"RAM": {"weights": 2}, "disk": {…}}}.
    `source` says what the numbers are. Raises ValueError for one that is negative or not finite.
    """
    bars = []
    for name, kinds in rows.items():
        nested = kinds if all(isinstance(value, Mapping) for value in kinds.values()) and kinds else {"": kinds}
        for tier, values in nested.items():
            where = f"{named(name)} in {named(tier)}:" if tier else f"{named(name)}:"
            bars.append(Bar(name, tier, amounts(values, where, "bytes a parameter")))
    return BytesPerParameter(bars, checked_source(source), title)  # type: ignore[arg-type]


def figure(value: float) -> str:
    """Bytes a parameter: 2, 16.25, 0.001; of large ones a unit."""
    return f"{value:.4g}" if value < 10_000 else byte_label(value)


def _name(bar: Bar) -> str:
    return f"{named(bar.name)}, {named(bar.tier)}" if bar.tier else named(bar.name)
