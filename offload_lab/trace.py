"""What happened when: events of a step, kept in a bounded list, exported as a Chrome trace or as a table."""

from __future__ import annotations

import heapq
import json
import math
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path


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

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the Chrome trace to `path`, to be opened at https://ui.perfetto.dev. Raises OSError, which names the path."""
        return save_chrome_trace(path, {"offload_lab": self.events()})

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


def chrome_trace(events: Iterable[Event], process: str = "offload_lab") -> dict[str, object]:
    """One run in the Trace Event Format, as `chrome_traces` has it."""
    return chrome_traces({process: events})


def chrome_traces(runs: Mapping[str, Iterable[Event]]) -> dict[str, object]:
    """Runs in Chrome's Trace Event Format, each a process of its own: predicted beside measured, for example.

    Complete events ("ph": "X") with `ts` and `dur` in microseconds, `ts` from the first start of each run, and metadata events
    ("ph": "M") that name processes and lanes. A lane is a thread; where its tasks overlap, as those of several real threads do,
    it is as many threads as it takes: the format allows events of one thread to nest, not to cross. Raises ValueError for an
    event that ends before it starts or is at no finite time, which a viewer would drop without a word.

    Times are whole nanoseconds. Perfetto makes nanoseconds of `ts` and of `dur`, each by itself, and drops an event that then
    crosses the one before it in its thread, be it by one nanosecond.
    """
    rows: list[dict[str, object]] = []
    for pid, (process, events) in enumerate(runs.items(), start=1):
        listed = sorted(events, key=lambda event: event.start)
        origin = listed[0].start if listed else 0.0
        rows.append(_named("process_name", pid, 0, name=process))
        tid = 0
        for lane in sorted({event.lane for event in listed}):
            mine = [event for event in listed if event.lane == lane]
            places = slots(mine)
            for place in range(max(places) + 1):
                name = lane if place == 0 else f"{lane} ({place + 1})"
                rows.append(_named("thread_name", pid, tid + place + 1, name=name))
                rows.append(_named("thread_sort_index", pid, tid + place + 1, sort_index=tid + place + 1))
            rows += [_complete(event, pid, tid + place + 1, origin) for event, place in zip(mine, places, strict=True)]
            tid += max(places) + 1
    return {"traceEvents": rows, "displayTimeUnit": "ms"}


def save_chrome_trace(path: str | os.PathLike[str], runs: Mapping[str, Iterable[Event]]) -> Path:
    """Write `chrome_traces(runs)` to `path` as JSON. Raises OSError, which names the path."""
    written = Path(path)
    written.write_text(json.dumps(chrome_traces(runs), allow_nan=False), encoding="utf-8")
    return written


def slots(events: Sequence[Event]) -> list[int]:
    """For each of `events`, which are in the order of their starts, the lowest row in which none before it still runs."""
    free: list[int] = []
    running: list[tuple[float, int]] = []
    places = []
    for event in events:
        while running and running[0][0] <= event.start:
            heapq.heappush(free, heapq.heappop(running)[1])
        place = heapq.heappop(free) if free else len(running)
        heapq.heappush(running, (event.end, place))
        places.append(place)
    return places


def _named(kind: str, pid: int, tid: int, **args: object) -> dict[str, object]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": args}


def _complete(event: Event, pid: int, tid: int, origin: float) -> dict[str, object]:
    if not (math.isfinite(event.start) and math.isfinite(event.end) and event.start <= event.end):
        raise ValueError(
            f"event {event.name!r} of partition {event.partition} runs from {event.start} s to {event.end} s: "
            "a trace needs finite times, the end not before the start"
        )
    start, end = (round((at - origin) * 1e9) for at in (event.start, event.end))
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "name": f"{event.name} {event.partition}",
        "cat": event.name,
        "ts": _microseconds(start),
        "dur": _microseconds(end - start),
        "args": {"partition": event.partition, "bytes": event.nbytes},
    }


def _microseconds(nanoseconds: int) -> float:
    """The number of microseconds that is `nanoseconds` whether a reader rounds what it gets by × 1000, or cuts it off."""
    micro = nanoseconds / 1000
    return micro if int(micro * 1000) >= nanoseconds else math.nextafter(micro, math.inf)
