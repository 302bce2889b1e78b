"""A number that a learner predicts before it is measured, in the unit of the question."""

from __future__ import annotations

import math
import uuid
from html import escape
from typing import Any

from offload_lab.state_bytes import readable
from quizzes.answers import MIME, Record, merge, notebook_path, read_records, shell
from quizzes.numbers import NotANumber, read
from quizzes.say import N_, _
from quizzes.units import EXAMPLES

_made: dict[str, Record] = {}
_ASKED = {
    "bytes": N_("Your guess, in bytes:"),
    "seconds": N_("Your guess, in seconds:"),
    "bytes_per_second": N_("Your guess, in bytes a second:"),
    "percent": N_("Your guess, in per cent:"),
    "count": N_("Your guess:"),
    "dollars": N_("Your guess, in dollars:"),
    "ratio": N_("Your guess, how many times:"),
}
_HOWS = (N_("Measured"), N_("Simulated"), N_("Counted"), N_("Calculated"), N_("Recorded"))
_SURE = {N_("a guess"): 30, N_("rather sure"): 60, N_("sure"): 90}


def said(value: float, unit: str, places: int | None = None) -> str:
    """A number with its unit, as a lesson says it: "1.5 GB/s", "20 ms", "3 ×". Bytes below 10 000 are not shortened."""
    if unit in {"bytes", "bytes_per_second"} and value >= 10_000:
        return readable(int(value)) + ("/s" if unit == "bytes_per_second" else "")
    if unit == "seconds" and value < 1:
        value, unit = value * 1000, "milliseconds"
    number = f"{value:g}" if places is None else f"{value:.{places}f}"
    behind = {"bytes_per_second": "bytes/s", "seconds": "s", "milliseconds": "ms", "percent": "%", "ratio": "×"}
    if unit == "dollars":
        return f"${number}"
    return number if unit == "count" else f"{number} {behind.get(unit, unit)}"


def near(value: float, found: float, unit: str) -> bool:
    """Whether a prediction came near what was found: within ten points of per cent, in other units within a factor of two."""
    return abs(value - found) <= 10 if unit == "percent" else found / 2 <= value <= 2 * found


class Prediction:
    """A number asked for before it is measured. Give it in the box, or as `prediction.value = 12`.

    `unit` is that of the question, one of quizzes.units.EXAMPLES: an answer without a word is in it ("2.5" seconds), and one
    with a word is converted ("20 ms"). Skipping is allowed, and recorded. A prediction outlives its cell's next run, and a
    saved notebook's next kernel. What is not understood (no number, not above 0, above `most`) is said and changes nothing.

    In a lesson with several, name the variable that holds it (`called="hidden"`): the sentences that tell how to answer as
    text use it. Raises ValueError for a unit that there is not.
    """

    def __init__(self, name: str, question: str, most: float = 1000, unit: str = "bytes", called: str = "prediction") -> None:
        if unit not in EXAMPLES:
            said = _("a prediction in {unit!r} cannot be asked; the units are {units}")
            raise ValueError(said.format(unit=unit, units=", ".join(EXAMPLES)))
        self.name, self.question, self._most, self._unit, self._called = name, question, most, unit, called
        path, key = notebook_path(), f"prediction {name}"
        saved = read_records(path, key) if path is not None else []
        self._record, _lost = merge(key, [_made[name], *saved] if name in _made else saved)
        _made[name] = self._record
        self._display = ""

    @property
    def value(self) -> float | None:
        """The number, in the unit of the question, or None where none was given."""
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
                exact = read(str(given), self._unit).value
            except NotANumber as error:
                return _("Not noted: {why}.").format(why=error)
            if not 0 < exact <= self._most:
                refused = _("Not noted: {given} is not between 0 and {most}.")
                return refused.format(given=given, most=said(self._most, self._unit))
            number = float(exact)
        self._record.put(self.name, {"value": number, "confidence": confidence}, 0)
        self._publish()
        return _("Noted: {prediction}.").format(prediction=self)

    def __str__(self) -> str:
        if self.value is None:
            return _("no prediction")
        number = said(self.value, self._unit)
        if not self.confidence:
            return number
        return _("{number}, {confidence:g} % sure").format(number=number, confidence=self.confidence)

    __repr__ = __str__

    def show(self) -> None:
        """Show a box for the number and one for how sure you are, where the front end has widgets; and how to type it."""
        if shell() is None:
            print(_("{question} Answer with: {code}").format(question=self.question, code=self._as_text()))
            return
        from IPython.display import display

        try:
            import ipywidgets as widgets
        except ImportError as error:
            print(_("{question} (No box can be shown: {error}.)").format(question=self.question, error=error))
        else:
            wide = {"description_width": "initial"}
            start = "" if self.value is None else f"{self.value:g}"
            number = widgets.Text(
                start, description=_(_ASKED[self._unit]), placeholder=_("a number"), style=wide, continuous_update=False
            )
            sure = widgets.Dropdown(
                description=_("How sure are you?"),
                options=[(_("say or skip"), None), *((_(told), percent) for told, percent in _SURE.items())],
                style=wide,
            )
            sure.value = self.confidence if self.confidence in _SURE.values() else None
            noted = widgets.HTML()

            def take(change: Any) -> None:
                noted.value = f'<span role="status">{escape(self._take(number.value, sure.value))}</span>'

            number.observe(take, "value")
            sure.observe(take, "value")
            display(widgets.VBox([widgets.HTML(f"<p>{escape(self.question)}</p>"), number, sure, noted]))
        print(_("As text, in a cell of your own: {code}").format(code=self._as_text()))
        self._display = ""
        self._publish()

    def compare(self, found: float, how: str = "Measured") -> None:
        """Say the prediction beside what was found, and `how`: "Measured", "Simulated", "Counted". No prediction is from here
        on recorded as one that was skipped; beside one that was made the record keeps what was found, and its unit."""
        mine = _("You made no prediction") if self.value is None else _("You predicted {prediction}").format(prediction=self)
        if self.value is None:
            self._take(None, None)
        elif math.isfinite(found):
            told = {"value": self.value, "confidence": self.confidence, "found": float(found), "unit": self._unit}
            self._record.put(self.name, told, 0)
            self._publish()
        print(_("{mine}. {how}: {found}.").format(mine=mine, how=_(how), found=said(found, self._unit, 2)))

    def _as_text(self) -> str:
        example = "12" if self._unit == "bytes" else EXAMPLES[self._unit].split(",")[0]
        # An example above `most` would be refused when it is typed as it stands.
        if read(example, self._unit).value > self._most:
            example = f"{self._most / 2:g}"
        return f"{self._called}.value = " + (example if self._unit == "bytes" else f'"{example}"')

    def _publish(self) -> None:
        """Keep the prediction in the notebook's outputs, as data and as a line."""
        if shell() is None:
            return
        from IPython.display import display, update_display

        skipped = _("skipped") if self.name in self._record.answers else _("none yet")
        line = _("Your prediction: {prediction}").format(prediction=skipped if self.value is None else self)
        content = {MIME: self._record.to_json(), "text/html": f"<p>{escape(line)}</p>", "text/plain": line}
        if self._display:
            update_display(content, raw=True, display_id=self._display)
        else:
            self._display = f"prediction-{uuid.uuid4()}"
            display(content, raw=True, display_id=self._display)
