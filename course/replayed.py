"""The simulator against this machine: the engine's own steps, each beside what the simulator says of the same tasks."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.hardware import Hardware
from offload_lab.schedule import Task
from offload_lab.schedulers import no_overlap, read_ahead, write_behind
from offload_lab.simulate import simulate
from offload_lab.trace import Event
from offload_lab.work import Work
from quizzes.say import _

SCHEDULES: Mapping[str, Callable[[Work], Sequence[Task]]] = {
    "no overlap": no_overlap,
    "read ahead": read_ahead,
    "write behind": write_behind,
}


@dataclass(frozen=True)
class Replay:
    """Seconds of a step with one schedule, measured (the median of some steps) and predicted from the same list of tasks."""

    name: str
    measured: float
    predicted: float
    measured_events: Sequence[Event]
    predicted_events: Sequence[Event]

    @property
    def ratio(self) -> float:
        """Measured over predicted: 1.2 where the machine took a fifth longer."""
        return self.measured / self.predicted

    def __str__(self) -> str:
        told = _("{name:14} predicted {predicted:6.0f} ms, measured {measured:6.0f} ms: {ratio:.2f} times as long")
        return told.format(name=self.name, predicted=1000 * self.predicted, measured=1000 * self.measured, ratio=self.ratio)


def replayed(hardware: Hardware, parameters: int = 16 << 20, steps: int = 5, directory: str = ".") -> list[Replay]:
    """Run `steps` steps with each of SCHEDULES, the state in scratch files in a temporary folder in `directory` (10 bytes a
    parameter), and replay the last one of each with the figures of `hardware`.

    Raises ValueError for fewer than one step, and for a figure that `hardware` lacks; StorageError where there is no disk tier,
    or the disk is full.
    """
    if steps < 1 or parameters < 1:
        raise ValueError(_("at least one step of at least one parameter is needed"))
    weight = torch.nn.Parameter(torch.zeros(parameters, dtype=torch.bfloat16))
    weight.grad = torch.full_like(weight, 1e-3)
    found = []
    for name, schedule in SCHEDULES.items():
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            policy = OffloadPolicy(
                tier="disk",
                directory=Path(folder) / "state",
                durability="checkpoint",
                partition_size=max(parameters // 16, 1),
                schedule=schedule,
            )
            with OffloadAdamW([weight], offload=policy) as optimizer:
                optimizer.step()  # lays out the files, and reads nothing
                taken = []
                for _turn in range(steps):
                    optimizer.trace.clear()
                    begun = time.perf_counter()
                    optimizer.step()
                    taken.append(time.perf_counter() - begun)
                events, tasks = optimizer.trace.events(), optimizer.last_tasks
        predicted = simulate(tasks, hardware)
        found.append(Replay(name, statistics.median(taken), predicted.makespan, events, predicted.events))
    return found


def furthest(replays: Sequence[Replay]) -> float:
    """The factor by which prediction and measurement differ most, whichever is the longer: at least 1."""
    return max((max(one.ratio, 1 / one.ratio) for one in replays), default=1.0)
