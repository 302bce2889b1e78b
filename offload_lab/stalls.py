"""What a step waited for, read off its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from offload_lab.trace import Event

LANES = {"read": "disk reads", "write": "disk writes", "update": "update", "gradient": "backward"}
LINK = {"fetch": "copies from the accelerator", "send": "copies to the accelerator"}


@dataclass(frozen=True)
class LaneUse:
    """Of one kind of task in one step: bytes moved, and seconds in which at least one such task ran."""

    nbytes: int
    seconds: float

    @property
    def bandwidth(self) -> float:
        """Bytes a second while it was busy; 0 where nothing was moved."""
        return self.nbytes / self.seconds if self.seconds > 0 else 0.0


def merged(events: Iterable[Event], start: float, end: float) -> list[tuple[float, float]]:
    """The times in which any of `events` ran, within [start, end], as disjoint intervals in order."""
    spans: list[tuple[float, float]] = []
    for left, right in sorted((max(e.start, start), min(e.end, end)) for e in events):
        if right <= left:
            continue
        if spans and left <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], right))
        else:
            spans.append((left, right))
    return spans


def lane_use(events: Sequence[Event], start: float, end: float) -> dict[str, LaneUse]:
    """Use of each lane between `start` and `end` (seconds of the events' clock)."""
    result = {}
    for kind, label in (LANES | LINK).items():
        mine = [event for event in events if event.name == kind and event.end > start and event.start < end]
        if mine:
            busy = sum(right - left for left, right in merged(mine, start, end))
            result[label] = LaneUse(sum(event.nbytes for event in mine), busy)
    return result


def attribute(events: Sequence[Event], start: float, end: float) -> dict[str, float]:
    """Shares of the time between `start` and `end`, adding up to 1, by what the step was doing or waiting for.

    While an update runs, the step is updating. While none runs and updates are still to come, it waits for the gradient that
    is to come, for a read or a copy from the accelerator (copies are named only where there are any), or, where none of these
    runs, for a buffer that is being written. After the last update it waits for writes and for copies to the accelerator. The
    rest is "other" (publishing, starting threads).
    """
    lanes = LANES | {kind: label for kind, label in LINK.items() if any(event.name == kind for event in events)}
    shares = dict.fromkeys((*lanes.values(), "other"), 0.0)
    if end <= start:
        return shares
    for left, right, label in spans(events, start, end):
        shares[label] += (right - left) / (end - start)
    return shares


def spans(events: Sequence[Event], start: float, end: float) -> list[tuple[float, float, str]]:
    """(from, to, what it was doing or waiting for) by the rule of `attribute`, without gaps from `start` to `end`."""
    lanes = LANES | LINK
    running = {kind: merged([e for e in events if e.name == kind], start, end) for kind in lanes}
    last_update = max((right for _, right in running["update"]), default=start)
    points = sorted({start, end, *(t for busy in running.values() for span in busy for t in span)})
    at = dict.fromkeys(lanes, 0)
    found: list[tuple[float, float, str]] = []
    for left, right in pairwise(points):
        active = set()
        for kind, busy in running.items():
            while at[kind] < len(busy) and busy[at[kind]][1] <= left:
                at[kind] += 1
            if at[kind] < len(busy) and busy[at[kind]][0] <= left:
                active.add(kind)
        order = ("update", "read", "fetch", "write", "send", "gradient") if left < last_update else ("update", "write", "send")
        label = next((lanes[kind] for kind in order if kind in active), "other")
        if found and found[-1][2] == label:
            found[-1] = (found[-1][0], right, label)
        else:
            found.append((left, right, label))
    return found
