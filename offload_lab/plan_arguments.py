"""The arguments of `plan`, checked: what is wrong is a ValueError that names it. Pure: no torch."""

from __future__ import annotations

from typing import Any

from offload_lab.known_models import spec
from offload_lab.models import ModelSpec
from offload_lab.policy import parse_bytes

MOST_OF_ANYTHING = 10**9
"""Sequences, tokens of one, backwards a step, steps between two that are published. Seconds and dollars stay numbers."""
_MOST = 2 * 10**12
"""Parameters. Every partition of a model is placed as the engine does it; more of them take minutes, and are a typing error."""


def model_of(model: ModelSpec | str | int | Any) -> ModelSpec:
    if isinstance(model, ModelSpec):
        found = model
    elif isinstance(model, str):
        found = spec(model)
    elif isinstance(model, int):
        _check_size(model)  # before a layer is made for each few of them
        found = ModelSpec.sized(model)
    elif hasattr(model, "named_parameters"):
        found = ModelSpec.of(model)
    else:
        raise ValueError(
            f"model={model!r}: a ModelSpec, a known name, a whole number of parameters or a torch module is needed"
        )
    _check_size(found.parameters)
    if not found.parameters:
        raise ValueError(f"model={found.name}: no parameter is trainable; there is nothing for an optimizer to do")
    return found


def budget_of(value: int | str) -> int:
    try:
        return parse_bytes(value)
    except ValueError as error:
        raise ValueError(f"ram_budget={value!r}: {error}") from None


def check_one_of(name: str, value: object, *choices: str) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: one of {', '.join(map(repr, choices))} is needed")


def check_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r}: a whole number of at least 1 is needed")
    if value > MOST_OF_ANYTHING:
        raise ValueError(f"{name}={value:,}: at most {MOST_OF_ANYTHING:,}; is there a digit too many?")


def check_positive(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{name}={value!r}: a finite number above 0 is needed")
    if value > 1e18:
        raise ValueError(f"{name}={value:.3g}: at most 1e18; is there a digit too many?")


def _check_size(parameters: int) -> None:
    if parameters > _MOST:
        raise ValueError(
            f"parameters={parameters:,}: more than the {_MOST:,} that plans are made for; is there a digit too many?"
        )
