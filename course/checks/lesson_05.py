"""Lesson 5: how many bytes a step writes, on average."""

from __future__ import annotations

from course.contract import Case, Contract, Idea
from quizzes.say import N_


def _written(n: int, resident: float, every: int | None) -> float:
    """10 bytes a parameter of what is not in RAM; a published step: 12 of all."""
    between = 10 * n * (1 - resident)
    return between if every is None else (between * (every - 1) + 12 * n) / every


def _residents_left_out(n: int, resident: float, every: int | None) -> float:
    return _written(n, 0.0, every) * (1 - resident)


def _nothing_between(n: int, resident: float, every: int | None) -> float:
    return 10 * n * (1 - resident) if every is None else 12 * n / every


def _each_publishes(n: int, resident: float, every: int | None) -> float:
    return 10 * n * (1 - resident) if every is None else 12 * n


def _no_weights(n: int, resident: float, every: int | None) -> float:
    between = 10 * n * (1 - resident)
    return between if every is None else (between * (every - 1) + 10 * n) / every


_RESIDENTS = N_("A published step has to be restored from the directory alone: what stays in RAM is written then, too.")
_BETWEEN = N_("The steps between write as well: state that is not in RAM has nowhere else to go.")

bytes_written = Contract(
    "bytes_written",
    [
        Case((1_000_000, 0.0, None), 10e6, N_("Scratch files: the state, 10 bytes a parameter, and no weights.")),
        Case((1_000_000, 0.25, None), 7.5e6, N_("What stays in RAM is not written to scratch files.")),
        Case((1_000_000, 0.0, 1), 12e6, N_("A published step has state and weight: 10 + 2.")),
        Case((1_000_000, 0.25, 1), 12e6, _RESIDENTS),
        Case(
            (1_000_000, 0.0, 10),
            10.2e6,
            N_(
                "The steps between write as well: state that is not in RAM has nowhere else to go. The weights "
                "come once in ten steps."
            ),
        ),
        Case(
            (1_000_000, 0.5, 4),
            6.75e6,
            N_(
                "A published step has to be restored from the directory alone: what stays in RAM is written "
                "then, too. And of four steps, three write only what is not in RAM."
            ),
        ),
        Case(
            (1_000_000, 1.0, 5),
            2.4e6,
            N_(
                "With all in RAM, the steps between write nothing. A published step has to be restored from the "
                "directory alone: what stays in RAM is written then, too."
            ),
        ),
        Case((7_000_000_000, 0.2, 20), 57.4e9, N_("Multiply by the parameters.")),
        Case((1_000, 1.5, 1), ValueError, N_("A share of the partitions lies between 0 and 1; anything else is a ValueError.")),
        Case(
            (1_000, 0.0, 0),
            ValueError,
            N_("Every 0 steps means nothing: `every` is at least 1, or None; anything else is a ValueError."),
        ),
    ],
    [
        Idea(
            N_(
                "You leave out what stays in RAM, also where a step is published. A published step has to be "
                "restored from the directory alone: what stays in RAM is written then, too."
            ),
            _residents_left_out,
        ),
        Idea(
            N_(
                "You let the steps between write nothing. The steps between write as well: state that is not in "
                "RAM has nowhere else to go."
            ),
            _nothing_between,
        ),
        Idea(N_("You publish every step. Only each `every`-th writes the weights and what stays in RAM."), _each_publishes),
        Idea(N_("You publish the state alone. Without the 2 bytes of weight, the master has no upper half."), _no_weights),
    ],
)
