"""Lanes over time: which partition was read, updated and written when. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab.plots.drawing import MARGIN, NORMAL, WIDTH, Drawing
from offload_lab.plots.palette import LANES
from offload_lab.plots.rows import LEFT, RIGHT, Scale, lane_row
from offload_lab.plots.runs import Run
from offload_lab.plots.tables import Table
from offload_lab.trace import Event
from quizzes.figures.picture import Picture
from quizzes.figures.runs import LANES_SHOWN, Steps, lane_name
from quizzes.say import _

ROW, APART = 30, 8


@dataclass(frozen=True)
class Timeline(Picture):
    steps: Steps

    def remark(self) -> str:
        return _("Simulated. Each block is one task; the number in it is its partition. Times are in milliseconds.")

    def summary(self) -> list[str]:
        said = []
        for number, events in enumerate(self.steps.events(), 1):
            for lane, mine in self.steps.lanes(events).items():
                listed = "; ".join(
                    _("partition {number} from {start} to {end} ms").format(
                        number=event.partition, start=self._ms(event.start), end=self._ms(event.end)
                    )
                    for event in mine
                )
                named = lane_name(lane)
                if self.steps.steps > 1:
                    named = _("step {number}, {lane}").format(number=number, lane=named)
                said.append(f"{named}: {listed or _('nothing')}.")
        return said

    def tables(self) -> list[Table]:
        rows = []
        for number, events in enumerate(self.steps.events(), 1):
            lanes = self.steps.lanes(events)
            for partition in range(self.steps.partitions):
                named = _("partition {number}").format(number=partition)
                if self.steps.steps > 1:
                    named = _("step {number}, partition {partition}").format(number=number, partition=partition)
                rows.append((named, *(self._spans(mine, partition) for mine in lanes.values())))
        return [Table(_("From and to, in milliseconds from the start"), ("", *map(lane_name, LANES_SHOWN)), rows)]

    def _spans(self, events: list[Event], partition: int) -> str:
        spans = [(event.start, event.end) for event in events if event.partition == partition]
        return "; ".join(_("{start} to {end}").format(start=self._ms(a), end=self._ms(b)) for a, b in spans) or "-"

    def _ms(self, seconds: float) -> str:
        return self.number(seconds * 1000)

    def draw(self, drawing: Drawing) -> None:
        steps = self.steps.events()
        run = Run.of([event for events in steps for event in events])
        scale = Scale(LEFT, WIDTH - LEFT - RIGHT, run.seconds)
        several = len(steps) > 1
        top = drawing.below + (24 if several else 4)
        bottom = top + len(run.lanes) * (ROW + APART)
        drawing.axis(LEFT, scale.width, top - 4, bottom, run.seconds, self.milliseconds, 10)
        for number, (start, end) in enumerate(self.steps.simulation().steps, 1):
            if several:
                x = scale.x(start - run.start)
                drawing.line(f"M{x:.1f} {top - 20:.1f}V{bottom:.1f}", thick=1.5, dashes="4 3")
                named = _("step {number}").format(number=number)
                drawing.text(x + 5, top - 9, named, room=scale.x(end - run.start) - x - 8, role="faint")
        for name, lane in run.lanes.items():
            drawing.text(MARGIN, top + ROW / 2 + 5, lane_name(name), room=LEFT - MARGIN - 10, size=NORMAL)
            lane_row(drawing, scale, lane, LANES[name], top, ROW)
            top += ROW + APART
        drawing.below = bottom + 18
