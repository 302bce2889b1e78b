"""The parts of a question: choices, traps, steps, pairs. Pure data."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from quizzes.values import PLACE, Strict, Value

Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]
"""Lower case, because that is how typed answers are read; nothing that means something in a path or a pattern."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=5000)]


class Choice(Strict):
    """`stays_last`: not shuffled ("none of these"). `exclusive`: stands alone among several. `credit`: share of the points
    that a wrong choice of a one-choice question earns."""

    id: Id
    text: Text
    correct: bool
    explanation: Text
    misconception: str | None = None
    stays_last: bool = False
    exclusive: bool = False
    credit: Share = 0.0


class Right(Strict):
    """A right number with its own tolerance: a share of it, or `absolute` in the question's unit. Both ends count as right."""

    value: Value
    tolerance: Share = 0.0
    absolute: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class Trap(Strict):
    """A wrong number that a known misconception leads to."""

    value: Value
    explanation: Text
    misconception: str


class WrongText(Strict):
    """A wrong word that a known misconception leads to."""

    text: Text
    explanation: Text
    misconception: str


class Step(Strict):
    id: Id
    text: Text


class WrongOrder(Strict):
    """Steps, all or some, in an order that a known misconception leads to."""

    order: tuple[Id, ...]
    explanation: Text
    misconception: str


class Pair(Strict):
    """What belongs together. `option` is the number under which `right` is offered; it says nothing about `id`."""

    id: Id
    left: Text
    right: Text
    explanation: Text
    misconception: str
    option: str = ""


class Extra(Strict):
    """An offered right side that belongs to nothing."""

    id: Id
    text: Text
    option: str = ""


class Figure(Strict):
    """A drawing of `source` (see `quizzes.figures`); every other field is a parameter of it, or `"{name}"` of a variant."""

    model_config = ConfigDict(extra="allow", frozen=True)
    source: Id

    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def open_names(self) -> set[str]:
        """The variant names that are not drawn yet."""
        return set(PLACE.findall(str(self.parameters())))
