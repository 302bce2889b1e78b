"""Lesson 9: go or no-go, with reasons. What is expected is what the engine's own gate says of the same figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from course.contract import Case, Contract, Idea
from offload_lab.health.gate import WARM_UP
from offload_lab.health.targets import Measured, Targets, compare
from quizzes.say import N_

Figures = Mapping[str, Any]
Verdict = tuple[bool, list[str]]
NAN = math.nan


def gated(figures: Figures, targets: Mapping[str, float]) -> Verdict:
    """Whether all `targets` are met, and the names of those that are not, in their order, by the engine's own comparison.

    `figures["seconds"]` are those of every step, warming up included; a loss, or bytes, may be missing or None. Raises
    ValueError where there is no target, or one that a gate does not know.
    """
    loss = figures.get("loss")
    measured = Measured(
        seconds=tuple(figures.get("seconds") or ())[WARM_UP:],
        losses=() if loss is None else (loss,),
        peak_ram_bytes=figures.get("peak_ram_bytes"),
        disk_bytes=figures.get("disk_bytes"),
    )
    missed = {check.name for check in compare(Targets.from_dict(dict(targets)), measured) if not check.passed}
    return not missed, [name for name in targets if name in missed]


# --- wrong ideas ----------------------------------------------------------------------------------------------------------


def _figure(figures: Figures, name: str) -> float | None:
    """What a target is judged by: the median of the steps that count, or the figure of that name."""
    if name != "seconds_per_step":
        return figures.get(name)
    counted = sorted((figures.get("seconds") or [])[WARM_UP:])
    return (counted[(len(counted) - 1) // 2] + counted[len(counted) // 2]) / 2 if counted else None


def _missed(value: float | None, most: float) -> bool:
    return value is None or not math.isfinite(value) or value > most


def _verdict(missed: Iterable[str]) -> Verdict:
    names = list(missed)
    return not names, names


def _nan_passes(figures: Figures, targets: Mapping[str, float]) -> Verdict:
    held = {name: _figure(figures, name) for name in targets}
    return _verdict(name for name, value in held.items() if value is None or value > targets[name])


def _unknown_passes(figures: Figures, targets: Mapping[str, float]) -> Verdict:
    held = {name: _figure(figures, name) for name in targets}
    return _verdict(name for name, value in held.items() if value is not None and _missed(value, targets[name]))


def _nan_and_unknown_pass(figures: Figures, targets: Mapping[str, float]) -> Verdict:
    held = {name: _figure(figures, name) for name in targets}
    return _verdict(name for name, value in held.items() if value is not None and value > targets[name])


def _equal_fails(figures: Figures, targets: Mapping[str, float]) -> Verdict:
    held = {name: _figure(figures, name) for name in targets}
    return _verdict(name for name, value in held.items() if _missed(value, targets[name]) or value == targets[name])


def _first_only(figures: Figures, targets: Mapping[str, float]) -> Verdict:
    right, names = gated(figures, targets)
    return right, names[:1]


def _one_is_enough(figures: Figures, targets: Mapping[str, float]) -> Verdict:
    _right, names = gated(figures, targets)
    return len(names) < len(targets), names


def _by(seconds: Any) -> Any:
    """A gate that judges the seconds by something else than the median of the steps that count."""

    def judged(figures: Figures, targets: Mapping[str, float]) -> Verdict:
        held = {
            name: seconds(figures["seconds"]) if name == "seconds_per_step" and figures.get("seconds") else figures.get(name)
            for name in targets
        }
        return _verdict(name for name, value in held.items() if _missed(value, targets[name]))

    return judged


def _mean(seconds: list[float]) -> float | None:
    counted = seconds[WARM_UP:]
    return sum(counted) / len(counted) if counted else None


def _median_of_all(seconds: list[float]) -> float | None:
    return _figure({"seconds": [0.0] * WARM_UP + list(seconds)}, "seconds_per_step")


_WARM = N_("The first two steps compile, allocate and fill caches. The run has them once, so they are left out of the median.")
_NOT_MEASURED = N_("What was not measured does not pass: nobody knows it. It is None, or not in the figures at all.")
_NOT_FINITE = N_("A comparison with NaN is always False, `nan > limit` too. Ask whether the figure is finite first.")

go = Contract(
    "go",
    [
        Case(({"loss": 2.1}, {"loss": 2.5}), (True, []), N_("All targets are met: True, and no reason against it.")),
        Case(({"loss": 2.7}, {"loss": 2.5}), (False, ["loss"]), N_("The figure is above what the target allows.")),
        Case(({"disk_bytes": 240}, {"disk_bytes": 240}), (True, []), N_("A target is the most that passes: equal passes.")),
        Case(
            ({"loss": 2.7, "disk_bytes": 900}, {"loss": 2.5, "disk_bytes": 240}),
            (False, ["loss", "disk_bytes"]),
            N_("Name every target that is missed, in the order of `targets`: who reads it mends all of them at once."),
        ),
        Case(
            ({"loss": 2.1, "disk_bytes": 900}, {"loss": 2.5, "disk_bytes": 240}),
            (False, ["disk_bytes"]),
            N_("One target that is missed is enough for a no."),
        ),
        Case(
            ({"loss": 9.9, "disk_bytes": 1}, {"disk_bytes": 240}), (True, []), N_("Nobody asked for a figure without a target.")
        ),
        Case(
            ({"seconds": [1, 1, 1, 9, 2]}, {"seconds_per_step": 2}),
            (True, []),
            N_("The median of 1, 9, 2 is 2: sort them first."),
        ),
        Case(({"seconds": [9, 8, 1, 1]}, {"seconds_per_step": 1}), (True, []), _WARM),
        Case(({"seconds": [1, 1, 3, 3, 3]}, {"seconds_per_step": 2}), (False, ["seconds_per_step"]), _WARM),
        Case(
            ({"seconds": [1, 1, 4, 8]}, {"seconds_per_step": 5}),
            (False, ["seconds_per_step"]),
            N_("The median of an even number of steps is the mean of the two in the middle: here 6."),
        ),
        Case(({"seconds": [1, 1]}, {"seconds_per_step": 9}), (False, ["seconds_per_step"]), _NOT_MEASURED),
        Case(({"loss": None}, {"loss": 2.5}), (False, ["loss"]), _NOT_MEASURED),
        Case(({}, {"peak_ram_bytes": 100}), (False, ["peak_ram_bytes"]), _NOT_MEASURED),
        Case(({"loss": NAN}, {"loss": 2.5}), (False, ["loss"]), _NOT_FINITE),
        Case(({"loss": -math.inf}, {"loss": 2.5}), (False, ["loss"]), _NOT_FINITE),
        Case(
            ({"loss": 2.1}, {}),
            ValueError,
            N_("A gate without a target could only say yes. That is no decision: raise ValueError."),
        ),
    ],
    [
        Idea(
            N_("You let NaN pass, for it is never above a limit. Ask whether the figure is finite first."),
            _nan_passes,
        ),
        Idea(
            N_("You judge only what was measured. A figure that is missing is no good news: what nobody knows does not pass."),
            _unknown_passes,
        ),
        Idea(
            N_("You compare with `>` only where there is a number. What was not measured passes so, and NaN as well."),
            _nan_and_unknown_pass,
        ),
        Idea(N_("You ask for less than the target. A target is the most that passes: equal passes."), _equal_fails),
        Idea(N_("You stop at the first target that is missed. Name all of them: they are mended together."), _first_only),
        Idea(N_("You are content with one target that is met. All of them have to be."), _one_is_enough),
        Idea(
            N_("You take the mean. It follows the long steps; what one usually waits for a step is the median."),
            _by(_mean),
        ),
        Idea(
            N_("You count the steps that warm up. The run has them once, so they are left out of the median."),
            _by(_median_of_all),
        ),
    ],
)
