"""An exercise: a function to write, what it promises, open cases, and hidden ones that stay with the instructor."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from quizzes.exercises.rules import RULES
from quizzes.say import _

BANK = Path(__file__).parent / "bank"
KEYS = Path(__file__).parents[1] / "keys" / "exercises"


class ExerciseError(ValueError):
    """An exercise's file is wrong or missing; the message names file and field."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Trap(_Strict):
    """What a function returns that was written with a known idea in mind: `misconception`, an id of the list that quizzes use,
    or `idea` in the learner's words."""

    returns: Any
    misconception: str = ""
    idea: str = ""

    @model_validator(mode="after")
    def _has_one(self) -> Trap:
        if bool(self.misconception) == bool(self.idea):
            raise ValueError("a trap has a misconception or an idea")
        return self


class Case(_Strict):
    """Arguments and what the function returns for them, as JSON has values; `hint` is shown where it was not so, with the idea
    behind it where one of `traps` was returned."""

    arguments: list[Any]
    expected: Any
    hint: str
    traps: list[Trap] = []

    @field_validator("arguments", "expected")
    @classmethod
    def _is_data(cls, value: Any) -> Any:
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str) and re.fullmatch(r"[-+]?[\d.]+e[-+]?\d+", item, re.IGNORECASE):
                raise ValueError(_("{value!r} is text to YAML; write it as 1.0e-3").format(value=item))
            if isinstance(item, float) and not math.isfinite(item):
                raise ValueError(_("a number must be finite"))
            if not (item is None or isinstance(item, (bool, int, float, str, list, dict))):
                raise ValueError(_("{type} is no JSON value").format(type=type(item).__name__))
            waiting += item if isinstance(item, list) else item.values() if isinstance(item, dict) else ()
        return value


class Hidden(_Strict):
    id: str
    cases: list[Case]


class Exercise(_Strict):
    """`signature` is the line that starts the function, `contract` what it promises; `relative` and `absolute` bound floats.

    Where many results are right, `rule` names one of `quizzes.exercises.rules.RULES` that decides, and `expected` is one.
    """

    id: str
    lesson: str
    title: str
    function: str
    signature: str
    contract: str
    points: float
    relative: float = 0.0
    absolute: float = 0.0
    rule: str = ""
    cases: list[Case]
    hidden: list[Case] = []

    @field_validator("id")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,60}", value):
            raise ValueError(_("an id is small letters, digits and hyphens"))
        return value

    @field_validator("points", "relative", "absolute")
    @classmethod
    def _is_finite(cls, value: float) -> float:
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(_("must be a finite number, not below 0"))
        return value

    @field_validator("rule")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value and value not in RULES:
            raise ValueError(f"there is no rule {value!r}; there are {', '.join(sorted(RULES))}")
        return value

    @field_validator("cases")
    @classmethod
    def _is_there(cls, value: list[Case]) -> list[Case]:
        if not value:
            raise ValueError(_("at least one open case is needed"))
        return value

    @property
    def all_cases(self) -> list[Case]:
        """Open ones first: what a learner was told about is tried before what tells more."""
        return [*self.cases, *self.hidden]


_Kind = TypeVar("_Kind", bound=BaseModel)


def exercises(bank: Path = BANK) -> list[Exercise]:
    """The open part of every exercise, ordered by file name. Raises ExerciseError."""
    found = [_read(path, Exercise) for path in sorted(bank.glob("*.yaml"))]
    names = [one.id for one in found] + [one.function for one in found]
    if len(set(names)) != len(names):
        raise ExerciseError(_("two exercises in {path} have the same id or function").format(path=bank))
    for one in found:
        if one.hidden:
            raise ExerciseError(_("{name}: hidden cases belong in the keys, not in {path}").format(name=one.id, path=bank))
    return found


def with_keys(bank: Path = BANK, keys: Path = KEYS) -> list[Exercise]:
    """Every exercise with its hidden cases. Raises ExerciseError where a key is missing."""
    whole = []
    for one in exercises(bank):
        path = keys / f"{one.id}.yaml"
        if not path.is_file():
            said = _("{path} is missing: the hidden cases stay with the instructor's checkout")
            raise ExerciseError(said.format(path=path))
        hidden = _read(path, Hidden)
        if hidden.id != one.id:
            said = _("{file}: id: {found!r} was found, {wanted!r} was expected")
            raise ExerciseError(said.format(file=path.name, found=hidden.id, wanted=one.id))
        whole.append(one.model_copy(update={"hidden": hidden.cases}))
    return whole


def _read(path: Path, kind: type[_Kind]) -> _Kind:
    try:
        return kind.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ExerciseError(_("{file} cannot be read: {error}").format(file=path.name, error=error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ExerciseError(f"{path.name}: {place}: {first['msg'].removeprefix('Value error, ')}") from None
