"""Lesson 1: the bytes that training holds in RAM."""

from __future__ import annotations

from course.contract import Case, Contract, Idea
from quizzes.say import N_


def _weights_only(parameters: int, dtype: str, where: str) -> int:
    return parameters * (4 if dtype == "float32" else 2)


def _no_gradients(parameters: int, dtype: str, where: str) -> int:
    return _right(parameters, dtype, where) - _weights_only(parameters, dtype, where)


def _no_master(parameters: int, dtype: str, where: str) -> int:
    return 2 * _weights_only(parameters, dtype, where) + (0 if where == "disk" else 8 * parameters)


def _whole_master(parameters: int, dtype: str, where: str) -> int:
    return _right(parameters, dtype, "adamw" if where == "ram" else where)


def _sixteen(parameters: int, dtype: str, where: str) -> int:
    return 16 * parameters


def _right(parameters: int, dtype: str, where: str) -> int:
    state = {"adamw": 8, "ram": 8, "disk": 0} if dtype == "float32" else {"adamw": 12, "ram": 10, "disk": 0}
    return 2 * _weights_only(parameters, dtype, where) + parameters * state[where]


_ON_DISK = N_("Weight and gradient stay; all state is on the disk.")
_TIMES = N_("Multiply by the number of parameters.")

bytes_in_ram = Contract(
    "bytes_in_ram",
    [
        Case((1, "float32", "adamw"), 16, N_("Count weight, gradient and two moments.")),
        Case((1, "bfloat16", "adamw"), 16, N_("Weight and gradient: 2 each. Master and two moments: 4 each.")),
        Case((1000, "float32", "adamw"), 16_000, _TIMES),
        Case((1, "float32", "disk"), 8, _ON_DISK),
        Case((1, "bfloat16", "disk"), 4, _ON_DISK),
        Case((1, "float32", "ram"), 16, N_("A float32 weight is its own master.")),
        Case((1, "bfloat16", "ram"), 14, N_("The weight is the high half of the master; add the low one.")),
        Case((7_000_000_000, "bfloat16", "disk"), 28_000_000_000, _TIMES),
    ],
    [
        Idea(N_("You count the weights only. Training holds a gradient and two moments for each of them."), _weights_only),
        Idea(N_("You leave the gradients out. They lie there between two steps, as large as the weights."), _no_gradients),
        Idea(
            N_("You forget the master copy: a bfloat16 model keeps 4 more bytes a parameter, or 2 beside its weight."),
            _no_master,
        ),
        Idea(
            N_("You keep the whole master in RAM. OffloadAdamW keeps its low half; the bfloat16 weight is the high one."),
            _whole_master,
        ),
        Idea(N_("You give sixteen everywhere. Where the state lies elsewhere, RAM holds less."), _sixteen),
    ],
)
