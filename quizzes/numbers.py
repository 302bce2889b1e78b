"""Numbers as people type them, in their locale, with their units. Pure.

English and Korean write 1,234.5; French writes 1 234,5. Digits of every script count by their value (١٢ is 12), because
`int()` and the keyboards of the learners agree on them; the Arabic decimal and group signs are read as such.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from quizzes.say import _
from quizzes.units import EXAMPLES, factor

_LONGEST = 100
_MINUS = re.compile("[\u2010-\u2015\u2212\u30fc\ufe58\ufe63\uff0d\uff70]")
_SPACES = re.compile(r"[\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]+")  # \s includes no-break and thin spaces
_GAP = re.compile(r"(?<=\d)[\s\u2060]+(?=\d)")
_NUMBER = r"[+-]?(?:[0-9][0-9.,'_]*|[.,][0-9]+)(?:e[+-]?[0-9]{1,3}|[x×*]10(?:\^|\*\*)[+-]?[0-9]{1,3})?"
_SHAPE = re.compile(rf"^(\$?)({_NUMBER})(?:/({_NUMBER}))?(.*)$", re.I | re.S)


class NotANumber(ValueError):
    """What was typed can't be read as a number; the message says what to write. Costs no attempt."""


class Ambiguous(NotANumber):
    """What was typed can be read in two ways (1,234). Costs no attempt."""


@dataclass(frozen=True)
class Read:
    """A number in the question's unit, and a note where a reader may want to know how it was read."""

    value: Fraction
    note: str = ""


def read(text: str, unit: str = "bytes", locale: str = "en") -> Read:
    """The number typed, in `unit`. Raises Ambiguous for what reads in two ways in that locale, NotANumber for what is none."""
    shown = text.strip()[:_LONGEST]
    example = _(EXAMPLES[unit])
    refused = NotANumber(
        _("{shown!r} is not a number with a unit; write for example {example}").format(shown=shown, example=example)
    )
    if len(text) > _LONGEST:
        raise refused
    plain = _MINUS.sub("-", text).replace("\u066b", ".").replace("\u066c", "'")
    plain = _digits(unicodedata.normalize("NFKC", plain))
    spaced = _GAP.search(plain)
    if spaced and not re.search(r"(?<!\d)\d{1,3}(?:[\s\u2060]+\d{3})+(?!\d)|[.,]\d{3}[\s\u2060]", plain):
        raise refused
    match = _SHAPE.match(_SPACES.sub("", plain))
    if match is None:
        raise refused
    value, note = _decimal(match[2], locale, shown)
    if match[3]:
        below, more = _decimal(match[3], locale, shown)
        if below == 0:
            raise NotANumber(_("{shown!r} divides by zero; write a number").format(shown=shown))
        value, note = value / below, note or more
    word = match[4].rstrip(".") or match[1]
    times = factor(word, unit)
    if times is None:
        if word.startswith("/"):
            raise NotANumber(_("{shown!r} has more than one fraction; write one number").format(shown=shown))
        raise NotANumber(
            _("the unit of {shown!r} is not known; write for example {example}").format(shown=shown, example=example)
        )
    return Read(value * times, note)


def parse_bytes(text: str, locale: str = "en") -> Fraction:
    """A number of bytes: "30 GB", "30e9", "27.9 GiB", "1 500 MB", "2,5 Go" (in French). A bare number is bytes.

    GB is 1000³, GiB 1024³. Raises Ambiguous for a number that reads in two ways in that locale, NotANumber for what is
    neither.
    """
    return read(text, "bytes", locale).value


def render(value: int | float | str | Fraction, locale: str = "en") -> str:
    """A number as the locale writes it: 1,234.5, or 1 234,5 with narrow no-break spaces in French. Text stays text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction):
        value = int(value) if value.denominator == 1 else float(value)
    if isinstance(value, float) and (abs(value) < 1e-4 or abs(value) >= 1e15) and value:
        written = f"{value:g}".replace("e-0", "e-")
    else:
        written = f"{Decimal(str(value)):,f}"
        written = written.rstrip("0").rstrip(".") if "." in written else written
    if _french(locale):
        written = written.replace(",", "\u202f").replace(".", ",")
    return written


def _french(locale: str) -> bool:
    return locale.lower().replace("_", "-").split("-")[0] == "fr"


def _digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(mark)) if unicodedata.decimal(mark, None) is not None else mark for mark in text)


def _decimal(digits: str, locale: str, shown: str) -> tuple[Fraction, str]:
    mantissa, _e, exponent = re.sub(r"[x×*]10(?:\^|\*\*)", "e", digits.lower()).partition("e")
    mantissa, note = mantissa.replace("'", "").replace("_", ""), ""
    marks = [mark for mark in mantissa if mark in ".,"]
    if len(set(marks)) == 2:
        decimal = marks[-1]
        group = "," if decimal == "." else "."
        if marks.count(decimal) > 1 or not _grouped(mantissa.split(decimal)[0], group):
            raise NotANumber(_("{shown!r} mixes points and commas in a way that is no number").format(shown=shown))
        mantissa = mantissa.replace(group, "").replace(decimal, ".")
    elif len(marks) > 1:
        if not _grouped(mantissa, marks[0]):
            said = _("{shown!r} has {count} {mark!r} where no thousands are")
            raise NotANumber(said.format(shown=shown, count=len(marks), mark=marks[0]))
        mantissa = mantissa.replace(marks[0], "")
    elif marks == [","] and re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", mantissa):
        one, other = mantissa.replace(",", ""), mantissa.replace(",", ".")
        if _french(locale):
            said = _("{shown!r} can be read in two ways; write {one} or {other}")
            raise Ambiguous(said.format(shown=shown, one=one, other=other.replace(".", ",") + "0"))
        mantissa, note = one, _("{shown} was read as {one}").format(shown=shown, one=one)
    else:
        mantissa = mantissa.replace(",", ".")
    try:
        return Fraction(mantissa) * Fraction(10) ** int(exponent or 0), note
    except ValueError:
        raise NotANumber(_("{shown!r} is not a number").format(shown=shown)) from None


def _grouped(whole: str, mark: str) -> bool:
    return re.fullmatch(rf"[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})*", whole) is not None
