"""Base 58 in the Bitcoin alphabet, the text form of keys and signatures in `did:key` and in data integrity proofs. Pure."""

from __future__ import annotations

from quizzes.say import _

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGIT = {symbol: value for value, symbol in enumerate(ALPHABET)}

LONGEST_TEXT = 200
"""Decoding takes time quadratic in the length; keys need 48 symbols and signatures at most 88."""


def encode(data: bytes) -> str:
    """The base 58 text of `data`; each leading zero byte is a leading `1`."""
    zeros = len(data) - len(data.lstrip(b"\0"))
    number = int.from_bytes(data, "big")
    symbols = []
    while number:
        number, digit = divmod(number, 58)
        symbols.append(ALPHABET[digit])
    return "1" * zeros + "".join(reversed(symbols))


def decode(text: str) -> bytes:
    """The bytes that `encode` turns into `text`. Raises ValueError for a foreign symbol or more than `LONGEST_TEXT` symbols."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            _("a base 58 text of {count} symbols is longer than any key or signature ({longest_text})").format(
                count=len(text), longest_text=LONGEST_TEXT
            )
        )
    number = 0
    for place, symbol in enumerate(text, start=1):
        if symbol not in _DIGIT:
            raise ValueError(_("symbol {place}, {symbol!a}, does not belong to base 58").format(place=place, symbol=symbol))
        number = number * 58 + _DIGIT[symbol]
    zeros = len(text) - len(text.lstrip("1"))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
