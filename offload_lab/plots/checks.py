"""Figures that a caller hands in, checked before they are drawn. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from offload_lab.plots.lettering import named


def amount(value: Any, what: str, unit: str) -> float:
    """`value` as a float. Raises ValueError, naming `what` in `unit`, unless it is a finite number of at least 0."""
    if isinstance(value, bool) or (not isinstance(value, int | float) and not hasattr(value, "__float__")):
        raise ValueError(f"{what} is {value!r}: a number of {unit} is needed")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise ValueError(f"{what} is {number:g}: a finite number of {unit}, at least 0, is needed")
    return number


def amounts(values: Mapping[str, Any], what: str, unit: str) -> dict[str, float]:
    """The same for each of `values`, in their order."""
    return {name: amount(value, f"{what} {named(name)!r}", unit) for name, value in values.items()}
