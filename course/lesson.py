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

__all__ = ["Prediction", "check", "machine"]


def machine() -> None:
    """Print what this machine has, and what that changes for the lesson."""
    memory = psutil.virtual_memory()
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, {os.cpu_count()} cores")
    print(f"RAM:  {readable(memory.total)}, of which {readable(memory.available)} are free")
    print(f"Disk: {readable(shutil.disk_usage('.').free)} are free in this folder")
    if torch.cuda.is_available():
        print(f"GPU:  {torch.cuda.get_device_name()}. This lesson does not use it.")
    else:
        print("GPU:  none. This lesson needs none: what it shows about memory is the same on both.")
    if memory.available < 2_000_000_000:
        print("Less than 2 GB are free. Close other programs before the demonstration under a limit.")


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
    tried = [_try(answer, arguments, expected) for arguments, expected, _ in cases]
    if all(outcome == "gives None" for outcome in tried):
        print(f"Not begun. {todo}")
        return False
    for (arguments, _, hint), outcome in zip(cases, tried, strict=True):
        if outcome:
            name = getattr(answer, "__name__", "your function")
            print(f"Not yet: {name}({', '.join(map(repr, arguments))}) {outcome}. {hint}")
            return False
    print(f"Right, for all {len(cases)} cases.")
    return True


def _try(answer: Callable[..., Any], arguments: tuple[Any, ...], expected: Any) -> str:
    """Empty if it gives what is expected, else what it does."""
    try:
        got = answer(*arguments)
        return "" if got == expected else f"gives {got!r}"
    except _LEARNERS_ERRORS as error:
        return f"stops with {type(error).__name__}: {error}"
