"""What happened when: events of a step, kept in a bounded list, exported as a Chrome trace or as a table."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile


@dataclass(frozen=True)
class Event:
    """One task as it ran: `start` and `end` in seconds of one clock, `nbytes` moved: by an update through memory."""

    name: str
    lane: str
    partition: int
    start: float
    end: float
    nbytes: int


class Recorder:
    """The newest `limit` events, in the order in which they ended. Safe to write from several threads."""

    def __init__(self, limit: int = 20_000) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    def clear(self) -> None:
        with self._lock:
            self._events.clear()

    def events(self) -> list[Event]:
        with self._lock:
            return list(self._events)

    def since(self, start: float) -> list[Event]:
        """The newest events, back to the last one that ended by `start`: what a step left, without a look at all others."""
        with self._lock:
            newest = list(takewhile(lambda event: event.end > start, reversed(self._events)))
        return newest[::-1]

    def chrome_trace(self) -> dict[str, object]:
        """The events in Chrome's trace-event format (open it in Perfetto): times in microseconds, one row a lane."""
        return chrome_trace(self.events())

    def table(self) -> list[dict[str, object]]:
        """One dict a event, times in seconds from the first start."""
        events = self.events()
        origin = min((event.start for event in events), default=0.0)
        return [
            {
                "name": event.name,
                "lane": event.lane,
                "partition": event.partition,
                "start": event.start - origin,
                "end": event.end - origin,
                "nbytes": event.nbytes,
            }
            for event in events
        ]


def chrome_trace(events: Iterable[Event]) -> dict[str, object]:
    """Complete events ("ph": "X") as the Trace Event Format defines them: `ts` and `dur` in microseconds."""
    listed = list(events)
    lanes = {lane: row for row, lane in enumerate(sorted({event.lane for event in listed}))}
    origin = min((event.start for event in listed), default=0.0)
    rows: list[dict[str, object]] = [
        {"ph": "M", "pid": 0, "tid": row, "name": "thread_name", "args": {"name": lane}} for lane, row in lanes.items()
    ]
    rows += [
        {
            "ph": "X",
            "pid": 0,
            "tid": lanes[event.lane],
            "name": f"{event.name} {event.partition}",
            "ts": (event.start - origin) * 1e6,
            "dur": (event.end - event.start) * 1e6,
            "args": {"bytes": event.nbytes},
        }
        for event in listed
    ]
    return {"traceEvents": rows, "displayTimeUnit": "ms"}
