"""Comparing what came back with what is expected. Pure; types are exact, so that nothing equals everything."""

from __future__ import annotations

import math
from typing import Any

from quizzes.say import _, _n


def difference(got: Any, expected: Any, relative: float = 0.0, absolute: float = 0.0) -> str | None:
    """None where `got` is `expected`, else one line that says what differs and never what was expected.

    Both are JSON values. True is not 1 and 1 is not 1.0. Floats may differ by `relative` of the expected one or by `absolute`,
    whichever is more; NaN is never right. Lists are compared item by item, in order, dicts by their keys.
    """
    # A loop, not recursion: a learner's list may be nested as deep as the parser allows.
    pairs = [(_("the result"), got, expected)]
    while pairs:
        place, one, other = pairs.pop()
        if type(one) is not type(other):
            said = _("{place} is {found}; {wanted} was expected")
            return said.format(place=place, found=_named(one), wanted=_named(other))
        if isinstance(other, float):
            if math.isnan(one):
                return _("{place} is not a number (NaN)").format(place=place)
            if not math.isclose(one, other, rel_tol=relative, abs_tol=absolute):
                return _("{place} is a wrong number").format(place=place)
        elif isinstance(other, list):
            if len(one) != len(other):
                said = _n(
                    "{place} has {count} item; {wanted} were expected",
                    "{place} has {count} items; {wanted} were expected",
                    len(one),
                )
                return said.format(place=place, count=len(one), wanted=len(other))
            item = _("item {number} of {place}")
            numbered = reversed(list(enumerate(zip(one, other, strict=True))))
            pairs += [(item.format(number=i, place=place), *both) for i, both in numbered]
        elif isinstance(other, dict):
            if one.keys() != other.keys():
                return _("{place} has other keys").format(place=place)
            pairs += [(_("{key!r} of {place}").format(key=key, place=place), one[key], other[key]) for key in other]
        elif one != other:
            said = _("{place} is a wrong number") if isinstance(other, int) else _("{place} is wrong")
            return said.format(place=place)
    return None


def _named(value: Any) -> str:
    if value is None:
        return "None"
    numbers = {bool: _("a bool"), int: _("an int"), float: _("a float")}
    names = {**numbers, str: _("a string"), list: _("a list"), dict: _("a dict")}
    return names.get(type(value), _("something else"))
