"""Rows of a timeline: a lane's tasks, or what the run waited for, as blocks, or as shares where there are too many. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from offload_lab.plots.drawing import Drawing
from offload_lab.plots.palette import LANES, OTHER, Style, styles_of
from offload_lab.plots.runs import WORK, Lane, Run, busy_shares, lane_label
from offload_lab.trace import slots

LEFT, RIGHT = 132, 22
CROWD = 160
"""Blocks in a row, above which it is drawn as the share of each moment that was busy."""
COLUMN = 2.0
MOST_SPLIT = 4
"""Tasks of a lane that run at once, up to which each has its part of the row's height."""
CROWDED = (
    f"A row of more than {CROWD} tasks is drawn as the share of each moment in which it was busy: full height is all of it."
)


@dataclass(frozen=True)
class Scale:
    """Where seconds from the start of a run lie: from `left` on, `seconds` of them over `width`."""

    left: float
    width: float
    seconds: float

    def x(self, seconds: float) -> float:
        return self.left + (self.width * (seconds / self.seconds) if self.seconds > 0 else 0.0)


def lane_styles(*runs: Run) -> dict[str, Style]:
    return styles_of([name for run in runs for name in run.lanes], LANES)


def lane_row(drawing: Drawing, scale: Scale, lane: Lane, style: Style, top: float, height: float, dashes: str = "") -> bool:
    """The tasks of `lane` from `top` on, with its partition where there is room. True where they were too many for that."""
    if len(lane.events) > CROWD:
        _shares(drawing, scale, [(style, busy_shares(lane.spans, scale.seconds, _columns(scale)))], top, height)
        return True
    origin = lane.events[0].start - lane.spans[0][0] if lane.events else 0.0
    places = slots(lane.events)
    split = max(places, default=0) + 1
    if split > MOST_SPLIT:
        places, split = [0] * len(places), 1
    tall = height / split
    for event, place in zip(lane.events, places, strict=True):
        x = scale.x(event.start - origin)
        wide = max(scale.x(event.end - origin) - x, 1.0)
        drawing.block(style, x, top + place * tall, wide, tall, dashes=dashes, edge=0.8 if wide > 3 else 0.3)
        if event.partition >= 0 and tall >= 15:
            drawing.on(style, x + wide / 2, top + (place + 0.5) * tall + 4, str(event.partition), wide)
    return False


def wait_row(drawing: Drawing, scale: Scale, run: Run, top: float, height: float) -> bool:
    """What the run did or waited for. A stall is lower than work and says its name where there is room."""
    styles = wait_styles(run)
    if len(run.waits) > CROWD:
        labels = [label for label in run.waited if label != "other"]
        columns = _columns(scale)
        rows = [
            (styles[name], busy_shares([(a, b) for a, b, label in run.waits if label == name], scale.seconds, columns))
            for name in sorted(labels, key=lambda label: label != WORK)
        ]
        _shares(drawing, scale, rows, top, height)
        return True
    for left, right, label in run.waits:
        x, wide = scale.x(left), scale.x(right) - scale.x(left)
        if label == "other" or wide <= 0:
            continue
        low = 0.0 if label == WORK else height * 0.2
        drawing.block(styles[label], x, top + low, wide, height - low, edge=0.8 if wide > 3 else 0.3)
        words = label if label == WORK else f"waits: {label}"
        middle = top + low / 2 + height / 2 + 4
        for shorter in (words, label, label.split()[-1]):
            if drawing.on(styles[label], x + wide / 2, middle, shorter, wide):
                break
    return False


def wait_styles(run: Run) -> dict[str, Style]:
    """A style for each label of `run.waits`: that of the lane whose label it is."""
    lanes = {lane_label(name): style for name, style in lane_styles(run).items()}
    return {label: lanes.get(label, OTHER) for label in run.waited}


def _columns(scale: Scale) -> int:
    return max(int(scale.width / COLUMN), 1)


def _shares(drawing: Drawing, scale: Scale, rows: Sequence[tuple[Style, Sequence[float]]], top: float, height: float) -> None:
    """Stacked columns from the bottom up, as one closed path a style."""
    floor = [0.0] * _columns(scale)
    wide = scale.width / len(floor)
    for style, shares in rows:
        pieces = []
        roof = [min(low + share, 1.0) for low, share in zip(floor, shares, strict=True)]
        column = 0
        while column < len(floor):
            end = column + 1
            while end < len(floor) and (floor[end], roof[end]) == (floor[column], roof[column]):
                end += 1
            if roof[column] - floor[column] > 1e-4:
                low, high = top + height * (1 - floor[column]), top + height * (1 - roof[column])
                left, right = scale.left + column * wide, scale.left + end * wide
                pieces.append(f"M{left:.1f} {low:.1f}V{high:.1f}H{right:.1f}V{low:.1f}Z")
            column = end
        if pieces:
            drawing.area(style, "".join(pieces))
        floor = roof
