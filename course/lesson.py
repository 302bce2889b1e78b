"""What lessons share: a look at the machine, a prediction before a measurement, and the check of an exercise."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from html import escape
from typing import Any

import psutil
import torch

from offload_lab.planner import readable


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


class Prediction:
    """A number asked for before it is measured. Give it in the box, or as `prediction.value = 12`; skipping is allowed."""

    def __init__(self, question: str, unit: str) -> None:
        self.question, self.unit = question, unit
        self.value: float | None = None
        self.confidence: int | None = None

    def show(self) -> None:
        """Show a box for the number and one for how sure you are, where the front end has widgets; else say how to type it."""
        try:
            import ipywidgets as widgets
            from IPython.display import display
        except ImportError:
            print(f"{self.question} Answer with: prediction.value = 12")
            return
        wide = {"description_width": "initial"}
        number = widgets.Text(description=f"Your guess, in {self.unit}:", placeholder="a number", style=wide)
        sure = widgets.Dropdown(
            description="How sure are you?",
            options=[("I skip this", None), ("a guess", 30), ("rather", 60), ("sure", 90)],
            style=wide,
        )

        def take(_: Any) -> None:
            try:
                self.value = float(number.value.replace(",", ".")) if number.value.strip() else None
            except ValueError:
                self.value = None
            self.confidence = sure.value

        number.observe(take, "value")
        sure.observe(take, "value")
        display(widgets.VBox([widgets.HTML(f"<p>{escape(self.question)}</p>"), number, sure]))

    def compare(self, measured: float) -> None:
        """Say the prediction beside the measurement."""
        if self.value is None:
            print(f"You made no prediction. Measured: {measured:.2f} {self.unit}.")
            return
        sure = f" ({self.confidence} % sure)" if self.confidence else ""
        print(f"You predicted {self.value:g} {self.unit}{sure}. Measured: {measured:.2f} {self.unit}.")


Case = tuple[tuple[Any, ...], Any, str]


def check(answer: Callable[..., Any], cases: list[Case], todo: str) -> bool:
    """Try a learner's function on `(arguments, expected, hint)`; say the first that is not right. Never raises.

    A function that returns None everywhere is not begun: then `todo` is printed.
    """
    try:
        if all(answer(*arguments) is None for arguments, _, _ in cases):
            print(f"Not begun. {todo}")
            return False
        for arguments, expected, hint in cases:
            got = answer(*arguments)
            called = f"{answer.__name__}({', '.join(map(repr, arguments))})"
            if got != expected:
                print(f"Not yet: {called} gives {got!r}. {hint}")
                return False
    except (ArithmeticError, LookupError, NameError, TypeError, ValueError, AttributeError) as error:
        print(f"Not yet: it stops with {type(error).__name__}: {error}")
        return False
    print(f"Right, for all {len(cases)} cases.")
    return True
