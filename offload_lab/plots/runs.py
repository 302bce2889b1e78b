"""The events of one run as lanes, and what the run waited for: the data behind a timeline. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from offload_lab import stalls
from offload_lab.plots.lettering import named
from offload_lab.plots.palette import LANES
from offload_lab.plots.scale import byte_label, second_label, share_label
from offload_lab.plots.tables import Table
from offload_lab.trace import Event

Span = tuple[float, float]


@dataclass(frozen=True)
class Lane:
    """What one lane did: its spans without overlaps, in seconds from the start of the run."""

    name: str
    events: Sequence[Event]
    spans: Sequence[Span]
    nbytes: int

    @property
    def busy(self) -> float:
        return math.fsum(right - left for left, right in self.spans)


@dataclass(frozen=True)
class Run:
    """Checked events. Raises ValueError for one that ends before it starts or is at no finite time."""

    events: Sequence[Event]

    @classmethod
    def of(cls, events: Iterable[Event]) -> Run:
        listed = list(events)
        for event in listed:
            told = f"event {named(event.name)!r} of partition {event.partition} in lane {named(event.lane)!r}"
            if not (math.isfinite(event.start) and math.isfinite(event.end)):
                raise ValueError(f"{told} runs from {event.start} to {event.end}: finite seconds are needed")
            if event.end < event.start:
                raise ValueError(f"{told} ends at {event.end} s, before it starts at {event.start} s")
            if event.nbytes < 0:
                raise ValueError(f"{told} moves {event.nbytes} bytes: at least 0 are needed")
        run = cls(sorted(listed, key=lambda event: event.start))
        if not math.isfinite(run.seconds):
            raise ValueError("the events are too far apart: the time between them is no number")
        return run

    @cached_property
    def start(self) -> float:
        return self.events[0].start if self.events else 0.0

    @cached_property
    def end(self) -> float:
        return max((event.end for event in self.events), default=0.0)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @cached_property
    def lanes(self) -> dict[str, Lane]:
        """By name, in the order of the palette, then in that of the alphabet."""
        of: dict[str, list[Event]] = {}
        for event in self.events:
            of.setdefault(event.lane, []).append(event)
        order = [name for name in LANES if name in of] + sorted(name for name in of if name not in LANES)
        return {name: self._lane(name, of[name]) for name in order}

    def _lane(self, name: str, events: list[Event]) -> Lane:
        spans = merged((event.start - self.start, event.end - self.start) for event in events)
        return Lane(name, events, spans, sum(event.nbytes for event in events))

    @cached_property
    def waits(self) -> list[tuple[float, float, str]]:
        """(from, to, label) without gaps: the label of a lane's kind of task as `stalls.spans` finds it, or of another lane.

        What `stalls` calls "other" is looked at once more: while a lane runs whose tasks it does not know, it is that lane.
        """
        if self.seconds <= 0:
            return []
        known = stalls.spans(self.events, self.start, self.end)
        others = {
            name: lane.spans
            for name, lane in self.lanes.items()
            if name != "cpu" and any(event.name not in stalls.LANES for event in lane.events)
        }
        found: list[tuple[float, float, str]] = []
        for left, right, label in known:
            left, right = left - self.start, right - self.start
            pieces = _divided(left, right, others) if label == "other" and others else [(left, right, label)]
            for piece in pieces:
                if found and found[-1][2] == piece[2]:
                    found[-1] = (found[-1][0], piece[1], piece[2])
                else:
                    found.append(piece)
        return found

    @cached_property
    def waited(self) -> dict[str, float]:
        """Seconds by label of `waits`, the longest first."""
        sums: dict[str, float] = {}
        for left, right, label in self.waits:
            sums[label] = sums.get(label, 0.0) + right - left
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def busy(self, lane: str) -> float:
        """Seconds in which the lane of that name was busy; 0 for one that is not there."""
        return self.lanes[lane].busy if lane in self.lanes else 0.0

    def share(self, seconds: float) -> float:
        return seconds / self.seconds if self.seconds > 0 else 0.0

    def summary(self) -> list[str]:
        if not self.events:
            return ["no events."]
        partitions = len({event.partition for event in self.events})
        tasks = f"{len(self.events):,} task{_s(len(self.events))}"
        said = [f"{tasks} on {partitions:,} partition{_s(partitions)} in {second_label(self.seconds)}."]
        if self.waited:
            said.append("; ".join(f"{doing(label)}: {share_label(self.share(s))}" for label, s in self.waited.items()) + ".")
        return said + self.longest()

    def longest(self) -> list[str]:
        """The longest stall in a sentence, if there is one."""
        if not self.stalls:
            return []
        left, right, label, before = self.stalls[0]
        return [f"The longest stall: {second_label(right - left)} from {second_label(left)}, {doing(label)}{_before(before)}."]

    @cached_property
    def stalls(self) -> list[tuple[float, float, str, int | None]]:
        """The five longest: (from, to, label, the partition whose update came next, or None after the last)."""
        updates = sorted((event.start - self.start, event.partition) for event in self.events if event.name == "update")
        found: list[tuple[float, float, str, int | None]] = []
        stalled = [span for span in self.waits if span[2] not in (WORK, "other")]
        for left, right, label in sorted(stalled, key=lambda span: span[0] - span[1])[:5]:
            following = bisect_left(updates, (right, -math.inf))
            found.append((left, right, label, updates[following][1] if following < len(updates) else None))
        return found

    def tables(self) -> list[Table]:
        lanes = [
            (
                lane_label(name),
                f"{len(lane.events):,}",
                second_label(lane.busy),
                share_label(self.share(lane.busy)),
                byte_label(lane.nbytes) if lane.nbytes else "-",
                f"{byte_label(lane.nbytes / lane.busy)}/s" if lane.nbytes and lane.busy > 0 else "-",
            )
            for name, lane in self.lanes.items()
        ]
        waits = [(doing(label), second_label(s), share_label(self.share(s))) for label, s in self.waited.items()]
        stalled = [
            (f"{doing(label)}{_before(before)}", second_label(left), second_label(right - left))
            for left, right, label, before in self.stalls
        ]
        return [
            Table("Lanes", ("lane", "tasks", "busy", "share of the time", "moved", "while busy"), lanes),
            Table("What the step did or waited for", ("the step was", "time", "share"), waits),
            Table("The longest stalls", ("the step was", "from", "time"), stalled),
        ]


WORK = stalls.LANES["update"]


def doing(label: str) -> str:
    """A label of `Run.waits` in words: only while it updates does a step not wait."""
    if label == WORK:
        return "updating"
    return "neither updating nor waiting for a lane" if label == "other" else f"waiting for {named(label)}"


def _before(partition: int | None) -> str:
    return "" if partition is None else f", before the update of partition {partition}"


def lane_label(name: str) -> str:
    return LANES[name].label if name in LANES else named(name)


def merged(spans: Iterable[Span]) -> list[Span]:
    """The union of `spans` as disjoint spans in order. Those without length stay, unless another one covers them."""
    union: list[Span] = []
    for left, right in sorted(spans):
        if union and left <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], right))
        else:
            union.append((left, right))
    return union


def busy_shares(spans: Iterable[Span], seconds: float, columns: int) -> list[float]:
    """Of each of `columns` equal parts of `seconds`, the share that disjoint `spans` cover."""
    shares = [0.0] * columns
    apart = seconds / columns
    if apart <= 0:
        return shares
    for left, right in spans:
        first, last = min(int(left / apart), columns - 1), min(int(right / apart), columns - 1)
        for column in range(first, last + 1):
            covered = min(right, (column + 1) * apart) - max(left, column * apart)
            shares[column] = min(1.0, shares[column] + max(covered, 0.0) / apart)
    return shares


def _divided(left: float, right: float, lanes: dict[str, Sequence[Span]]) -> list[tuple[float, float, str]]:
    inside: dict[str, list[Span]] = {}
    for name, spans in lanes.items():
        first = max(bisect_right(spans, (left, math.inf)) - 1, 0)
        last = bisect_left(spans, (right, -math.inf))
        inside[name] = [(max(a, left), min(b, right)) for a, b in spans[first:last] if b > left]
    points = sorted({left, right, *(point for spans in inside.values() for span in spans for point in span)})
    at = dict.fromkeys(inside, 0)
    pieces = []
    for start, end in pairwise(points):
        label = "other"
        for name, spans in inside.items():
            while at[name] < len(spans) and spans[at[name]][1] <= start:
                at[name] += 1
            if label == "other" and at[name] < len(spans) and spans[at[name]][0] <= start:
                label = lane_label(name)
        pieces.append((start, end, label))
    return pieces


def _s(count: int) -> str:
    return "" if count == 1 else "s"
