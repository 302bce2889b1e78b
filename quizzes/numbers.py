"""Numbers as people type them, with a unit of bytes. Pure."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SPACES = re.compile(r"[\s\u2060]+")  # \s includes no-break and thin spaces
_NUMBER = r"[+-]?(?:\d[\d.,']*|[.,]\d+)(?:e[+-]?\d{1,3})?"
_SHAPE = re.compile(rf"^({_NUMBER})(?:/({_NUMBER}))?([a-z]*)$", re.I)


class NotANumber(ValueError):
    """What was typed can't be read as a number; the message says what to write. Costs no attempt."""


class Ambiguous(NotANumber):
    """What was typed can be read in two ways (1,234). Costs no attempt."""


def parse_bytes(text: str, locale: str = "en") -> Fraction:
    """A number of bytes: "30 GB", "30e9", "27.9 GiB", "1 500 MB", "2,5 Go" (in French). A bare number is bytes.

    GB is 1000³, GiB 1024³. Raises Ambiguous for a number that reads in two ways in that locale, NotANumber for what is
    neither.
    """
    shown = text.strip()
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    plain = _SPACES.sub("", plain)
    match = _SHAPE.match(plain)
    if match is None:
        raise NotANumber(f'{shown!r} is not a number with a unit; write for example "12 GB", "12 GiB" or "12e9"')
    value = _decimal(match[1], locale, shown)
    if match[2]:
        below = _decimal(match[2], locale, shown)
        if below == 0:
            raise NotANumber(f"{shown!r} divides by zero")
        value /= below
    return value * _unit(match[3], shown)


def _unit(word: str, shown: str) -> int:
    if not word:
        return 1
    lowered = word.lower()
    if lowered in {"byte", "bytes", "octet", "octets"}:
        return 1
    match = re.fullmatch(r"([kmgt]?)(i?)(b|o)", lowered)
    # A small b after a prefix is bits to everyone who cares; only a lone "b" is let through.
    if match is None or (match[2] and not match[1]) or (len(word) > 1 and word[-1] == "b"):
        raise NotANumber(f"the unit of {shown!r} is not known; write bytes, kB, MB, GB, TB, or KiB, MiB, GiB, TiB")
    return (1024 if match[2] else 1000) ** _PREFIXES[match[1]]


def _decimal(digits: str, locale: str, shown: str) -> Fraction:
    mantissa, _, exponent = digits.lower().partition("e")
    mantissa = mantissa.replace("'", "")
    marks = [mark for mark in mantissa if mark in ".,"]
    if len(set(marks)) == 2:
        decimal = marks[-1]
        group = "," if decimal == "." else "."
        if marks.count(decimal) > 1 or not _grouped(mantissa.split(decimal)[0], group):
            raise NotANumber(f"{shown!r} mixes points and commas in a way that is no number")
        mantissa = mantissa.replace(group, "").replace(decimal, ".")
    elif marks:
        mark = marks[0]
        if len(marks) > 1:
            if not _grouped(mantissa, mark):
                raise NotANumber(f"{shown!r} has {len(marks)} {mark!r} where no thousands are")
            mantissa = mantissa.replace(mark, "")
        elif mark == "," and re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", mantissa) and locale != "fr":
            raise Ambiguous(
                f"{shown!r} can be read in two ways; write {mantissa.replace(',', '')} or {mantissa.replace(',', '.')}"
            )
        else:
            mantissa = mantissa.replace(",", ".")
    return Fraction(mantissa) * Fraction(10) ** int(exponent or 0)


def _grouped(whole: str, mark: str) -> bool:
    return re.fullmatch(rf"[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})*", whole) is not None
