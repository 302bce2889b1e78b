"""Runs a schedule in virtual time: the same list of tasks, lanes and buffers as the pipeline, on modelled hardware. Pure.

The promises are those of `schedule.py`: a task starts when all of `after` have ended, and tasks of one lane start in the
order of the list. What the model adds:

- a lane has at most `widths[lane]` tasks begun at once, and moves their bytes one after the other, in order. That is what
  the pipeline's threads do: the pieces of a task are all handed out before those of the next one;
- the two lanes of a half-duplex device share its bandwidth equally while both move something, and so do CPU and accelerator
  where they have one memory (`lanes.py`).

Every figure that comes out is *predicted*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offload_lab.bounds import Bounds, lower_bounds
from offload_lab.hardware import Hardware
from offload_lab.lanes import Device, devices
from offload_lab.occupancy import Occupancy, occupancies, peak
from offload_lab.schedule import Task
from offload_lab.stalls import merged
from offload_lab.trace import Event
from offload_lab.waiting import waited


@dataclass(frozen=True)
class Simulation:
    """What `simulate` found; times are seconds of a clock that begins with 0."""

    events: tuple[Event, ...]
    """What the engine's `trace` would show, in the order in which tasks ended."""
    times: tuple[tuple[tuple[float, float], ...], ...]
    """Of each step: start and end of every task, by its number."""
    steps: tuple[tuple[float, float], ...]
    """Start and end of each step."""
    busy: dict[str, float]
    """Lane -> seconds in which at least one of its tasks was under way."""
    occupied: tuple[Occupancy, ...]
    """Which partition lay in which buffer, and when."""
    peak_buffers: int
    peak_bytes: int
    """Most buffers, and most bytes in buffers, at any one time."""
    stalls: dict[str, float]
    """Shares of the time, adding up to 1: updating, or waiting for what (see `waiting.py`)."""
    bounds: Bounds
    """Times below which these tasks cannot go on this hardware, and why."""

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end."""
        return self.steps[-1][1] if self.steps else 0.0


class _Running:
    """A task that has begun: seconds to go before it moves anything, then bytes to go."""

    def __init__(self, task: Task, seconds: float) -> None:
        self.task, self.seconds, self.nbytes = task, seconds, float(task.nbytes)


class _Clock:
    """One step in virtual time, from `start`."""

    def __init__(
        self,
        tasks: Sequence[Task],
        machine: Sequence[Device],
        widths: Mapping[str, int],
        seconds: Mapping[str, float],
        start: float,
    ) -> None:
        self.now = start
        self._device = {lane: device for device in machine for lane in device.rates}
        self._widths, self._seconds = widths, seconds
        self._queues: dict[str, list[Task]] = {}
        for task in tasks:
            self._queues.setdefault(task.lane, []).append(task)
        self._next = dict.fromkeys(self._queues, 0)
        self._running: dict[str, list[_Running]] = {lane: [] for lane in self._queues}
        self.start: dict[int, float] = {}
        self.end: dict[int, float] = {}
        self.ended: list[int] = []

    def run(self) -> None:
        while self._begin() or any(self._running.values()):
            self._advance()

    def _begin(self) -> bool:
        """Start all that may start now. Whether there was any."""
        begun = False
        for lane, queue in self._queues.items():
            running = self._running[lane]
            while self._next[lane] < len(queue) and len(running) < self._widths.get(lane, 1):
                task = queue[self._next[lane]]
                if not self.end.keys() >= set(task.after):
                    break
                running.append(_Running(task, self._seconds.get(task.kind, 0.0)))
                self.start[task.number] = self.now
                self._next[lane] += 1
                begun = True
        return begun

    def _advance(self) -> None:
        """Go on to the next moment at which something ends."""
        heads = {lane: running[0] for lane, running in self._running.items() if running}
        moving = {lane: head for lane, head in heads.items() if head.seconds == 0 and head.nbytes > 0}
        rates = {lane: self._device[lane].rate(lane, moving) for lane in moving}
        waits = [one.seconds for running in self._running.values() for one in running if one.seconds > 0]
        waits += [head.nbytes / rates[lane] for lane, head in moving.items()]
        over = any(head.seconds == 0 and head.nbytes == 0 for head in heads.values())
        passed = 0.0 if over else min(waits)
        self.now += passed
        for running in self._running.values():
            for one in running:
                if one.seconds > 0:
                    one.seconds = _rest(one.seconds, passed)
        for lane, head in moving.items():
            head.nbytes = _rest(head.nbytes, passed * rates[lane])
        for running in self._running.values():
            while running and running[0].seconds == 0 and running[0].nbytes == 0:
                number = running.pop(0).task.number
                self.end[number] = self.now
                self.ended.append(number)


def _rest(left: float, gone: float) -> float:
    """What is left; nothing where it is only the rounding of a division."""
    return left - gone if left - gone > 1e-12 * left else 0.0


def simulate(
    schedule: Sequence[Task] | Sequence[Sequence[Task]],
    hardware: Hardware,
    *,
    widths: Mapping[str, int] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> Simulation:
    """Run the tasks of one step, or of several steps that follow each other, on `hardware`.

    `widths`: lane -> how many of its tasks may have begun at once; 1 where nothing is said. `seconds`: kind of task -> seconds
    that each takes besides moving its bytes: {"gradient": 0.01} for a backward that brings a partition's gradients every
    hundredth of a second, {"read": 1e-4} for the latency of a disk.

    With everything in `hardware` k times as fast, and no `seconds`, all of it takes exactly 1 / k of the time. Where no
    device is shared (full duplex), no single figure that grows makes a step slower: starts and ends are maxima and sums of
    durations. On a half-duplex disk that is not so: an update that ends earlier lets a write begin earlier, which takes
    bandwidth from a read that more depends on. Such a step is still at least as fast as on a full-duplex disk with half of the
    bandwidth (`together / 2`) each way.

    Raises ValueError for a lane whose figure the hardware does not have, a width below 1, negative seconds, and for a task that
    waits for a later one.
    """
    steps: list[Sequence[Task]]
    if len(schedule) and isinstance(schedule[0], Task):
        steps = [schedule]  # type: ignore[list-item]
    else:
        steps = list(schedule)  # type: ignore[arg-type]
    widths, seconds = widths or {}, seconds or {}
    for lane, width in widths.items():
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise ValueError(f"widths[{lane!r}] is {width!r}: a whole number of at least 1 is needed")
    for kind, value in seconds.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"seconds[{kind!r}] is {value!r}: a finite number of at least 0 is needed")
    for tasks in steps:
        _check_numbers(tasks)
    machine = devices(hardware, {task.lane for tasks in steps for task in tasks if task.nbytes})
    now, events, times, spans = 0.0, [], [], []
    bounds, shares = Bounds(), dict[str, float]()
    for tasks in steps:
        clock = _Clock(tasks, machine, widths, seconds, now)
        clock.run()
        by_number = {task.number: task for task in tasks}
        for number in clock.ended:
            task = by_number[number]
            events.append(Event(task.kind, task.lane, task.partition, clock.start[number], clock.end[number], task.nbytes))
        times.append(tuple((clock.start[task.number], clock.end[task.number]) for task in tasks))
        spans.append((now, clock.now))
        for name, took in waited(tasks, times[-1], now, clock.now).items():
            shares[name] = shares.get(name, 0.0) + took
        bounds = bounds.then(lower_bounds(tasks, machine, widths, seconds))
        now = clock.now
    occupied = occupancies(steps, times)
    buffers, nbytes = peak(occupied)
    lanes = dict.fromkeys(event.lane for event in events)
    busy = {lane: sum(b - a for a, b in merged([e for e in events if e.lane == lane], 0.0, now)) for lane in lanes}
    return Simulation(
        tuple(events),
        tuple(times),
        tuple(spans),
        busy,
        tuple(occupied),
        buffers,
        nbytes,
        {name: took / now for name, took in shares.items()} if now else shares,
        bounds,
    )


def _check_numbers(tasks: Sequence[Task]) -> None:
    for place, task in enumerate(tasks):
        if not isinstance(task, Task):
            raise ValueError(f"entry {place} of the schedule is {task!r}; a Task is needed")
        if task.number != place:
            raise ValueError(f"task {task.number} ({task.kind} {task.partition}) is at place {place} of its list")
        if task.nbytes < 0:
            raise ValueError(f"task {task.number} ({task.kind} {task.partition}) moves {task.nbytes} bytes")
        if any(not 0 <= other < place for other in task.after):
            raise ValueError(
                f"task {task.number} ({task.kind} {task.partition}) waits for {task.after}, and may wait only for earlier ones"
            )
