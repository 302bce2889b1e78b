"""A value of a question: a number, or what the engine's own arithmetic says, so that quiz and package cannot disagree. Pure."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from offload_lab.partition import STATE_BYTES
from offload_lab.state_bytes import ELEMENT_BYTES
from quizzes.formula import FormulaError, evaluate, exact, names_in
from quizzes.say import _

PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")  # `{name}` of a variant


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Value(Strict):
    """One of three: a plain number; `{from, parameters, dtype}`, bytes of a training; `{formula, name: number, …}`.

    In a question with variants `"{name}"` may stand for a number, and a formula may use the name; `number()` is then known
    only once the question is drawn.
    """

    plain: int | float | str | None = None
    source: Literal["weights", "moments", "state", "training"] | None = None
    parameters: int | str | None = None
    dtype: str | None = None
    formula: str | None = None
    names: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if isinstance(data, (int, float, str)) and not isinstance(data, bool):
            return {"plain": data}
        if not isinstance(data, dict):
            return data
        if data.get("formula") is not None and "names" not in data:
            return {"formula": data["formula"], "names": {key: value for key, value in data.items() if key != "formula"}}
        return {"source" if key == "from" else key: value for key, value in data.items()}

    @model_validator(mode="after")
    def _is_one(self) -> Value:
        given = [self.plain is not None, self.source is not None, self.formula is not None]
        if sum(given) != 1:
            raise ValueError(_('a value is a number, {from: …, parameters: …, dtype: …}, or {formula: "…", name: …}'))
        if self.source is not None:
            if self.parameters is None:
                raise ValueError(_("parameters: a whole number is needed"))
            if self.dtype not in ELEMENT_BYTES and not self.open_names():
                raise ValueError(
                    _("dtype: one of {names} is needed, not {dtype!r}").format(names=", ".join(ELEMENT_BYTES), dtype=self.dtype)
                )
        if not self.open_names():
            self.number()  # what can't be computed is the author's error, and is told where it is written
        return self

    def open_names(self) -> set[str]:
        """The variant names that are not drawn yet."""
        if self.formula is not None:
            return names_in(self.formula) - set(self.names)
        parts = (self.plain, self.parameters, self.dtype)
        return {name for part in parts if isinstance(part, str) for name in PLACE.findall(part)}

    def number(self) -> int | Fraction:
        """The value: bytes, seconds, … exactly. Raises FormulaError for one that is not drawn or can't be computed."""
        return self._exactly

    @cached_property
    def _exactly(self) -> int | Fraction:
        # An answer is held against one value a dozen times.
        if missing := self.open_names():
            raise FormulaError(_("{list} is not drawn yet; use quizzes.variants.draw").format(list=", ".join(sorted(missing))))
        if self.formula is not None:
            found = evaluate(self.formula, {name: _bound(name, value) for name, value in self.names.items()})
        elif self.source is not None:
            found = self._of_a_training()
        else:
            found = exact(self.plain)
        return int(found) if found.denominator == 1 else found

    def _of_a_training(self) -> Fraction:
        parameters, dtype = exact(self.parameters), str(self.dtype)
        if parameters.denominator != 1 or parameters < 0:
            raise FormulaError(_("parameters: a whole number is needed, not {parameters!r}").format(parameters=self.parameters))
        if dtype not in ELEMENT_BYTES:
            raise FormulaError(
                _("dtype: one of {list} is needed, not {dtype!r}").format(list=", ".join(ELEMENT_BYTES), dtype=dtype)
            )
        element, master = ELEMENT_BYTES[dtype], 0 if dtype == "float32" else 4
        a_parameter = {
            "weights": element,
            "moments": 8,
            "state": STATE_BYTES[dtype],
            "training": element + element + master + 8,
        }
        return a_parameter[str(self.source)] * parameters


def _bound(name: str, value: Any) -> Any:
    """A name of a formula may itself be a value of the bank."""
    if isinstance(value, dict):
        return Value.model_validate(value).number()
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FormulaError(_("{name}: {value!r} is not a number").format(name=name, value=value))
    return value
