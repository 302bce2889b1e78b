"""What lessons share: a look at the machine, a prediction before a measurement, and the check of an exercise."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import psutil
import torch

from course.prediction import Prediction
from offload_lab.state_bytes import readable
from quizzes.say import _, _n

__all__ = ["Prediction", "check", "machine"]


def machine() -> None:
    """Print what this machine has, and what that changes for the lesson."""
    memory = psutil.virtual_memory()
    told = _("Python {python}, torch {torch}, {count} cores")
    print(told.format(python=sys.version.split()[0], torch=torch.__version__, count=os.cpu_count()))
    told = _("RAM:  {total}, of which {free} are free")
    print(told.format(total=readable(memory.total), free=readable(memory.available)))
    print(_("Disk: {free} are free in this folder").format(free=readable(shutil.disk_usage(".").free)))
    if torch.cuda.is_available():
        print(_("GPU:  {device}. This lesson does not use it.").format(device=torch.cuda.get_device_name()))
    else:
        print(_("GPU:  none. This lesson needs none: what it shows about memory is the same on both."))
    if memory.available < 2_000_000_000:
        print(_("Less than 2 GB are free. Close other programs before the demonstration under a limit."))


Case = tuple[tuple[Any, ...], Any, str]
_LEARNERS_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, NameError, OSError, RuntimeError,
    StopIteration, SyntaxError, TypeError, ValueError,
)  # fmt: skip


def check(answer: Callable[..., Any], cases: list[Case], todo: str) -> bool:
    """Try a learner's function on `(arguments, expected, hint)`; say the first that is not right, with its input.

    A function that returns None everywhere is not begun: then `todo` is printed. What Python or torch raises in it is said,
    not raised.
    """
    tried = [_try(answer, arguments, expected) for arguments, expected, _hint in cases]
    none = _("gives {value}").format(value=None)
    if all(outcome == none for outcome in tried):
        print(_("Not begun. {todo}").format(todo=todo))
        return False
    for (arguments, _expected, hint), outcome in zip(cases, tried, strict=True):
        if outcome:
            name = getattr(answer, "__name__", _("your function"))
            call = f"{name}({', '.join(map(repr, arguments))})"
            print(_("Not yet: {call} {outcome}. {hint}").format(call=call, outcome=outcome, hint=hint))
            return False
    print(_n("Right, for the one case.", "Right, for all {count} cases.", len(cases)).format(count=len(cases)))
    return True


def _try(answer: Callable[..., Any], arguments: tuple[Any, ...], expected: Any) -> str:
    """Empty if it gives what is expected, else what it does."""
    try:
        got = answer(*arguments)
        return "" if got == expected else _("gives {value}").format(value=repr(got))
    except _LEARNERS_ERRORS as error:
        return _("stops with {error}").format(error=f"{type(error).__name__}: {error}")
