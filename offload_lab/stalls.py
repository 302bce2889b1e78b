"""What a step waited for, read off its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from offload_lab.trace import Event

LANES = {"read": "disk reads", "write": "disk writes", "update": "update", "gradient": "backward"}


@dataclass(frozen=True)
class LaneUse:
    """Of one kind of task in one step: bytes moved, and seconds in which at least one such task ran."""

    nbytes: int
    seconds: float

    @property
    def bandwidth(self) -> float:
        """Bytes a second while it was busy; 0 where nothing was moved."""
        return self.nbytes / self.seconds if self.seconds > 0 else 0.0


def _merged(events: Iterable[Event], start: float, end: float) -> list[tuple[float, float]]:
    """The times in which any of `events` ran, within [start, end], as disjoint intervals in order."""
    merged: list[tuple[float, float]] = []
    for left, right in sorted((max(e.start, start), min(e.end, end)) for e in events):
        if right <= left:
            continue
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def lane_use(events: Sequence[Event], start: float, end: float) -> dict[str, LaneUse]:
    """Use of each lane between `start` and `end` (seconds of the events' clock)."""
    result = {}
    for kind, label in LANES.items():
        mine = [event for event in events if event.name == kind and event.end > start and event.start < end]
        if mine:
            busy = sum(right - left for left, right in _merged(mine, start, end))
            result[label] = LaneUse(sum(event.nbytes for event in mine), busy)
    return result


def attribute(events: Sequence[Event], start: float, end: float) -> dict[str, float]:
    """Shares of the time between `start` and `end`, adding up to 1, by what the step was doing or waiting for.

    While an update runs, the step is updating. While none runs and updates are still to come, it waits for the gradient that
    is to come, or for a read, or, where no read runs either, for a buffer that is being written. After the last update it
    waits for writes. The rest is "other" (publishing, starting threads).
    """
    shares = dict.fromkeys((*LANES.values(), "other"), 0.0)
    if end <= start:
        return shares
    for left, right, label in spans(events, start, end):
        shares[label] += (right - left) / (end - start)
    return shares


def spans(events: Sequence[Event], start: float, end: float) -> list[tuple[float, float, str]]:
    """(from, to, what it was doing or waiting for) by the rule of `attribute`, without gaps from `start` to `end`."""
    running = {kind: _merged([e for e in events if e.name == kind], start, end) for kind in LANES}
    last_update = max((right for _, right in running["update"]), default=start)
    points = sorted({start, end, *(t for busy in running.values() for span in busy for t in span)})
    at = dict.fromkeys(LANES, 0)
    found: list[tuple[float, float, str]] = []
    for left, right in pairwise(points):
        active = set()
        for kind, busy in running.items():
            while at[kind] < len(busy) and busy[at[kind]][1] <= left:
                at[kind] += 1
            if at[kind] < len(busy) and busy[at[kind]][0] <= left:
                active.add(kind)
        order = ("update", "read", "write", "gradient") if left < last_update else ("update", "write")
        label = next((LANES[kind] for kind in order if kind in active), "other")
        if found and found[-1][2] == label:
            found[-1] = (found[-1][0], right, label)
        else:
            found.append((left, right, label))
    return found
