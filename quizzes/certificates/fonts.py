"""Fonts for PNG and PDF: for each character one that has it. A character without a font is an error, never an empty box.

A browser picks fonts for the SVG by itself; a PDF must carry its own. They come with the extra `certificates`; fonts of the
system are used where those lack a character.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from functools import cache
from pathlib import Path

from quizzes.certificates.text import printable
from quizzes.say import N_, _

_PACKAGED = (("fontpkg_noto_sans", "files/NotoSans[wdth,wght].ttf"), ("pylopdf_fonts_ko", "NotoSansKR-Regular.otf"))
_SYSTEM = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/nanum/NanumGothic.ttf",
    "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
    "/Library/Fonts/Arial Unicode.ttf",
    "/System/Library/Fonts/Supplemental/Arial Unicode.ttf",
    "C:/Windows/Fonts/arial.ttf",
    "C:/Windows/Fonts/malgun.ttf",
)
_ONE_BY_ONE = frozenset(
    ("Latn", "Grek", "Cyrl", "Armn", "Geor", "Cher", "Hang", "Hani", "Hira", "Kana", "Bopo", "Yiii", "Ethi", "Cans", "Zyyy")
)
"""Scripts (ISO 15924) whose letters keep their shape and place whatever stands beside them; Zyyy is what all scripts share."""
_PARTS = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
"""Parts of Hangul syllables, of flags, and skin colours: each alone is drawn as something else than together."""
REMEDY = N_(
    "Install fonts: pip install 'offload-lab[certificates]' (Latin, Greek, Cyrillic, Korean), or on Debian "
    "apt-get install fonts-dejavu-core fonts-nanum. Or use the SVG, for which the browser finds the fonts."
)


class FontError(ValueError):
    """No font on this machine draws a text; the message says which character, and what to install."""


def runs(text: str, chain: tuple[Path, ...] | None = None) -> list[tuple[Path, str]]:
    """`text` cut into pieces, each with the font file that draws all of it. Raises FontError where no font does.

    A run goes on in its font as long as that has the characters, so that spaces and digits do not change look in mid-line.
    """
    chain = available() if chain is None else chain
    pieces: list[tuple[Path, str]] = []
    for symbol in text:
        _check_script(symbol)
        if pieces and ord(symbol) in characters(pieces[-1][0]):
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + symbol)
            continue
        for path in chain:
            if ord(symbol) in characters(path):
                pieces.append((path, symbol))
                break
        else:
            name = unicodedata.name(symbol, _("no name"))
            raise FontError(
                _("No font here draws “{symbol}” (U+{code:04X}, {name}). {advice}").format(
                    symbol=printable(symbol), code=ord(symbol), name=name, advice=_(REMEDY)
                )
            )
    return pieces


@cache
def available() -> tuple[Path, ...]:
    """The font files found on this machine, first choice first."""
    found = []
    for package, name in _PACKAGED:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent / name)
    return tuple(path for path in (*found, *map(Path, _SYSTEM)) if path.is_file())


@cache
def characters(path: Path) -> frozenset[int]:
    """The code points that the font in `path` has a glyph for. Raises FontError where the file is no font."""
    from fontTools.ttLib import TTFont, TTLibError

    try:
        with TTFont(path, lazy=True) as font:
            return frozenset(font.getBestCmap() or ())
    except (TTLibError, OSError) as error:
        raise FontError(
            _("{path}: this font cannot be read ({error}). Remove it or install it again.").format(path=path, error=error)
        ) from None


def _check_script(symbol: str) -> None:
    """Raises FontError for what must not be set one by one, as here: it would spell another name, or show an empty box."""
    from fontTools.unicodedata import script

    number, name = ord(symbol), unicodedata.name(symbol, "no name")
    shown = f"U+{number:04X} ({name})"
    if unicodedata.category(symbol) in ("Mn", "Mc", "Me"):
        why = _("The mark {symbol} has to be placed on the letter before it, which this program cannot do in a PNG or PDF.")
    elif unicodedata.category(symbol) == "Cf" or _PARTS.match(symbol):
        why = _("The character {symbol} only works together with its neighbours, which this program cannot do in a PNG or PDF.")
    elif script(symbol) not in _ONE_BY_ONE:
        why = _("The character {symbol} belongs to a script that this program cannot set in a PNG or PDF.")
    else:
        return
    raise FontError(why.format(symbol=shown) + " " + _("Use the SVG, which the browser sets right."))
