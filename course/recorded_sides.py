"""Lesson 8's trainings side by side, as seen once on one machine: for who has not installed the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course.in_turns import Turns
from quizzes.say import N_, _


@dataclass(frozen=True)
class Recorded:
    """What the lesson's cells measured on `machine` on `date`, with these `versions`; `disk`: bytes a parameter by name."""

    date: str
    machine: str
    versions: str
    turns: Sequence[Turns]
    disk: Mapping[str, float]
    losses: Sequence[float]
    """Under `accelerate launch`, of the steps from the first on."""

    def __str__(self) -> str:
        head = _("Recorded on {date}, not measured here: {machine}\n({versions})")
        row = _("{turn}   {size:.0f} bytes a parameter on disk")
        lines = [head.format(date=self.date, machine=_(self.machine), versions=self.versions)]
        return "\n".join([*lines, *(row.format(turn=turn, size=self.disk[turn.name]) for turn in self.turns)])

    @property
    def launched(self) -> str:
        """What `accelerate launch` gave, as a sentence."""
        said = _("Recorded on {date}, not measured here: under `accelerate launch`, losses {losses}.")
        return said.format(date=self.date, losses=", ".join(f"{loss:.4f}" for loss in self.losses))


RECORDED = Recorded(
    "2026-12-03",
    N_("AMD EPYC, 2 cores, 23.5 GiB, a virtual disk"),
    "Linux 6.18, Python 3.11.7, torch 2.13.0, DeepSpeed 0.19.8, Accelerate 1.12.0",
    (
        Turns("ours, each step kept", (0.0495, 0.0527, 0.0550), (0.0648,)),
        Turns("ours, scratch files", (0.0298, 0.0322, 0.0336), (0.0648,)),
        Turns("DeepSpeed", (0.0876, 0.0927, 0.0940), (0.0648,)),
    ),
    {"ours, each step kept": 24, "ours, scratch files": 10, "DeepSpeed": 16},
    (4.3276, 2.6050),
)
"""Of `in_turns` with its own rounds and steps, while little else ran; seconds are the least, middle and most of five rounds."""
