"""What a simulated step waited for: exact, since the times and the waits of every task are known. Pure.

`stalls.attribute` looks at events alone and takes what runs for what is waited for. Here each moment without an update is put
down to the task that kept the next update from starting at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from offload_lab.schedule import Task
from offload_lab.stalls import LANES, merged
from offload_lab.trace import Event

Span = tuple[float, float]


def waited(tasks: Sequence[Task], times: Sequence[Span], start: float, end: float) -> dict[str, float]:
    """Seconds of a step from `start` to `end`, by what it did ("update") or waited for; keys are those of `stalls.LANES` and
    the kind of any other task. They add up to `end - start`.

    Before an update that starts late: back from its start, from each task to the one it started right behind. After the last
    update: back from the end of the step in the same way.
    """
    seconds = dict.fromkeys(LANES.values(), 0.0)
    updates = [task for task in tasks if task.kind == "update"]
    events = [Event(task.kind, task.lane, task.partition, *times[task.number], task.nbytes) for task in updates]
    working = merged(events, start, end)
    seconds[LANES["update"]] = sum(right - left for left, right in working)
    starts = {times[task.number][0]: task for task in reversed(updates)}
    last = max(tasks, key=lambda task: times[task.number][1], default=None)
    at = start
    for left, right in working:
        _back(starts[left], left, at, tasks, times, seconds)
        at = right
    if last is not None and end > at:
        seconds_of_last = max(times[last.number][0], at)
        _add(seconds, last, end - seconds_of_last)
        _back(last, seconds_of_last, at, tasks, times, seconds)
    return seconds


def _back(
    task: Task, until: float, since: float, tasks: Sequence[Task], times: Sequence[Span], seconds: dict[str, float]
) -> None:
    """Put down the time from `since` until `until`, at which `task` started."""
    while until > since:
        ended = [tasks[number] for number in task.after]
        ended += [other for other in tasks[: task.number] if other.lane == task.lane and times[other.number][1] <= until]
        before = max(ended, key=lambda other: times[other.number][1], default=None)
        if before is None:
            seconds["other"] = seconds.get("other", 0.0) + until - since
            return
        begun = max(times[before.number][0], since)
        _add(seconds, before, until - begun)
        task, until = before, begun


def _add(seconds: dict[str, float], task: Task, took: float) -> None:
    name = LANES.get(task.kind, task.kind)
    seconds[name] = seconds.get(name, 0.0) + took
