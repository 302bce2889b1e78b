"""Lesson 2: when a rounded weight begins to move."""

from __future__ import annotations

import math

from course.contract import Case, Contract, Idea
from quizzes.say import N_


def _gap(weight: float, fraction_bits: int) -> float:
    return 2.0 ** (math.frexp(weight)[1] - 1 - fraction_bits)


def _whole_gap(weight: float, update: float, fraction_bits: int) -> int:
    gap = _gap(weight, fraction_bits)
    return 0 if update >= gap else math.ceil(gap / update)


def _gap_of_one(weight: float, update: float, fraction_bits: int) -> int:
    half = 2.0**-fraction_bits / 2
    return 0 if update >= half else math.ceil(half / update)


def _down(weight: float, update: float, fraction_bits: int) -> int:
    half = _gap(weight, fraction_bits) / 2
    return 0 if update >= half else math.floor(half / update)


_EXPONENT = N_("The gap grows with the weight: between 2 and 4 it is twice as wide as between 1 and 2.")
_UP = N_("After that many steps the sum has not reached the half-way point yet; the next step is the first beyond it.")

steps_until_it_moves = Contract(
    "steps_until_it_moves",
    [
        Case((1.0, 0.001, 7), 4, N_("The gap at 1 is 1/128, half of it 1/256. How many updates of 0.001 reach that?")),
        Case((1.0, 0.001, 10), 0, N_("Half of the gap is 0.00049 here, and the update is larger: it moves by itself.")),
        Case((2.0, 0.001, 7), 8, _EXPONENT),
        Case((3.0, 0.001, 7), 8, _EXPONENT),
        Case((0.5, 0.001, 7), 2, N_("Below 1 the gap is narrower.")),
        Case((1.0, 2.0**-8, 7), 0, N_("Exactly half of the gap counts as moving: ties go away from zero.")),
        Case((1.0, 2.0**-9, 7), 2, N_("Two of them are exactly half of the gap, which counts as moving.")),
        Case((2.0**-10, 1e-9, 7), 3815, _UP),
        Case((1.0, 0.001, 23), 0, N_("float32 has a gap of 1.2e-7 at 1; 0.001 is far above it.")),
    ],
    [
        Idea(N_("You wait for the whole gap. Rounding goes to the nearest number, so half of the gap is enough."), _whole_gap),
        Idea(
            N_(
                "You take the gap of 1 for every weight. The gap grows with the weight: between 2 and 4 it is twice as wide as "
                "between 1 and 2."
            ),
            _gap_of_one,
        ),
        Idea(
            N_(
                "You round the number of steps down. After that many steps the sum has not reached the half-way point yet; the "
                "next step is the first beyond it."
            ),
            _down,
        ),
    ],
)
