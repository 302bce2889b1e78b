"""Comparing what came back with what is expected. Pure; types are exact, so that nothing equals everything."""

from __future__ import annotations

import math
from typing import Any


def difference(got: Any, expected: Any, relative: float = 0.0, absolute: float = 0.0) -> str | None:
    """None where `got` is `expected`, else one line that says what differs and never what was expected.

    Both are JSON values. True is not 1 and 1 is not 1.0. Floats may differ by `relative` of the expected one or by `absolute`,
    whichever is more; NaN is never right. Lists are compared item by item, in order, dicts by their keys.
    """
    # A loop, not recursion: a learner's list may be nested as deep as the parser allows.
    pairs = [("the result", got, expected)]
    while pairs:
        place, one, other = pairs.pop()
        if type(one) is not type(other):
            return f"{place} is {_named(one)}; {_named(other)} was expected"
        if isinstance(other, float):
            if math.isnan(one):
                return f"{place} is not a number (NaN)"
            if not math.isclose(one, other, rel_tol=relative, abs_tol=absolute):
                return f"{place} is a wrong number"
        elif isinstance(other, list):
            if len(one) != len(other):
                return f"{place} has {len(one)} items; {len(other)} were expected"
            pairs += [(f"item {i} of {place}", *both) for i, both in reversed(list(enumerate(zip(one, other, strict=True))))]
        elif isinstance(other, dict):
            if one.keys() != other.keys():
                return f"{place} has other keys"
            pairs += [(f"{key!r} of {place}", one[key], other[key]) for key in other]
        elif one != other:
            return f"{place} is {'a wrong number' if isinstance(other, int) else 'wrong'}"
    return None


def _named(value: Any) -> str:
    if value is None:
        return "None"
    names = {bool: "a bool", int: "an int", float: "a float", str: "a string", list: "a list", dict: "a dict"}
    return names.get(type(value), "something else")
