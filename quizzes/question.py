"""Questions, as data. Pure: reads YAML, imports no torch and no front end.

Questions and choices are known by ids that never change; nothing is stored by position.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from quizzes.parts import Choice, Extra, Figure, Id, Pair, Right, Share, Step, Text, Trap, WrongOrder, WrongText
from quizzes.say import _
from quizzes.shape import complaint, with_options
from quizzes.values import Strict, Value

BANK = Path(__file__).parent / "bank"
KEYS = Path(__file__).parent / "keys"
UNNAMED = "imported-unnamed"
"""The misconception of an imported wrong answer: files of other programs name none."""
Unit = Literal["bytes", "seconds", "bytes_per_second", "percent", "count", "dollars", "ratio"]


class BankError(ValueError):
    """A file of questions can't be used; the message names file, question and field."""


class Question(Strict):
    """One question with its key. `name` is what a learner types in `answers["q1"]`; `tolerance` is a share of the value.

    `variant` and `shown` (choices, steps or options in the order in which this learner sees them) are set by
    `quizzes.variants.draw`. `several_right` says on purpose that any of the right choices of a one-choice question will do.
    """

    id: Id
    name: Annotated[str, Field(pattern=r"^[A-Za-z]\w{0,30}$")]
    level: Literal[1, 2, 3] = 1
    kind: Literal["one", "several", "number", "text", "order", "match", "plot"]
    prompt: Text
    points: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 1.0
    reread: str = ""
    hints: tuple[Text, ...] = ()
    hint_cost: Share = 0.25
    choices: tuple[Choice, ...] = ()
    several_right: bool = False
    unit: Unit | None = None
    value: Value | None = None
    tolerance: Share = 0.0
    answers: tuple[Right, ...] = ()
    explanation: str = ""
    traps: tuple[Trap, ...] = ()
    accepted: tuple[Text, ...] = ()
    wrong: tuple[WrongText, ...] = ()
    steps: tuple[Step, ...] = ()
    mistakes: tuple[WrongOrder, ...] = ()
    pairs: tuple[Pair, ...] = ()
    extra: tuple[Extra, ...] = ()
    figure: Figure | None = None
    variants: dict[str, tuple[int | float | str, ...]] = Field(default_factory=dict)
    variant: str = ""
    shown: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _number_the_options(cls, data: Any) -> Any:
        return with_options(data) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _is_whole(self) -> Question:
        said = complaint(self)
        if said:
            raise ValueError(said)
        return self

    @property
    def right(self) -> tuple[Right, ...]:
        """The right numbers of a number question."""
        first = (Right(value=self.value, tolerance=self.tolerance),) if self.value is not None else ()
        return first + self.answers

    @property
    def misconceptions(self) -> tuple[str, ...]:
        """Every misconception that an answer may be told."""
        parts = (*self.choices, *self.traps, *self.wrong, *self.mistakes, *self.pairs)
        return tuple(dict.fromkeys(part.misconception for part in parts if part.misconception))

    def options(self) -> dict[str, str]:
        """The right sides offered by a match question: number -> text, in the order shown."""
        found = {pair.option: pair.right for pair in self.pairs} | {part.option: part.text for part in self.extra}
        return {name: found[name] for name in self.shown or sorted(found, key=int)}

    def shown_steps(self) -> tuple[Step, ...]:
        """The steps of an order question as the learner sees them, which is never a hint at the right order."""
        order = self.shown or sorted(step.id for step in self.steps)
        return tuple(step for name in order for step in self.steps if step.id == name)

    def public(self, locale: str = "en") -> dict[str, Any]:
        """What a learner may see: nothing of the key, no hint before it is paid for, nothing in the order of the key.

        Of a figure the picture, its words and its table (None as long as its numbers are not drawn), with numbers as `locale`
        writes them; not the name of what it draws, which may be the answer.
        """
        found: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("id", "name", "level", "kind", "prompt", "points", "reread", "hint_cost", "unit", "variant")
        }
        found["hints"] = len(self.hints)
        found["choices"] = [
            {"id": choice.id, "text": choice.text, "stays_last": choice.stays_last, "exclusive": choice.exclusive}
            for choice in self.choices
        ]
        found["steps"] = [{"id": step.id, "text": step.text} for step in self.shown_steps()]
        found["pairs"] = [{"id": pair.id, "left": pair.left} for pair in self.pairs]
        found["options"] = [{"id": name, "text": text} for name, text in self.options().items()] if self.pairs else []
        found["figure"] = None
        if self.figure is not None and not self.figure.open_names():
            from quizzes.figures import figure

            found["figure"] = figure(self.figure.source, self.figure.parameters(), locale).public()
        return found


class Bank(Strict):
    """The questions of one lesson."""

    lesson: Annotated[str, Field(pattern=r"^\d{2}$")]
    title: Text
    questions: tuple[Question, ...]

    def __getitem__(self, name: str) -> Question:
        for question in self.questions:
            if question.name == name:
                return question
        raise KeyError(
            _("there is no question {name!r}; there are {list}").format(
                name=name, list=", ".join(q.name for q in self.questions)
            )
        )


def load(path: Path) -> Bank:
    """Read and check one file. Raises BankError naming file, question and field."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        bank = Bank.model_validate(content)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BankError(_("{file} cannot be read: {error}").format(file=path.name, error=error)) from None
    except ValidationError as error:
        raise BankError(f"{path.name}: {_where(content, error)}") from None
    names = [question.name for question in bank.questions]
    for name in names:
        if names.count(name) > 1:
            raise BankError(_("{file}, name: two questions have the same name {name!r}").format(file=path.name, name=name))
    _check_ids([(path, bank)])
    known = misconceptions()
    for question in bank.questions:
        for idea in question.misconceptions:
            if idea not in known:
                raise BankError(
                    _("{file}, question {id}: misconception {idea!r} is not in the list").format(
                        file=path.name, id=question.id, idea=idea
                    )
                )
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


def _check_ids(banks: Iterable[tuple[Path, Bank]]) -> None:
    seen: dict[str, Path] = {}
    for path, bank in banks:
        for question in bank.questions:
            if question.id in seen:
                raise BankError(
                    _("{file}, question {id}, id: {name} has the same id").format(
                        file=path.name, id=question.id, name=seen[question.id].name
                    )
                )
            seen[question.id] = path


def every(*folders: Path) -> dict[Path, Bank]:
    """All files of the bank and the keys (or of `folders`). Raises BankError for a bad one or an id that is there twice."""
    paths = [path for folder in folders or (BANK, KEYS) for path in sorted(folder.glob("[0-9][0-9]_*.yaml"))]
    banks = {path: load(path) for path in paths}
    _check_ids(banks.items())
    return banks


def practice(lesson: str) -> Bank:
    """The open questions of a lesson ("01"). Raises BankError when there are none."""
    return _find(BANK, lesson)


def graded(lesson: str) -> Bank:
    """The graded questions of a lesson, with keys. Raises BankError where the keys are not installed."""
    return _find(KEYS, lesson)


def _find(folder: Path, lesson: str) -> Bank:
    # A lesson may come from a file name or a request; nothing that is a path or a pattern is looked for.
    found = sorted(folder.glob(f"{lesson}_*.yaml")) if re.fullmatch(r"[0-9]{2}", str(lesson)) else []
    if len(found) != 1:
        raise BankError(
            _("no questions of lesson {lesson!r} in {folder}; the keys stay with the instructor's checkout").format(
                lesson=lesson, folder=folder.name
            )
        )
    return load(found[0])


_NOT_JUDGED = {"hints", "hint_cost"}


def version(question: Question) -> str:
    """Sixteen hex digits of all that an undrawn question says but its hints, its key with it: what a judgement rests on.

    Hints and their cost aren't part of it: what was paid for them is in each score, and a hint that is added or mended does not
    make receipts of before worthless. It tells nothing of the key: the explanations, which nobody can guess, are part of it.
    """
    content = json.dumps(question.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_JUDGED), sort_keys=True)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def misconceptions() -> dict[str, dict[str, str]]:
    """Every misconception: id -> {"idea": in the learner's words, "reread": a heading of the lesson}."""
    path = BANK / "misconceptions.yaml"
    return _ideas(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _ideas(path: Path, changed: int) -> dict[str, dict[str, str]]:
    # Parsed once: it is asked for with every verdict, and takes as long as all the rest of it.
    return yaml.safe_load(path.read_text(encoding="utf-8"))
