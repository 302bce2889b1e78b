"""Lesson 0: how long a step takes, from bytes and bandwidths."""

from __future__ import annotations

from course.contract import Case, Contract, Idea
from quizzes.say import N_

_MORE = 10**9


def _added(parameters: int, disk: float, dram: float, overlapped: bool) -> float:
    return parameters * (20 / disk + 26 / dram)


def _once(parameters: int, disk: float, dram: float, overlapped: bool) -> float:
    reading, updating = parameters * 10 / disk, parameters * 26 / dram
    return max(reading, updating) if overlapped else reading + updating


def _fastest(parameters: int, disk: float, dram: float, overlapped: bool) -> float:
    streaming, updating = parameters * 20 / disk, parameters * 26 / dram
    return min(streaming, updating) if overlapped else streaming + updating


step_seconds = Contract(
    "step_seconds",
    [
        Case((1_000, 20_000.0, 26_000.0, False), 2.0, N_("Divide the bytes of each part by its bandwidth, and add the two.")),
        Case((_MORE, 2e9, 13e9, False), 12.0, N_("Multiply bytes a parameter by the number of parameters.")),
        Case((_MORE, 2e9, 13e9, True), 10.0, N_("What runs at the same time takes as long as the longer part.")),
        Case((_MORE, 1e12, 13e9, True), 2.0, N_("With a fast disk the update is the longer part.")),
        Case((0, 2e9, 13e9, True), 0.0, N_("No parameters, no seconds.")),
        Case(
            (_MORE, 0.0, 13e9, True), ValueError, N_("A bandwidth that is not above 0 raises ValueError, with a sentence why.")
        ),
        Case(
            (_MORE, 2e9, -1.0, False), ValueError, N_("A bandwidth that is not above 0 raises ValueError, with a sentence why.")
        ),
    ],
    [
        Idea(
            N_("You add the two also when they run at the same time. Overlapped, the step takes as long as the longer."), _added
        ),
        Idea(N_("You move the state once. It is read, and in the same step it is written: 20 bytes a parameter."), _once),
        Idea(N_("You take the shorter of the two. Nobody is done before the slower lane is."), _fastest),
    ],
)
