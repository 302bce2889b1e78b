"""Questions, as data. Pure: reads YAML, imports no torch and no front end.

Questions and choices are known by ids that never change; nothing is stored by position.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from offload_lab.partition import STATE_BYTES

BANK = Path(__file__).parent / "bank"
KEYS = Path(__file__).parent / "keys"
_ELEMENT = {"float32": 4, "bfloat16": 2, "float16": 2}


class BankError(ValueError):
    """A file of questions can't be used; the message names file, question and field."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Value(_Strict):
    """A number of bytes, computed from the engine's own arithmetic so that quiz and package cannot disagree."""

    source: Literal["weights", "moments", "state", "training"]
    parameters: int
    dtype: Literal["float32", "bfloat16", "float16"]

    @model_validator(mode="before")
    @classmethod
    def _from(cls, data: Any) -> Any:
        return {"source" if key == "from" else key: value for key, value in data.items()} if isinstance(data, dict) else data

    def number(self) -> int:
        element = _ELEMENT[self.dtype]
        master = 0 if self.dtype == "float32" else 4
        a_parameter = {
            "weights": element,
            "moments": 8,
            "state": STATE_BYTES[self.dtype],
            "training": element + element + master + 8,
        }
        return a_parameter[self.source] * self.parameters


class Choice(_Strict):
    id: str
    text: str
    correct: bool
    explanation: str
    misconception: str | None = None


class Trap(_Strict):
    """A wrong number that a known misconception leads to."""

    value: Value
    explanation: str
    misconception: str


class Question(_Strict):
    """One question with its key. `name` is what a learner types in `answers["q1"]`; `tolerance` is a share of the value."""

    id: str
    name: str
    kind: Literal["one", "several", "number"]
    prompt: str
    points: float = 1.0
    choices: tuple[Choice, ...] = ()
    unit: Literal["bytes"] | None = None
    value: Value | None = None
    tolerance: float = 0.0
    explanation: str = ""
    traps: tuple[Trap, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Question:
        ids = [choice.id for choice in self.choices]
        right = sum(choice.correct for choice in self.choices)
        if len(ids) != len(set(ids)):
            raise ValueError("choices: two have the same id")
        if self.kind == "number":
            if self.value is None or self.choices:
                raise ValueError("value: a number question has a value and no choices")
        elif len(ids) < 2 or (right != 1 if self.kind == "one" else right < 1):
            raise ValueError("choices: at least two are needed, one of them right (several: at least one)")
        for choice in self.choices:
            if not choice.correct and choice.misconception is None:
                raise ValueError(f"choices.{choice.id}.misconception: every wrong choice names one")
        return self


class Bank(_Strict):
    """The questions of one lesson."""

    lesson: str
    title: str
    questions: tuple[Question, ...]

    def __getitem__(self, name: str) -> Question:
        for question in self.questions:
            if question.name == name:
                return question
        raise KeyError(f"there is no question {name!r}; there are {', '.join(q.name for q in self.questions)}")


def load(path: Path) -> Bank:
    """Read and check one file. Raises BankError naming file, question and field."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        bank = Bank.model_validate(content)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BankError(f"{path.name} cannot be read: {error}") from None
    except ValidationError as error:
        raise BankError(f"{path.name}: {_where(content, error)}") from None
    names = [question.name for question in bank.questions]
    if len(names) != len(set(names)):
        raise BankError(f"{path.name}: two questions have the same name")
    known = yaml.safe_load((BANK / "misconceptions.yaml").read_text(encoding="utf-8"))
    for question in bank.questions:
        for part in (*question.choices, *question.traps):
            if part.misconception is not None and part.misconception not in known:
                raise BankError(f"{path.name}, question {question.id}: misconception {part.misconception!r} is not in the list")
    return bank


def _where(content: Any, error: ValidationError) -> str:
    first = error.errors()[0]
    place = list(first["loc"])
    name = ""
    if len(place) > 1 and place[0] == "questions" and isinstance(place[1], int):
        question = content["questions"][place[1]]
        name = f"question {question.get('id', place[1] + 1) if isinstance(question, dict) else place[1] + 1}, "
        place = place[2:]
    field = ".".join(str(part) for part in place)
    return f"{name}{field + ': ' if field else ''}{first['msg'].removeprefix('Value error, ')}"


def practice(lesson: str) -> Bank:
    """The open questions of a lesson ("01"). Raises BankError when there are none."""
    return _find(BANK, lesson)


def graded(lesson: str) -> Bank:
    """The graded questions of a lesson, with keys. Raises BankError where the keys are not installed."""
    return _find(KEYS, lesson)


def _find(folder: Path, lesson: str) -> Bank:
    found = sorted(folder.glob(f"{lesson}_*.yaml"))
    if len(found) != 1:
        raise BankError(f"no questions of lesson {lesson!r} in {folder.name}; the keys stay with the instructor's checkout")
    return load(found[0])


def misconceptions() -> dict[str, dict[str, str]]:
    return yaml.safe_load((BANK / "misconceptions.yaml").read_text(encoding="utf-8"))
