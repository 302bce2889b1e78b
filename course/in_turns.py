"""Trainings that take turns in one run, so that what disturbs the machine disturbs them all. Pure, but for the clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quizzes.say import _


@dataclass(frozen=True)
class Turns:
    """Of one training: seconds a step in each round, and the loss after each."""

    name: str
    seconds: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return _("{name:22} {middle:7.1f} ms a step ({least:.1f} to {most:.1f})   loss {loss:.4f}").format(
            name=self.name,
            middle=1000 * self.median,
            least=1000 * min(self.seconds),
            most=1000 * max(self.seconds),
            loss=self.losses[-1],
        )


def in_turns(
    trainings: Mapping[str, Callable[[int], float]],
    rounds: int = 5,
    steps: int = 3,
    most: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Turns]:
    """Each training does `steps` steps, then the next one, for `rounds` rounds that count and one before that does not: there
    state is made, and code compiled. Every round begins with another one, so that none always follows the same. When `most`
    seconds are over no round is begun, but one always counts.

    A training is a function of a number of steps that returns the loss. Raises ValueError for no training, rounds or steps.
    """
    if not trainings or rounds < 1 or steps < 1:
        raise ValueError(_("at least one training, one round and one step are needed"))
    names = list(trainings)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    losses: dict[str, list[float]] = {name: [] for name in names}
    start = clock()
    for turn in range(rounds + 1):
        if turn > 1 and clock() - start >= most:
            break
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            begun = clock()
            loss = trainings[name](steps)
            taken = clock() - begun
            losses[name].append(loss)
            if turn:
                seconds[name].append(taken / steps)
    return [Turns(name, tuple(seconds[name]), tuple(losses[name])) for name in names]
