"""Predicted over measured: two runs of one schedule, lane by lane, on one axis of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from offload_lab.plots.drawing import MARGIN, NORMAL, WIDTH, Drawing
from offload_lab.plots.rows import CROWDED, LEFT, Scale, lane_row, lane_styles, wait_row, wait_styles
from offload_lab.plots.runs import Run, doing, lane_label
from offload_lab.plots.scale import second_label, share_label
from offload_lab.plots.shown import Shown
from offload_lab.plots.tables import Table
from offload_lab.trace import Event

HALF, BETWEEN, APART = 20, 3, 12
TAGS = 74
LANES_SHOWN = 16


@dataclass(frozen=True)
class PredictedOverMeasured(Shown):
    """What `predicted_over_measured` returns."""

    predicted: Run
    measured: Run
    title: str

    def summary(self) -> list[str]:
        if not self.predicted.events and not self.measured.events:
            return ["No events, neither predicted nor measured."]
        pair = f"Predicted: {_long(self.predicted)}. Measured: {_long(self.measured)}"
        said = [f"{pair}{_off(self.predicted.seconds, self.measured.seconds)}."]
        apart = {name: abs(self.predicted.busy(name) - self.measured.busy(name)) for name in self.lanes}
        name = max(apart, key=apart.__getitem__)
        if apart[name] > 0 and self.predicted.events and self.measured.events:
            pair = f"predicted {second_label(self.predicted.busy(name))}, measured {second_label(self.measured.busy(name))}"
            said.append(f"The lane that is farthest off: {lane_label(name)}, {pair}.")
        return said

    @property
    def lanes(self) -> list[str]:
        return list(lane_styles(self.predicted, self.measured))

    def tables(self) -> list[Table]:
        lanes = [(lane_label(name), self.predicted.busy(name), self.measured.busy(name)) for name in self.lanes]
        predicted, measured = self.predicted.waited, self.measured.waited
        labels = dict.fromkeys([*predicted, *measured])
        waits = [(doing(label), predicted.get(label, 0.0), measured.get(label, 0.0)) for label in labels]
        whole = [("start to end", self.predicted.seconds, self.measured.seconds)]
        headers = ("", "predicted", "measured", "measured is")
        return [
            Table(caption, headers, [(name, second_label(p), second_label(m), _times(p, m)) for name, p, m in rows])
            for caption, rows in (("The whole", whole), ("Time in which a lane was busy", lanes), ("What the step did", waits))
        ]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        left = LEFT + TAGS
        longest = max(self.predicted.seconds, self.measured.seconds)
        runs = (("predicted", self.predicted, "4 3"), ("measured", self.measured, ""))
        scale = Scale(left, WIDTH - left - 22, longest)
        styles = lane_styles(self.predicted, self.measured)
        top, crowded = drawing.below + 18, False
        shown = list(styles.items())[:LANES_SHOWN]
        rows = len(shown) + bool(self.predicted.waits or self.measured.waits)
        bottom = top + rows * (2 * HALF + BETWEEN + APART)
        if shown:
            drawing.axis(left, scale.width, top - 4, bottom, longest, second_label)
        ends = [(scale.x(run.seconds), name, dashes) for name, run, dashes in runs if run.events]
        for name, style in shown:
            drawing.text(MARGIN, top + HALF + 6, lane_label(name), room=LEFT - MARGIN - 8, size=NORMAL)
            for row, (tag, run, dashes) in enumerate(runs):
                y = top + row * (HALF + BETWEEN)
                drawing.text(left - 8, y + 14, tag, role="faint", anchor="end")
                if name in run.lanes:
                    crowded |= lane_row(drawing, scale, run.lanes[name], style, y, HALF, dashes)
            top += 2 * HALF + BETWEEN + APART
        if rows > len(shown):
            drawing.text(MARGIN, top + HALF + 6, "the step", size=NORMAL, bold=True)
            for row, (tag, run, _) in enumerate(runs):
                y = top + row * (HALF + BETWEEN)
                drawing.text(left - 8, y + 14, tag, role="faint", anchor="end")
                crowded |= wait_row(drawing, scale, run, y, HALF)
        first = drawing.below + 18
        for x, _, dashes in ends:
            drawing.line(f"M{x:.1f} {first - 4:.1f}V{bottom:.1f}", thick=2, dashes=dashes, halo=True)
        drawing.flags([(x, f"end, {name}") for x, name, _ in ends], first - 9, left)
        drawing.below = bottom + 20 if shown else drawing.below
        looks = wait_styles(self.predicted) | wait_styles(self.measured)
        drawing.key((look, _shares(label, self.predicted, self.measured)) for label, look in looks.items())
        remarks = [*self.summary()[1:], *([CROWDED] if crowded else [])]
        if len(styles) > LANES_SHOWN:
            remarks.append(f"{len(styles) - LANES_SHOWN} more lanes are in the table.")
        for remark in remarks:
            drawing.paragraph(remark)
        return drawing.document(self.summary(), "compared-plot")

    def plotly(self) -> Any:
        """The same as a plotly Figure, to zoom into. At most 5 000 tasks of each: a browser has to hold it."""
        from offload_lab.plots.plotly_lanes import figure

        return figure([("predicted ", self.predicted), ("measured ", self.measured)], self.title, "predicted over measured")


def predicted_over_measured(
    predicted: Iterable[Event], measured: Iterable[Event], *, title: str = "Predicted over measured"
) -> PredictedOverMeasured:
    """Two runs of one schedule, lane by lane: above what was predicted (dashed outlines), below what was measured.

    Each run begins at its own first event; times are in seconds. Raises ValueError as `timeline` does.
    """
    return PredictedOverMeasured(Run.of(predicted), Run.of(measured), title)


def _shares(label: str, predicted: Run, measured: Run) -> str:
    shares = [share_label(run.share(run.waited.get(label, 0.0))) for run in (predicted, measured)]
    return f"{doing(label)}: predicted {shares[0]}, measured {shares[1]}"


def _long(run: Run) -> str:
    return second_label(run.seconds) if run.events else "no events"


def _off(predicted: float, measured: float) -> str:
    if predicted <= 0 or measured <= 0:
        return ""
    off = measured / predicted - 1
    if abs(off) < 0.005:
        return ", the same within half a percent"
    return f", {share_label(abs(off))} {'more' if off > 0 else 'less'} than predicted"


def _times(predicted: float, measured: float) -> str:
    return f"{measured / predicted:.2f} × predicted" if predicted > 0 else "-"
