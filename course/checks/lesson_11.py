"""Lesson 11: where the state of a training goes on a machine with one card."""

from __future__ import annotations

from collections.abc import Callable

from course.contract import Case, Contract, Idea
from offload_lab.state_bytes import training_bytes
from quizzes.say import N_

GB = 1_000_000_000
Bytes = Callable[[int, str], int]


def _adamw(parameters: int, dtype: str) -> int:
    return training_bytes(parameters, dtype, "adamw").steady_bytes


def _stays(parameters: int, dtype: str) -> int:
    kinds = training_bytes(parameters, dtype, "ram").ram
    return kinds["weights"] + kinds["gradients"]


def _state(parameters: int, dtype: str) -> int:
    return training_bytes(parameters, dtype, "ram").steady_bytes - _stays(parameters, dtype)


def _files(parameters: int, dtype: str) -> int:
    return training_bytes(parameters, dtype, "disk").disk_bytes


def _placed(
    adamw: Bytes = _adamw, stays: Bytes = _stays, state: Bytes = _state, files: Bytes = _files
) -> Callable[[int, str, int, int, int], str]:
    """The exercise, with any of its four sizes exchanged."""

    def place(parameters: int, dtype: str, card: int, ram: int, disk: int) -> str:
        if adamw(parameters, dtype) <= card:
            return "card"
        if stays(parameters, dtype) > card:
            return "nowhere"
        if state(parameters, dtype) <= ram:
            return "ram"
        return "disk" if files(parameters, dtype) <= disk else "nowhere"

    return place


right = _placed()


def _weight(dtype: str) -> int:
    return 4 if dtype == "float32" else 2


def _disk_before_ram(parameters: int, dtype: str, card: int, ram: int, disk: int) -> str:
    found = right(parameters, dtype, card, ram, disk)
    return "disk" if found == "ram" and _files(parameters, dtype) <= disk else found


def _case(numbers: tuple[int, str, int, int, int], hint: str) -> Case:
    return Case(numbers, right(*numbers), hint)


_STAYS = N_("Weights and gradients stay on the card, wherever the state goes.")
_TWICE = N_("The disk holds two generations, of state and of weights: 24 bytes a parameter, with either dtype.")
_LOW = N_("Of a bfloat16 weight the state also holds the low half of its master: 4 + 4 + 2 bytes.")

place = Contract(
    "place",
    [
        _case((GB, "float32", 16 * GB, 100 * GB, 100 * GB), N_("Sixteen bytes a parameter, and they fit exactly.")),
        _case((GB, "float32", 15 * GB, 12 * GB, 70 * GB), N_("Near to a free Colab: eight bytes a parameter move to RAM.")),
        _case((GB, "bfloat16", 15 * GB, 9 * GB, 70 * GB), _LOW),
        _case((GB, "bfloat16", 4 * GB, 10 * GB, 0), N_("What fits exactly, fits.")),
        _case((GB, "float32", 15 * GB, 6 * GB, 20 * GB), _TWICE),
        _case((GB, "float32", 6 * GB, 100 * GB, 100 * GB), _STAYS),
        _case((3 * GB, "float32", 15 * GB, 80 * GB, 200 * GB), _STAYS),
        _case((3 * GB, "bfloat16", 15 * GB, 80 * GB, 200 * GB), N_("RAM before disk: it is the faster of the two.")),
        _case((7 * GB, "bfloat16", 24 * GB, 500 * GB, 500 * GB), N_("Lesson 1 ended with this one: 28 GB do not fit in 24.")),
        _case((7 * GB, "float32", 24 * GB, 500 * GB, 500 * GB), N_("In float32 not even the weights fit: 28 GB.")),
        Case((GB, "int4", 15 * GB, 12 * GB, 70 * GB), ValueError, N_("There is no training in int4 here: a ValueError.")),
    ],
    [
        Idea(
            N_("You let only the weights stay on the card. Backward leaves a gradient there for each of them."),
            _placed(stays=lambda n, dtype: _weight(dtype) * n),
        ),
        Idea(
            N_("You ask RAM and disk, and not the card. It still has to hold the weights and the gradients."),
            _placed(stays=lambda n, dtype: 0),
        ),
        Idea(
            N_("You count one generation on the disk. There are two, so that a step that is interrupted never leaves a half."),
            _placed(files=lambda n, dtype: _files(n, dtype) // 2),
        ),
        Idea(
            N_("You leave the weights out of what lies on the disk. Without them the directory could not restore the model."),
            _placed(files=lambda n, dtype: 2 * _state(n, dtype)),
        ),
        Idea(
            N_("You count two moments, for bfloat16 too. Its master's low half is state as well: ten bytes, not eight."),
            _placed(state=lambda n, dtype: 8 * n),
        ),
        Idea(
            N_("You keep whole masters. OffloadAdamW needs their low half only; the bfloat16 weight is the high one."),
            _placed(state=lambda n, dtype: (8 if dtype == "float32" else 12) * n),
        ),
        Idea(
            N_("You count twelve bytes for AdamW: its state without weights and gradients, or without one of them."),
            _placed(adamw=lambda n, dtype: 12 * n),
        ),
        Idea(
            N_("You prefer the disk. It works, and RAM is many times as fast: take it where the state fits."),
            _disk_before_ram,
        ),
    ],
    N_("Four questions, in this order: does all of it fit on the card? What stays there? Then RAM. Then the disk."),
)
