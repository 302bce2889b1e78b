"""How far a step is from what its hardware allows: each lane's bound as a share of the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from offload_lab.plots.checks import amount, amounts
from offload_lab.plots.drawing import MARGIN, NORMAL, SMALL, WIDTH, Drawing
from offload_lab.plots.lettering import width_of
from offload_lab.plots.palette import LANES, styles_of
from offload_lab.plots.runs import lane_label
from offload_lab.plots.scale import second_label, share_label
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table

LEFT, ROW, APART = 132, 24, 10
SHOWN = 24


@dataclass(frozen=True)
class Roofline(Shown):
    """What `roofline` returns. `bounds` are in seconds, the longest first."""

    bounds: Mapping[str, float]
    step_seconds: float
    source: Source
    title: str

    @property
    def roof(self) -> float:
        """Seconds below which no schedule can come: the longest bound."""
        return max(self.bounds.values(), default=0.0)

    def share(self, seconds: float) -> float:
        return seconds / self.step_seconds if self.step_seconds > 0 else 0.0

    def summary(self) -> list[str]:
        step = f"The step, {self.source}: {second_label(self.step_seconds)}"
        if not self.bounds:
            return [f"{step}. No bounds were given."]
        longest = f"The longest bound, predicted: {second_label(self.roof)}, {lane_label(next(iter(self.bounds)))}"
        said = [f"{step}. {longest}."]
        if self.roof > self.step_seconds:
            said.append("The step is shorter than its bound: a bandwidth or a number of bytes behind that bound is wrong.")
        elif self.step_seconds > 0:
            said.append(f"The step reaches {share_label(self.share(self.roof))} of what its hardware allows.")
        return said

    def tables(self) -> list[Table]:
        rows = [(lane_label(name), second_label(s), share_label(self.share(s))) for name, s in self.bounds.items()]
        everything = sum(self.bounds.values())
        rows.append(("all after each other", second_label(everything), share_label(self.share(everything))))
        return [Table("Bounds, predicted", ("lane", "at least", "share of the step"), rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        shown = list(self.bounds.items())[:SHOWN]
        lines = [(self.step_seconds, f"the step, {self.source}", "")]
        everything = sum(self.bounds.values())
        if self.step_seconds < everything <= 2.5 * max(self.step_seconds, self.roof):
            lines.append((everything, "nothing overlapped", "2 4"))
        largest = max(self.roof, *(seconds for seconds, _, _ in lines))
        width = WIDTH - LEFT - 70
        first = drawing.below + 18
        bottom = first + max(len(shown), 1) * (ROW + APART)
        drawing.axis(LEFT, width, first - 4, bottom, largest, second_label)
        styles = styles_of([name for name, _ in shown], LANES)
        scale = width / largest if largest > 0 else 0.0
        for seconds, _, dashes in lines:
            x = LEFT + seconds * scale
            drawing.line(f"M{x:.1f} {first - 4:.1f}V{bottom:.1f}", thick=2, dashes=dashes, halo=True)
        drawing.flags([(LEFT + seconds * scale, words) for seconds, words, _ in lines], first - 9, LEFT)
        top = first + APART / 2
        for name, seconds in shown:
            drawing.text(MARGIN, top + 16, lane_label(name), room=LEFT - MARGIN - 8, size=NORMAL)
            drawing.block(styles[name], LEFT, top, seconds * scale, ROW)
            words = f"{second_label(seconds)}, {share_label(self.share(seconds))}"
            middle = LEFT + seconds * scale - width_of(words, SMALL) / 2 - 8
            if not drawing.on(styles[name], middle, top + 16, words, seconds * scale):
                drawing.text(LEFT + seconds * scale + 6, top + 16, words, halo=True)
            top += ROW + APART
        drawing.below = bottom + 22
        remarks = ["Each bar: the seconds that a lane needs at least, and their share of the step.", *self.summary()[1:]]
        if len(self.bounds) > SHOWN:
            remarks.append(f"{len(self.bounds) - SHOWN} shorter ones are in the table.")
        for remark in remarks:
            drawing.paragraph(remark)
        return drawing.document(self.summary(), "roofline-plot")


def roofline(bounds: Mapping[str, float], step_seconds: float, *, source: Source, title: str = "Roofline") -> Roofline:
    """The bound of each lane beside the step that it bounds, both in seconds.

    A step cannot take less than max over its lanes of bytes / bandwidth (of operations / throughput for an accelerator): the
    roofline of Williams, Waterman and Patterson (2009), for lanes that run beside each other. `bounds` holds those times by
    lane, which are predicted; `source` says where `step_seconds` is from. Raises ValueError for a time that is negative or
    not finite.
    """
    checked = amounts(bounds, "the bound of lane", "seconds")
    longest_first = dict(sorted(checked.items(), key=lambda item: -item[1]))
    step = amount(step_seconds, "step_seconds", "seconds")
    return Roofline(longest_first, step, checked_source(source), title)  # type: ignore[arg-type]
