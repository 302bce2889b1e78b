"""Text that is shown on a certificate: what may stand there, and how wide it is. Pure.

The rules name code points instead of Unicode categories: categories change with Python's Unicode tables, and a certificate must
read the same everywhere, and for years.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect
from collections.abc import Callable
from importlib import resources
from typing import Any

from quizzes.say import _

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls
    "\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"  # line separators, direction overrides, byte order mark
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # what is no character
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17))
    + "]"
)
WIDTHS: dict[str, Any] = json.loads(resources.files(__package__).joinpath("widths.json").read_text("utf-8"))
"""What `widths.json` says; the static page carries it too."""
_STARTS = [start for start, _ in WIDTHS["ranges"]]
_RANGES = [tenths for _, tenths in WIDTHS["ranges"]]
_SYMBOLS = {symbol: int(tenths) for tenths, symbols in WIDTHS["symbols"].items() for symbol in symbols}
_FIRST_WIDE = "\u1100"  # from here on most scripts in use are about one em wide


def check(text: str) -> str:
    """`text` itself. Raises ValueError for controls, direction overrides and non-characters: they hide what is signed."""
    found = _HIDDEN.search(text)
    if found:
        raise ValueError(
            _("character {start}, U+{found:04X}, cannot be shown").format(start=found.start() + 1, found=ord(found[0]))
        )
    return text


def tidy(text: str) -> str:
    """`text` in normal form C, each run of white space one space, none at the ends; checked as by `check`."""
    return check(unicodedata.normalize("NFC", " ".join(text.split())))


def width(text: str) -> float:
    """An estimate of the width of `text` in em, on the safe side for the common sans-serif fonts."""
    # Whole fifths of an em: sums of 0.6 differ between Pythons and JavaScript, and a line would break elsewhere.
    return sum(5 if symbol >= _FIRST_WIDE else 3 for symbol in text) / 5


def most_width(text: str) -> float:
    """What `text` is wide at most, in em, in the common sans-serif fonts, bold too; from edition 3 of the drawing on."""
    return sum(_tenths(symbol) for symbol in text) / 10


def _tenths(symbol: str) -> int:
    found = _SYMBOLS.get(symbol)
    return _RANGES[bisect(_STARTS, ord(symbol)) - 1] if found is None else found


def wrap(text: str, limit: float, measure: Callable[[str], float] = width) -> list[str]:
    """The lines of `text`, none wider than `limit` em by `measure`; words longer than a line are cut."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if measure(joined) <= limit:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for symbol in word:
            if lines[-1] and measure(lines[-1] + symbol) > limit:
                lines.append("")
            lines[-1] += symbol
    return lines


def printable(text: str) -> str:
    """`text` from a file that is not trusted, made safe for a terminal and short: hidden characters become escapes."""
    return _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text[:200])
