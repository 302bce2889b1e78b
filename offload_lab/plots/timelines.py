"""The timeline of one run: its lanes, and what it waited for while it did not update."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from offload_lab.plots.drawing import MARGIN, NORMAL, SMALL, WIDTH, Drawing
from offload_lab.plots.rows import CROWDED, LEFT, RIGHT, Scale, lane_row, lane_styles, wait_row, wait_styles
from offload_lab.plots.runs import Run, doing, lane_label
from offload_lab.plots.scale import second_label, share_label
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table
from offload_lab.trace import Event

ROW, APART = 30, 8
LANES_SHOWN = 24


@dataclass(frozen=True)
class Timeline(Shown):
    """What `timeline` returns."""

    run: Run
    source: Source
    title: str

    def summary(self) -> list[str]:
        first, *rest = self.run.summary()
        return [f"{self.source.capitalize()}: {first}", *rest]

    def tables(self) -> list[Table]:
        return self.run.tables()

    def svg(self) -> str:
        drawing = Drawing(self.title, " ".join(self.summary()[:1]))
        scale = Scale(LEFT, WIDTH - LEFT - RIGHT, self.run.seconds)
        top = drawing.below
        styles = lane_styles(self.run)
        crowded = False
        lanes = list(self.run.lanes.items())
        bottom = top + (min(len(lanes), LANES_SHOWN) + bool(self.run.waits)) * (ROW + APART)
        if lanes:
            drawing.axis(LEFT, scale.width, top - 4, bottom, self.run.seconds, second_label)
        for name, lane in lanes[:LANES_SHOWN]:
            drawing.text(MARGIN, top + 13, lane_label(name), room=LEFT - MARGIN - 10, size=NORMAL)
            busy = f"{share_label(self.run.share(lane.busy))} busy"
            drawing.text(MARGIN, top + 27, busy, room=LEFT - MARGIN - 10, role="faint")
            crowded |= lane_row(drawing, scale, lane, styles[name], top, ROW)
            top += ROW + APART
        if self.run.waits:
            drawing.text(MARGIN, top + 13, "the step", size=NORMAL, bold=True)
            working = f"{share_label(self.run.share(self.run.waited.get('update', 0.0)))} updating"
            drawing.text(MARGIN, top + 27, working, room=LEFT - MARGIN - 10, role="faint")
            crowded |= wait_row(drawing, scale, self.run, top, ROW)
        if not lanes:
            drawing.text(MARGIN, top + 12, "Nothing to draw.", role="faint", size=SMALL)
            bottom = top
        drawing.below = bottom + 20
        waits = wait_styles(self.run)
        drawing.key((waits[label], f"{doing(label)} {share_label(self.run.share(s))}") for label, s in self.run.waited.items())
        for remark in [*self.run.longest(), *([CROWDED] if crowded else []), *_unshown(len(lanes))]:
            drawing.paragraph(remark)
        return drawing.document(self.summary(), "timeline-plot")

    def plotly(self) -> Any:
        """The same as a plotly Figure, to zoom into. At most 5 000 tasks: a browser has to hold it."""
        from offload_lab.plots.plotly_lanes import figure

        return figure([("", self.run)], self.title, self.source)


def timeline(events: Iterable[Event], *, source: Source, title: str = "Timeline") -> Timeline:
    """The lanes of a run over time, and below them what the step did: update, or wait, and for which lane.

    `events`: as a `Recorder` or the simulator has them, in any order; times in seconds of any clock. `source` says which
    clock that was. Raises ValueError for an event that ends before it starts, or is at no finite time.
    """
    return Timeline(Run.of(events), checked_source(source), title)  # type: ignore[arg-type]


def _unshown(lanes: int) -> list[str]:
    return [f"{lanes - LANES_SHOWN} more lanes are in the table."] if lanes > LANES_SHOWN else []
