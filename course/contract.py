"""The check of an exercise: what the learner's function gives beside what it should, the idea behind a wrong one named."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from offload_lab.plots.drawing import Drawing
from offload_lab.plots.palette import LANES
from offload_lab.plots.shown import Shown
from offload_lab.plots.tables import Table
from quizzes.answers import shell
from quizzes.say import _, _n

Function = Callable[..., Any]
LEARNERS_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, NameError, OSError, RuntimeError,
    StopIteration, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What code of a learner may raise, and is said instead. KeyboardInterrupt and SystemExit go on."""


@dataclass(frozen=True)
class Case:
    """One call: `expected` is a value, or the class of the exception that has to be raised."""

    arguments: tuple[Any, ...]
    expected: Any
    hint: str


@dataclass(frozen=True)
class Idea:
    """A wrong idea that people have, as a function, and what to say to who has it."""

    told: str
    function: Function


@dataclass(frozen=True)
class Outcome:
    """What one call came to: `value`, or `error` where it raised."""

    value: Any = None
    error: BaseException | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}" if self.error is not None else _short(self.value)


@dataclass(frozen=True)
class Contract:
    """What a function has to keep. `near`: by which share a float may be off, for the order of operations is free."""

    name: str
    cases: Sequence[Case]
    ideas: Sequence[Idea] = ()
    todo: str = ""
    near: float = 1e-6

    def check(self, function: Function) -> bool:
        """Print what is right or wrong, with a picture of the numbers where a notebook shows one; return whether all is right.

        A function that returns None everywhere is not begun: `todo` is printed. What it raises is said, not raised.
        """
        outcomes = [_call(function, case.arguments) for case in self.cases]
        if all(outcome.error is None and outcome.value is None for outcome in outcomes):
            todo = _(self.todo) or _("Write {name} in the cell above, and run both again.").format(name=self.name)
            print(_("Not begun. {todo}").format(todo=todo))
            return False
        wrong = [number for number, outcome in enumerate(outcomes) if not self._keeps(outcome, self.cases[number].expected)]
        if not wrong:
            said = _n("Right, for the one case.", "Right, for all {count} cases.", len(self.cases))
            print(said.format(count=len(self.cases)))
            return True
        case, outcome = self.cases[wrong[0]], outcomes[wrong[0]]
        told = _("Not yet: {call} should {expected}; yours {found}.")
        print(told.format(call=self._call_of(case), expected=_should(case.expected), found=_does(outcome)))
        print(_(self._idea(outcomes) or case.hint))
        beside = Beside(_("{name}: expected and yours").format(name=self.name), self._rows(outcomes))
        if beside.rows and shell() is not None:
            from IPython.display import display

            display(beside)
        return False

    def _call_of(self, case: Case) -> str:
        return f"{self.name}({', '.join(_short(argument) for argument in case.arguments)})"

    def _idea(self, outcomes: Sequence[Outcome]) -> str:
        """What to say to somebody whose function does in every case what a known wrong idea does."""
        valued = [number for number, case in enumerate(self.cases) if not _is_exception(case.expected)]
        for idea in self.ideas:
            theirs = {number: _call(idea.function, self.cases[number].arguments) for number in valued}
            if all(
                same(outcomes[number].value, other.value, self.near) and type(outcomes[number].error) is type(other.error)
                for number, other in theirs.items()
            ) and not all(self._keeps(outcomes[number], self.cases[number].expected) for number in valued):
                return idea.told
        return ""

    def _keeps(self, outcome: Outcome, expected: Any) -> bool:
        if _is_exception(expected):
            return isinstance(outcome.error, expected)
        return outcome.error is None and same(outcome.value, expected, self.near)

    def _rows(self, outcomes: Sequence[Outcome]) -> list[tuple[str, float, float | None, str]]:
        """Of each case whose answer is a number: the call, that number, theirs (None for none), and theirs as text."""
        rows = []
        for case, outcome in zip(self.cases, outcomes, strict=True):
            expected = _number(case.expected)
            if expected is not None and expected >= 0:
                theirs = None if outcome.error is not None else _number(outcome.value)
                rows.append((self._call_of(case), expected, theirs, str(outcome)))
        return rows[:8]


def same(mine: Any, expected: Any, near: float = 1e-6) -> bool:
    """Whether two answers are the same: numbers within the share `near`, sequences element by element, all else by `==`."""
    left, right = _number(mine), _number(expected)
    if left is not None and right is not None:
        return math.isclose(left, right, rel_tol=near, abs_tol=1e-300) or left == right
    if isinstance(expected, list | tuple) and isinstance(mine, list | tuple):
        return len(mine) == len(expected) and all(same(a, b, near) for a, b in zip(mine, expected, strict=True))
    try:
        return bool(mine == expected) and isinstance(mine, bool) == isinstance(expected, bool)
    except LEARNERS_ERRORS:  # an array of several elements has no truth
        return False


def _is_exception(expected: Any) -> bool:
    return isinstance(expected, type) and issubclass(expected, BaseException)


def _number(value: Any) -> float | None:
    """`value` as a float: int, float, and the scalars of NumPy and torch; not bool, not text."""
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except LEARNERS_ERRORS:
        return None


def _call(function: Function, arguments: tuple[Any, ...]) -> Outcome:
    try:
        return Outcome(function(*arguments))
    except LEARNERS_ERRORS as error:
        return Outcome(error=error)


def _short(value: Any) -> str:
    number = _number(value)
    if number is not None and not isinstance(value, int):
        return f"{number:.6g}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _should(expected: Any) -> str:
    if _is_exception(expected):
        return _("raise {error}").format(error=expected.__name__)
    return _("give {value}").format(value=_short(expected))


def _does(outcome: Outcome) -> str:
    return (_("stops with {error}") if outcome.error is not None else _("gives {value}")).format(error=outcome, value=outcome)


@dataclass(frozen=True)
class Beside(Shown):
    """Two bars for each case: the number that is expected, and theirs; each case on a scale of its own."""

    title: str
    rows: Sequence[tuple[str, float, float | None, str]]

    def summary(self) -> list[str]:
        off = sum(theirs is None or not same(theirs, expected) for _call, expected, theirs, _told in self.rows)
        said = _n(
            "{count} of {all} numbers is not as expected. Each pair of bars has a scale of its own.",
            "{count} of {all} numbers are not as expected. Each pair of bars has a scale of its own.",
            off,
        )
        return [said.format(count=off, all=len(self.rows))]

    def tables(self) -> list[Table]:
        rows = [(call, f"{expected:.6g}", told) for call, expected, _theirs, told in self.rows]
        return [Table(_("Cases"), (_("call"), _("expected"), _("yours")), rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        styles = list(LANES.values())[:2]
        left, width = 330.0, drawing.width - 330.0 - 130
        top = drawing.below + 6
        for call, expected, theirs, told in self.rows:
            finite = theirs if theirs is not None and math.isfinite(theirs) else 0.0
            largest = max(expected, finite, 1e-300)
            drawing.text(14, top + 17, call, room=left - 28)
            for style, value, words in ((styles[0], expected, f"{expected:.6g}"), (styles[1], finite, told)):
                long = width * max(value, 0.0) / largest
                drawing.block(style, left, top, long, 12)
                drawing.text(left + long + 6, top + 10.5, words, room=drawing.width - left - long - 16)
                top += 13
            top += 12
        drawing.below = top
        drawing.key(zip(styles, (_("expected"), _("yours")), strict=True))
        return drawing.document(self.summary(), "beside-plot")
