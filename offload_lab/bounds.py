"""Times below which no machine runs a list of tasks, whoever decides when each begins. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from offload_lab.lanes import Device
from offload_lab.schedule import Task


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of a makespan in seconds; of several steps, the sum over them."""

    lanes: dict[str, float] = field(default_factory=dict)
    """Lane -> its tasks, each as if alone on the machine, divided by how many may run at once."""
    devices: dict[str, float] = field(default_factory=dict)
    """Device -> all bytes that its lanes move through it."""
    critical_path: float = 0.0
    """The longest chain of tasks that wait for each other, each as if alone on the machine."""
    path: tuple[int, ...] = ()
    """The tasks of that chain, by number, of the step in which it is longest."""
    longest_path: float = 0.0
    least: float = 0.0
    """The largest of all these; of several steps, the sum of the largest of each."""

    def then(self, other: Bounds) -> Bounds:
        """The bounds of these steps and, after they have ended, those of `other`."""
        return Bounds(
            _sum(self.lanes, other.lanes),
            _sum(self.devices, other.devices),
            self.critical_path + other.critical_path,
            other.path if other.longest_path > self.longest_path else self.path,
            max(self.longest_path, other.longest_path),
            self.least + other.least,
        )


def _sum(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in dict.fromkeys((*one, *other))}


def lower_bounds(
    tasks: Sequence[Task], machine: Sequence[Device], widths: Mapping[str, int], seconds: Mapping[str, float]
) -> Bounds:
    """Bounds of one step; arguments as `simulate` has them. `machine`: the devices.

    Each is one: a task takes at least what it takes alone; a lane runs at most its width at once; a device moves no more than
    `Device.least_seconds` allows; and the tasks of a chain run one after the other.
    """
    rates = {lane: device.rates[lane] for device in machine for lane in device.rates}
    alone = [seconds.get(task.kind, 0.0) + (task.nbytes / rates[task.lane] if task.nbytes else 0.0) for task in tasks]
    lanes: dict[str, float] = {}
    moved: dict[str, float] = {}
    until: list[float] = []  # the end of the longest chain that ends with this task
    before: list[int | None] = []
    for task, took in zip(tasks, alone, strict=True):
        lanes[task.lane] = lanes.get(task.lane, 0.0) + took / widths.get(task.lane, 1)
        moved[task.lane] = moved.get(task.lane, 0.0) + task.nbytes
        last = max(task.after, key=lambda number: until[number], default=None)
        before.append(last)
        until.append(took + (until[last] if last is not None else 0.0))
    through = {device.name: device.least_seconds(moved) for device in machine}
    path: list[int] = []
    at = max(range(len(tasks)), key=lambda number: until[number], default=None)
    while at is not None:
        path.append(at)
        at = before[at]
    longest = max(until, default=0.0)
    least = max((*lanes.values(), *through.values(), longest), default=0.0)
    return Bounds(lanes, through, longest, tuple(path[::-1]), longest, least)
