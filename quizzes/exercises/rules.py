"""Rules that judge a result where many are right. Pure.

A rule takes the arguments of a case and what came back, which may be any JSON value, and returns None or a line that says what
is wrong and never what would be right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quizzes.say import _


def covers(arguments: list[Any], got: Any) -> str | None:
    """[start, stop] of the partitions of `elements`, of at most `most` each, with starts that are multiples of `align`."""
    elements, most, align = arguments
    if not isinstance(got, list) or not all(_is_pair(pair) for pair in got):
        return _("the result is no list of [start, stop] with ints")
    at = 0
    for number, (start, stop) in enumerate(got):
        if start != at:
            if not number:
                return _("the first partition does not start at 0")
            return _("partition {number} does not start where the one before it stops").format(number=number)
        if stop <= start:
            return _("partition {number} is empty").format(number=number)
        if stop - start > most:
            return _("partition {number} is larger than it may be").format(number=number)
        if start % align:
            return _("partition {number} starts at no multiple of the alignment").format(number=number)
        at = stop
    if at != elements:
        return _("elements at the end are in no partition") if at < elements else _("the last partition goes past the end")
    # All but the last are whole multiples of the alignment, because the next one starts where they stop.
    whole = most // align * align
    fewest = 1 + max(0, -(-(elements - most) // whole)) if elements else 0
    return _("there are more partitions than are needed") if len(got) > fewest else None


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)


RULES: dict[str, Callable[[list[Any], Any], str | None]] = {"covers": covers}
