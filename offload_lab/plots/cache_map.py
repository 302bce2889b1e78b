"""The residency map: which partition was read, found in RAM, or written in which step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from offload_lab.plots.drawing import MARGIN, WIDTH, Drawing
from offload_lab.plots.lettering import width_of
from offload_lab.plots.palette import LANES, Style
from offload_lab.plots.scale import share_label
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table
from offload_lab.trace import Event

READ, HIT, WRITTEN = 1, 2, 4
LOOKS = {
    READ: LANES["disk-read"],
    HIT: Style("hit", "hit", "#009E73", "", ""),
    WRITTEN: LANES["disk-write"],
}
WORDS = {READ: "read from disk", HIT: "found in RAM (hit)", WRITTEN: "written to disk"}
LEFT, MOST_ROWS, MOST_COLUMNS, TALL = 76, 40, 80, 22
TABLE_ROWS = 20


@dataclass(frozen=True)
class Residency(Shown):
    """What `residency` returns. `flags`: partitions × steps of READ, HIT and WRITTEN, added up."""

    flags: np.ndarray
    source: Source
    title: str
    first_step: int = 0

    def share(self, flag: int, flags: np.ndarray | None = None) -> float:
        """Share of the cells that have `flag`."""
        cells = self.flags if flags is None else flags
        return float(np.count_nonzero(cells & flag)) / cells.size if cells.size else 0.0

    def summary(self) -> list[str]:
        partitions, steps = self.flags.shape
        if not self.flags.size:
            return ["No steps, or no partitions."]
        said = f"{self.source.capitalize()}: {_count(partitions, 'partition')} over {_count(steps, 'step')}"
        used = np.count_nonzero(self.flags & (READ | HIT))
        hits = np.count_nonzero(self.flags & HIT)
        rate = f" Of all uses {share_label(hits / used)} were hits." if used else " None was used."
        return [f"{said}.{rate} Written: {share_label(self.share(WRITTEN))} of all partitions a step."]

    def tables(self) -> list[Table]:
        if not self.flags.size:
            return []
        partitions, steps = self.flags.shape
        by_partition = [
            (_range("partition", part), *self._shares(self.flags[part.start : part.stop]))
            for part in _parts(partitions, TABLE_ROWS)
        ]
        by_step = [
            (_range("step", part, self.first_step), *self._shares(self.flags[:, part.start : part.stop]))
            for part in _parts(steps, TABLE_ROWS)
        ]
        return [
            Table("By partition, share of the steps", ("", "read", "hit", "written"), by_partition),
            Table("By step, share of the partitions", ("", "read", "hit", "written"), by_step),
        ]

    def _shares(self, flags: np.ndarray) -> tuple[str, ...]:
        return tuple(share_label(self.share(flag, flags)) for flag in (READ, HIT, WRITTEN))

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        rows, columns = _parts(self.flags.shape[0], MOST_ROWS), _parts(self.flags.shape[1], MOST_COLUMNS)
        if not rows or not columns:
            return drawing.document(self.summary(), "residency-plot")
        wide = min((WIDTH - LEFT - 20) / len(columns), 60.0)
        tall = max(min(360.0 / len(rows), TALL), 9.0)
        top = drawing.below + 18
        paths: dict[int, list[str]] = {READ: [], HIT: [], WRITTEN: []}
        gap = 1.0 if wide > 5 else 0.4
        for row, part in enumerate(rows):
            y = top + row * tall
            for column, span in enumerate(columns):
                cell = self.flags[part.start : part.stop, span.start : span.stop]
                for flag, left, low, size, high in _cell(cell, LEFT + column * wide, y, wide - gap, tall - gap):
                    paths[flag].append(f"M{left:.1f} {low:.1f}h{size:.1f}v{high:.1f}h{-size:.1f}z")
        bottom = top + len(rows) * tall
        right = LEFT + len(columns) * wide
        for flag, pieces in paths.items():
            if pieces:
                drawing.area(LOOKS[flag], "".join(pieces))
        drawing.line(f"M{LEFT:.1f} {top:.1f}V{bottom:.1f}H{right:.1f}")
        self._names(drawing, rows, columns, top, wide, tall)
        drawing.below = bottom + 20
        drawing.key((LOOKS[flag], f"{WORDS[flag]} {share_label(self.share(flag))}") for flag in (READ, HIT, WRITTEN))
        drawing.paragraph("Left part of a cell: read or hit; right part: written; empty: neither.")
        if len(rows) < self.flags.shape[0] or len(columns) < self.flags.shape[1]:
            cells = f"{_most(rows)} × {_most(columns)}"
            drawing.paragraph(f"One cell stands for up to {cells} (partitions × steps); each part is filled by its share.")
        return drawing.document(self.summary(), "residency-plot")

    def _names(self, drawing: Drawing, rows: list[range], columns: list[range], top: float, wide: float, tall: float) -> None:
        every = max(1, -(-16 // int(tall)))
        for row in range(0, len(rows), every):
            drawing.text(LEFT - 6, top + row * tall + tall / 2 + 4, _label(rows[row].start), role="faint", anchor="end")
        drawing.text(MARGIN, top - 8, "partition", role="faint")
        bottom = top + len(rows) * tall
        words = [_label(self.first_step + span.start) for span in columns]
        # Every so many columns one number, so that the steps between two of them are always the same.
        apart = max(1, -(-int(max(width_of(word, 12) for word in words) + 10) // max(int(wide), 1)))
        for column in range(0, len(columns), apart):
            x = LEFT + column * wide + wide / 2
            if x + width_of(words[column], 12) / 2 < WIDTH - 4:
                drawing.text(x, bottom + 16, words[column], role="faint", anchor="middle")
        drawing.text(LEFT - 6, bottom + 16, "step", role="faint", anchor="end")


def residency(flags: Any, *, source: Source, title: str = "Residency", first_step: int = 0) -> Residency:
    """A map of partitions (rows) over steps (columns).

    `flags`: a table of whole numbers, partitions × steps, each the sum of READ (1), HIT (2) and WRITTEN (4), 0 where nothing
    happened; `residency_flags` makes one from events. Raises ValueError for another shape or other numbers.
    """
    given = np.asarray(flags)
    if given.size == 0:
        given = np.zeros((0, 0), np.uint8)
    if given.ndim != 2:
        raise ValueError(f"flags has {given.ndim} dimension{'s' * (given.ndim != 1)}: partitions × steps are needed")
    if given.dtype.kind not in "iub":
        raise ValueError(f"flags holds {given.dtype}: whole numbers are needed, sums of READ (1), HIT (2), WRITTEN (4)")
    if given.size and not (given.min() >= 0 and given.max() <= READ + HIT + WRITTEN):
        raise ValueError(f"flags goes from {given.min()} to {given.max()}: only 0 to 7 are sums of READ, HIT and WRITTEN")
    return Residency(given.astype(np.uint8, copy=False), checked_source(source), title, first_step)  # type: ignore[arg-type]


def residency_flags(steps: Iterable[Sequence[Event]]) -> np.ndarray:
    """What `residency` draws, from the events of each step: partitions × steps.

    A partition that is updated in a step in which it is not read was a hit. Partitions are those that any step names, from 0
    to the highest. Raises ValueError for a negative one.
    """
    listed = [list(events) for events in steps]
    lowest = min((event.partition for events in listed for event in events), default=0)
    if lowest < 0:
        raise ValueError(f"an event is of partition {lowest}: partitions are counted from 0")
    count = 1 + max((event.partition for events in listed for event in events), default=-1)
    flags = np.zeros((count, len(listed)), np.uint8)
    for step, events in enumerate(listed):
        read = {event.partition for event in events if event.name == "read"}
        hit = {event.partition for event in events if event.name == "update"} - read
        for flag, partitions in (
            (READ, read),
            (HIT, hit),
            (WRITTEN, {event.partition for event in events if event.name == "write"}),
        ):
            flags[list(partitions), step] |= flag
    return flags


def _cell(cell: np.ndarray, x: float, y: float, wide: float, tall: float) -> list[tuple[int, float, float, float, float]]:
    """(flag, left, top, width, height) of the parts of one cell: on the left read over hit, on the right written."""
    parts: list[tuple[int, float, float, float, float]] = []
    floor = y + tall
    for flag in (HIT, READ):
        share = int(np.count_nonzero(cell & flag)) / cell.size
        if share:
            parts.append((flag, x, floor - share * tall, wide * 0.68, share * tall))
            floor -= share * tall
    share = int(np.count_nonzero(cell & WRITTEN)) / cell.size
    if share:
        parts.append((WRITTEN, x + wide * 0.72, y + tall - share * tall, wide * 0.28, share * tall))
    return parts


def _parts(count: int, most: int) -> list[range]:
    """`count` things in at most `most` runs of about the same length."""
    parts = min(count, most)
    ends = [count * number // parts for number in range(parts + 1)] if parts else []
    return [range(left, right) for left, right in pairwise(ends)]


def _most(parts: list[range]) -> int:
    return max(map(len, parts))


def _range(what: str, part: range, first: int = 0) -> str:
    if len(part) == 1:
        return f"{what} {first + part.start:,}"
    return f"{what}s {first + part.start:,} to {first + part.stop - 1:,}"


def _label(number: int) -> str:
    return f"{number:,}" if number < 10**7 else f"{number:.3g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
