"""The QR code of a certificate: one symbol, the same in every picture, of a size that prints. Pure."""

from __future__ import annotations

import segno

from quizzes.say import _

QUIET = 4
"""Modules of white on each side (ISO/IEC 18004)."""
SMALLEST_SIDE_MM = 25.0
SMALLEST_MODULE_MM = 0.4
"""What a phone reads from paper at arm's length; below it print dots and camera pixels run together."""


def matrix(content: str) -> list[list[bool]]:
    """The rows of the symbol, without quiet zone; true is dark. Error correction M, byte mode, mask 0.

    These and the smallest version that holds the text fix the symbol completely (ISO/IEC 18004). A mask chosen by the library
    could be another one in its next release, and pictures that are compared byte for byte would no longer verify.
    """
    symbol = segno.make_qr(content, error="m", mode="byte", mask=0, boost_error=False, encoding="utf-8")
    return [[bool(module) for module in row] for row in symbol.matrix]


def side_mm(content: str, room: float) -> float:
    """The side of a symbol with its quiet zone on paper: `room` millimetres. Raises ValueError where that prints too small."""
    module = room / (len(matrix(content)) + 2 * QUIET)
    if room < SMALLEST_SIDE_MM or module < SMALLEST_MODULE_MM:
        raise ValueError(
            _(
                "a QR code of {count} characters in {room:g} mm has modules of {module:.2f} mm; it takes "
                "{smallest_side_mm:g} mm and modules of {smallest_module_mm:g} mm to be read from paper"
            ).format(
                count=len(content),
                room=room,
                module=module,
                smallest_side_mm=SMALLEST_SIDE_MM,
                smallest_module_mm=SMALLEST_MODULE_MM,
            )
        )
    return room


def runs(rows: list[list[bool]]) -> list[tuple[int, int, int]]:
    """(x, y, length) of every horizontal run of dark modules, top to bottom."""
    found = []
    for y, row in enumerate(rows):
        x = 0
        while x < len(row):
            length = 0
            while x + length < len(row) and row[x + length]:
                length += 1
            if length:
                found.append((x, y, length))
            x += length or 1
    return found
