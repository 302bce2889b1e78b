"""Two runs of one machine in one picture, lane by lane on one axis of time: a learner's schedule and the reference, say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from offload_lab.plots.drawing import MARGIN, NORMAL, WIDTH, Drawing
from offload_lab.plots.rows import CROWDED, LEFT, Scale, lane_row, lane_styles
from offload_lab.plots.runs import Run, lane_label
from offload_lab.plots.scale import second_label, share_label
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table
from offload_lab.trace import Event
from quizzes.say import _

_TALL, _BETWEEN, _APART = 20, 3, 12
_DASHES = ("", "4 3")


@dataclass(frozen=True)
class TwoRuns(Shown):
    """What `two_runs` returns: two runs by name. The second one is drawn with dashed outlines."""

    title: str
    runs: Mapping[str, Run]
    source: Source

    def summary(self) -> list[str]:
        said = [f"{name}: {second_label(run.seconds)}" for name, run in self.runs.items()]
        return [_("From start to end, {source}. {times}.").format(source=self.source, times="; ".join(said))]

    def tables(self) -> list[Table]:
        rows = []
        for lane in lane_styles(*self.runs.values()):
            busy = [run.busy(lane) for run in self.runs.values()]
            shares = [share_label(run.share(taken)) for run, taken in zip(self.runs.values(), busy, strict=True)]
            told = [f"{second_label(taken)}, {share}" for taken, share in zip(busy, shares, strict=True)]
            rows.append((lane_label(lane), *told))
        rows.append((_("start to end"), *(second_label(run.seconds) for run in self.runs.values())))
        return [Table(_("Time in which a lane was busy, {source}").format(source=self.source), ("", *self.runs), rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        left = LEFT + 14 + max(len(name) for name in self.runs) * 7.0
        longest = max(run.seconds for run in self.runs.values())
        scale = Scale(left, WIDTH - left - 22, longest)
        styles = lane_styles(*self.runs.values())
        first = top = drawing.below + 18
        each = _TALL + _BETWEEN
        bottom = top + len(styles) * (len(self.runs) * each + _APART)
        drawing.axis(left, scale.width, top - 4, bottom, longest, second_label)
        crowded = False
        for lane, style in styles.items():
            drawing.text(MARGIN, top + _TALL + 6, lane_label(lane), room=LEFT - MARGIN - 8, size=NORMAL)
            for row, ((name, run), dashes) in enumerate(zip(self.runs.items(), _DASHES, strict=True)):
                y = top + row * each
                drawing.text(left - 8, y + 14, name, role="faint", anchor="end")
                if lane in run.lanes:
                    crowded |= lane_row(drawing, scale, run.lanes[lane], style, y, _TALL, dashes)
            top += len(self.runs) * each + _APART
        ends = [(scale.x(run.seconds), name, dashes) for (name, run), dashes in zip(self.runs.items(), _DASHES, strict=True)]
        for x, _name, dashes in ends:
            drawing.line(f"M{x:.1f} {first - 4:.1f}V{bottom:.1f}", thick=2, dashes=dashes, halo=True)
        drawing.flags([(x, _("end, {name}").format(name=name)) for x, name, _dashes in ends], first - 9, left)
        drawing.below = bottom + 20
        if crowded:
            drawing.paragraph(CROWDED)
        return drawing.document(self.summary(), "two-runs-plot")


def two_runs(title: str, runs: Mapping[str, Iterable[Event]], *, source: Source = "predicted") -> TwoRuns:
    """Two runs by name, each from its own first event on. Raises ValueError for more or fewer, and as `timeline` does."""
    if len(runs) != len(_DASHES):
        raise ValueError(_("two runs are drawn beside each other, not {count}").format(count=len(runs)))
    checked_source(source)
    return TwoRuns(title, {name: Run.of(events) for name, events in runs.items()}, source)
