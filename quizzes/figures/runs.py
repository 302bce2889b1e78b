"""Simulated steps for figures: a schedule of the engine on a machine whose figures the question gives. Pure: no torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle
from typing import Annotated, Literal

from pydantic import Field, model_validator

from offload_lab import schedulers
from offload_lab.hardware import Figure, Hardware
from offload_lab.puzzles import Case
from offload_lab.schedule import Item
from offload_lab.simulate import Simulation, simulate
from offload_lab.trace import Event
from offload_lab.work import Schedule, TaskList, Work
from quizzes.say import _
from quizzes.values import Strict

Amount = Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]


def given_away_early(work: Work) -> TaskList:
    """A race: as `write_behind`, but a buffer is read into when its update is done, while it is still being written."""
    tasks = TaskList()
    turns = cycle(range(work.buffers))
    free: dict[int, int] = {}
    for item in work.items:
        buffer = next(turns)
        read = tasks.read(item, buffer, after=free.get(buffer))
        free[buffer] = update = tasks.update(item, buffer, after=read)
        tasks.write(item, buffer, after=update)
    return tasks


LANES_SHOWN = ("disk-read", "cpu", "disk-write")


def lane_name(lane: str) -> str:
    return {"disk-read": _("disk reads"), "cpu": _("update"), "disk-write": _("disk writes")}[lane]


RACES: dict[str, Schedule] = {"given_away_early": given_away_early}
SCHEDULES: dict[str, Schedule] = {
    made.__name__: made
    for made in (
        schedulers.no_overlap,
        schedulers.read_ahead,
        schedulers.write_behind,
        schedulers.lru,
        schedulers.alternating,
        schedulers.pinned,
        schedulers.furthest,
    )
}


class Steps(Strict):
    """`read`, `update` and `write` are the megabytes that one partition moves in each lane; `disk_read`, `disk_write` and
    `memory` the rates in GB/s. Megabytes by GB/s are milliseconds. The first `resident` partitions are never read."""

    schedule: str
    steps: Annotated[int, Field(ge=1, le=6)] = 1
    partitions: Annotated[int, Field(ge=1, le=12)] = 6
    buffers: Annotated[int, Field(ge=1, le=12)] = 3
    resident: Annotated[int, Field(ge=0, le=12)] = 0
    read: Amount = 12
    update: Amount = 28
    write: Amount = 12
    disk_read: Amount = 2
    disk_write: Amount = 3
    memory: Amount = 14
    duplex: Literal["full", "half"] = "full"

    @model_validator(mode="after")
    def _is_known(self) -> Steps:
        known = [*SCHEDULES, *RACES]
        if self.schedule not in known:
            raise ValueError(f"schedule: {self.schedule!r} is not one of {', '.join(known)}")
        if self.schedule in RACES and (self.steps > 1 or self.resident):
            raise ValueError(f"schedule: {self.schedule} is shown for one step without resident partitions")
        if self.resident > self.partitions:
            raise ValueError(f"resident: {self.resident} of {self.partitions} partitions are not to be had")
        return self

    def case(self) -> Case:
        """The machine and the work, as `offload_lab.puzzles` has them."""
        mega = 10**6
        items = tuple(
            Item(
                number,
                round(self.read * mega),
                round(self.write * mega),
                number < self.resident,
                round(self.update * mega),
            )
            for number in range(self.partitions)
        )
        rates = {
            name: Figure(value * 1e9, "assumed")
            for name, value in (
                ("dram_bandwidth", self.memory),
                ("disk_read", self.disk_read),
                ("disk_write", self.disk_write),
            )
        }
        machine = Hardware("of the question", Figure(1e12, "assumed"), disk_duplex=self.duplex, **rates)  # type: ignore[arg-type]
        return Case("of the question", Work(items, self.buffers), machine, self.steps)

    def simulation(self) -> Simulation:
        """The steps in virtual time, each beginning with what the one before left in the buffers."""
        return _simulated(self)

    def events(self) -> list[list[Event]]:
        """Of each step, its tasks as they ran, by their starts."""
        simulated = self.simulation()
        found: list[list[Event]] = []
        for start, end in simulated.steps:
            mine = [event for event in simulated.events if start <= event.start and event.end <= end]
            found.append(sorted(mine, key=lambda event: (event.start, event.end, event.partition)))
        return found

    def lanes(self, events: Sequence[Event]) -> dict[str, list[Event]]:
        """Events by lane, in the order in which a partition passes through them."""
        return {lane: [event for event in events if event.lane == lane] for lane in LANES_SHOWN}


@lru_cache(maxsize=256)
def _simulated(steps: Steps) -> Simulation:
    case = steps.case()
    if steps.schedule in RACES:  # what a case would refuse to run
        return simulate(RACES[steps.schedule](case.work), case.hardware)
    return case.run(SCHEDULES[steps.schedule])
