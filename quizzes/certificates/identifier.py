"""The id of a certificate: 128 random bits in Crockford's base 32 with a check symbol, for people to read out and type. Pure.

26 symbols hold 130 bits, so the first is at most `7`; the 27th is the number modulo 37. Crockford's alphabet for it has five
symbols more, `*~$=U`, of which four trouble file names and URLs: an id that ends in one of them is drawn again.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from quizzes.say import _

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CHECK_ALPHABET = ALPHABET + "*~$=U"
BITS = 128
SYMBOLS = 26

_READ_AS = str.maketrans({"I": "1", "L": "1", "O": "0"})
_BETWEEN = re.compile(r"[\s\-\u2010-\u2015\u2212]+")  # people paste dashes of all kinds
_LETTERS = {letter: letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}  # upper() alone would take ı for I


class IdentifierError(ValueError):
    """A text is no certificate id; the message says what is wrong with it, in a sentence without an end stop."""


def encode(number: int) -> str:
    """The 27 symbols of `number`, 0 ≤ `number` < 2**128, the last one the check symbol."""
    if not 0 <= number < 1 << BITS:
        raise IdentifierError(_("an id is a number of 128 bits"))
    symbols = [ALPHABET[number >> 5 * place & 31] for place in reversed(range(SYMBOLS))]
    return "".join(symbols) + CHECK_ALPHABET[number % 37]


def new(draw: Callable[[int], int] = secrets.randbits) -> str:
    """A new id of `draw(128)`, repeated until the check symbol is a letter or a digit (in 33 of 37 draws it is)."""
    while True:
        made = encode(draw(BITS))
        if made[-1] in ALPHABET + "U":
            return made


def parse(text: str) -> str:
    """The id that a person wrote as `text`, in its one form. Raises IdentifierError where it is none.

    Lower case, dashes and white space do not matter; `I` and `L` are read as 1, `O` as 0.
    """
    if len(text) > 200:
        raise IdentifierError(_("it is longer than an id"))
    plain = _BETWEEN.sub("", text)
    plain = "".join(_LETTERS.get(symbol, symbol) for symbol in plain).translate(_READ_AS)
    for place, symbol in enumerate(plain[:SYMBOLS], start=1):
        if symbol not in ALPHABET:
            raise IdentifierError(_("symbol {place}, {symbol!a}, does not belong to an id").format(place=place, symbol=symbol))
    if len(plain) != SYMBOLS + 1:
        raise IdentifierError(
            _("an id has {symbols} symbols without the dashes, this has {count}").format(symbols=SYMBOLS + 1, count=len(plain))
        )
    if plain[-1] not in CHECK_ALPHABET:
        raise IdentifierError(_("the check symbol, {plain!a}, does not belong to an id").format(plain=plain[-1]))
    number = 0
    for symbol in plain[:SYMBOLS]:
        number = number << 5 | ALPHABET.index(symbol)
    if number >> BITS:
        raise IdentifierError(_("the first symbol of an id is at most 7"))
    if CHECK_ALPHABET[number % 37] != plain[-1]:
        raise IdentifierError(_("the check symbol is wrong: a symbol was mistyped, or two changed places"))
    return plain


def is_canonical(text: str) -> bool:
    """Whether `text` is an id in its one form."""
    try:
        return parse(text) == text
    except IdentifierError:
        return False


def shown(identifier: str) -> str:
    """The id in groups of four, for print: `XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXX`."""
    return "-".join(identifier[start : start + 4] for start in range(0, len(identifier), 4))
