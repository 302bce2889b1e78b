"""What lessons share: a look at the machine, a prediction before a measurement, and the check of an exercise."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Callable
from html import escape
from typing import Any

import psutil
import torch

from offload_lab.state_bytes import readable
from quizzes.answers import MIME, Record, merge, notebook_path, read_records, shell
from quizzes.numbers import NotANumber, parse_bytes


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


_made: dict[str, Record] = {}
_SURE = {"a guess": 30, "rather sure": 60, "sure": 90}


class Prediction:
    """A number of bytes asked for before it is measured. Give it in the box, or as `prediction.value = 12`.

    Skipping is allowed, and recorded. A prediction outlives its cell's next run, and a saved notebook's next kernel. What is
    not understood (no number, not above 0, above `most`) is said and changes nothing.
    """

    def __init__(self, name: str, question: str, most: float = 1000) -> None:
        self.name, self.question, self._most = name, question, most
        path, key = notebook_path(), f"prediction {name}"
        saved = read_records(path, key) if path is not None else []
        self._record, _ = merge(key, [_made[name], *saved] if name in _made else saved)
        _made[name] = self._record
        self._display = ""

    @property
    def value(self) -> float | None:
        """The number of bytes, or None where none was given."""
        return self._noted("value")

    @value.setter
    def value(self, given: Any) -> None:
        print(self._take(given, self.confidence))

    @property
    def confidence(self) -> float | None:
        """How sure the prediction was, in per cent, or None where that was not said."""
        return self._noted("confidence")

    def _noted(self, key: str) -> float | None:
        answer = self._record.answers.get(self.name, {}).get("answer")
        number = answer.get(key) if isinstance(answer, dict) else None  # a file can hold anything
        return number if isinstance(number, int | float) and 0 < number <= self._most else None

    def _take(self, given: Any, confidence: float | None) -> str:
        """Note a prediction; return what to say about it."""
        number = None
        if given is not None and str(given).strip():
            try:
                exact = parse_bytes(str(given))
            except NotANumber as error:
                return f"Not noted: {error}."
            if not 0 < exact <= self._most:
                return f"Not noted: {given} is not between 0 and {self._most:g} bytes."
            number = float(exact)
        self._record.put(self.name, {"value": number, "confidence": confidence}, 0)
        self._publish()
        return f"Noted: {self}."

    def __str__(self) -> str:
        if self.value is None:
            return "no prediction"
        return f"{self.value:g} bytes" + (f", {self.confidence:g} % sure" if self.confidence else "")

    __repr__ = __str__

    def show(self) -> None:
        """Show a box for the number and one for how sure you are, where the front end has widgets; and how to type it."""
        if shell() is None:
            print(f"{self.question} Answer with: prediction.value = 12")
            return
        from IPython.display import display

        try:
            import ipywidgets as widgets
        except ImportError as error:
            print(f"{self.question} (No box can be shown: {error}.)")
        else:
            wide = {"description_width": "initial"}
            start = "" if self.value is None else f"{self.value:g}"
            number = widgets.Text(
                start, description="Your guess, in bytes:", placeholder="a number", style=wide, continuous_update=False
            )
            sure = widgets.Dropdown(
                description="How sure are you?", options=[("say or skip", None), *_SURE.items()], style=wide
            )
            sure.value = self.confidence if self.confidence in _SURE.values() else None
            said = widgets.HTML()

            def take(_: Any) -> None:
                said.value = f'<span role="status">{escape(self._take(number.value, sure.value))}</span>'

            number.observe(take, "value")
            sure.observe(take, "value")
            display(widgets.VBox([widgets.HTML(f"<p>{escape(self.question)}</p>"), number, sure, said]))
        print("As text, in a cell of your own: prediction.value = 12")
        self._display = ""
        self._publish()

    def compare(self, measured: float) -> None:
        """Say the prediction beside the measurement. No prediction is from here on recorded as one that was skipped."""
        if self.value is None:
            self._take(None, None)
            print(f"You made no prediction. Measured: {measured:.2f} bytes.")
        else:
            print(f"You predicted {self}. Measured: {measured:.2f} bytes.")

    def _publish(self) -> None:
        """Keep the prediction in the notebook's outputs, as data and as a line."""
        if shell() is None:
            return
        from IPython.display import display, update_display

        skipped = "skipped" if self.name in self._record.answers else "none yet"
        line = f"Your prediction: {skipped if self.value is None else self}"
        content = {MIME: self._record.to_json(), "text/html": f"<p>{escape(line)}</p>", "text/plain": line}
        if self._display:
            update_display(content, raw=True, display_id=self._display)
        else:
            self._display = f"prediction-{uuid.uuid4()}"
            display(content, raw=True, display_id=self._display)


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
