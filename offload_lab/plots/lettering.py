"""Text in a picture: how wide it is, and what is left of it where there is less room. Pure.

A picture that has no script cannot measure its text, and does not know the reader's font. Widths are therefore estimated, from
the wide side: the advance widths of a wide sans serif (DejaVu Sans), by class of character.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_NARROW, _THIN, _WIDE = frozenset("ijlI.,:;'|!` "), frozenset('frt()[]{}-/\\"*'), frozenset("mwMW@%—…×→≥≤<>=+~^#&")
BOLD = 1.14
"""How much wider a bold character is."""
NAME = 72
"""Characters of a name in a table; of a longer one the middle is left out, since names differ at both ends."""


@lru_cache(maxsize=2048)
def _advance(character: str) -> float:
    """Width of one character in ems."""
    if character in _NARROW:
        return 0.34
    if character in _THIN:
        return 0.44
    if character in _WIDE:
        return 1.0
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF" or ord(character) > 0xFFFF:
        return 1.05
    if character.isupper():
        return 0.74
    return 0.64 if ord(character) < 0x2000 else 0.9


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """About the width of `text` in letters of `size`, in the units of `size`, and not less than that."""
    return sum(map(_advance, text)) * size * (BOLD if bold else 1.0)


def cut(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """`text`, or as much of its two ends as fits into `room` with an ellipsis between them."""
    if len(text) <= 4 * room and width_of(text, size, bold=bold) <= room:
        return text
    ellipsis = width_of("…", size, bold=bold)
    ends = ["", ""]
    taken, left, right = ellipsis, 0, len(text)
    while left < right:
        # Two characters of the front for one of the back: names are told apart by both, and read from the front.
        front = (left + len(text) - right) % 3 != 2
        character = text[left] if front else text[right - 1]
        taken += width_of(character, size, bold=bold)
        if taken > room:
            break
        if front:
            ends[0] += character
            left += 1
        else:
            ends[1] = character + ends[1]
            right -= 1
    return f"{ends[0].rstrip()}…{ends[1].lstrip()}"


def wrapped(text: str, room: float, size: float, rows: int = 2, *, bold: bool = False) -> list[str]:
    """At most `rows` rows of whole words; what does not fit ends in an ellipsis."""
    lines: list[str] = []
    words = text.split()
    for number, word in enumerate(words):
        if lines and width_of(f"{lines[-1]} {word}", size, bold=bold) <= room:
            lines[-1] += f" {word}"
        elif len(lines) < rows:
            lines.append(word)
        else:
            lines[-1] = cut(" ".join([lines[-1], *words[number : number + 40]]), room, size, bold=bold)
            break
    return [cut(line, room, size, bold=bold) for line in lines]


def clean(text: str) -> str:
    """Without the characters that XML has no way to write, and without those that turn the direction of what follows."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]", "\ufffd", text)


def named(name: object) -> str:
    """A name as one line of a table has it: clean, no line breaks, and of a very long one both ends."""
    text = " ".join(clean(str(name)).split())
    if len(text) > NAME:
        text = f"{text[: NAME - 24]}…{text[-23:]}"
    return text or "(no name)"
