"""Numbers and percentages as the formats write them. Pure."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction

from quizzes.say import _

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?", re.I)
_RATIONAL = re.compile(r"-?[0-9]{1,1500}(?:/[1-9][0-9]{0,1499})?")
_LONGEST = 200
_EXACT = Context(prec=60)
_ROUNDED = Context(prec=17)

_PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20)
_WEIGHTS = sorted(
    {Fraction(1, part) for part in _PARTS}
    | {Fraction(5, 6), Fraction(2, 3), Fraction(3, 4), Fraction(0)}
    | {Fraction(tenth, 10) for tenth in range(1, 10)}
)
"""The shares that Moodle takes as the weight of an answer, as it lists them, 1 down to 0; with a minus, too."""


def decimal(value: Fraction | int) -> str:
    """`value` as a decimal number: exact where 60 digits are enough for that, else rounded to 17."""
    whole = Fraction(value)
    for context in (_EXACT, _ROUNDED):
        found = context.divide(Decimal(whole.numerator), Decimal(whole.denominator))
        if Fraction(found) == whole:
            break
    found = found.normalize(_EXACT)
    if found == 0:
        return "0"
    return format(found, "f") if -15 <= found.adjusted() <= 21 else f"{found:e}".replace("e+", "e")


def number(text: str) -> Fraction:
    """A number as a file of questions writes it: digits, a point, an exponent. Raises ValueError for anything else."""
    plain = text.strip().replace("\u2212", "-")
    if len(plain) > _LONGEST or not _NUMBER.fullmatch(plain):
        raise ValueError(_("{text!r} is not a number").format(text=text.strip()[:60]))
    return Fraction(plain)


def rational(value: object) -> Fraction:
    """A number of ours: an int, a float, or text such as "1/3". Raises ValueError for anything else, and for one so long
    that it would take minutes to write it out."""
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(repr(value))
    if isinstance(value, Fraction) or (isinstance(value, int) and not isinstance(value, bool)):
        return Fraction(value)
    if isinstance(value, str) and _RATIONAL.fullmatch(value):
        return Fraction(value)
    return number(value if isinstance(value, str) else "")


def as_value(value: Fraction) -> int | float | str:
    """A number for the bank: an int or a float where it is exactly that, else a fraction as text."""
    if value.denominator == 1:
        return value.numerator if abs(value) < 10**15 else str(value.numerator)
    near = float(value) if abs(value) < 10**300 else 0.0
    return near if Fraction(repr(near)) == value else str(value)


def as_tolerance(value: Fraction) -> float:
    """An absolute tolerance for the bank, which keeps one as a float. Raises ValueError where that is too large."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(_("the tolerance is too large")) from None


def weight(share: Fraction) -> str:
    """A share of the points as a percentage that Moodle takes: the nearest in its list ("33.33333", "-50")."""
    near = min(_WEIGHTS, key=lambda listed: abs(listed - abs(share)))
    written = f"{float(near * 100):.5f}".rstrip("0").rstrip(".")
    return f"-{written}" if share < 0 and near else written


def listed(share: Fraction) -> bool:
    """Whether Moodle takes this share as the weight of an answer."""
    return abs(share) in _WEIGHTS


def share(text: str) -> Fraction:
    """A percentage as a share of 1: "33.33333" is a third, "42" is 0.42. Raises ValueError."""
    found = number(text.strip().removesuffix("%")) / 100
    near = min(_WEIGHTS, key=lambda listed: abs(listed - abs(found)))
    # Moodle writes five decimals of a percentage; a file may hold fewer of them.
    if near and abs(near - abs(found)) < Fraction(1, 10_000):
        return near if found > 0 else -near
    return found
