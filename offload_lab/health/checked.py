"""Fields of frozen dataclasses that a person wrote in a file: read with errors that name the field. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def number(owner: str, name: str, value: Any, *, above: float | None = None, least: float | None = None) -> None:
    """Raises ValueError unless `value` is a finite number, more than `above` or at least `least` where they are given."""
    wanted = "a finite number"
    if above is not None:
        wanted += f" above {above:g}"
    if least is not None:
        wanted += f" of at least {least:g}"
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or (above is not None and value <= above) or (least is not None and value < least):
        raise ValueError(f"{owner}({name}={value!r}): {wanted} is needed")


def whole(owner: str, name: str, value: Any, least: int) -> None:
    """Raises ValueError unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{owner}({name}={value!r}): a whole number of at least {least} is needed")


def known_fields(kind: type, given: Any) -> dict[str, Any]:
    """`given` as keyword arguments of the dataclass `kind`. Raises ValueError naming what it has no field for."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{kind.__name__}: one JSON object is needed, not {type(given).__name__}")
    names = [field.name for field in fields(kind)]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(names)}")
    return dict(given)
