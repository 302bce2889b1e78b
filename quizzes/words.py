"""Short text as people type it: one form for what looks the same. Pure."""

from __future__ import annotations

import re
import unicodedata

# Hyphens, dashes and minus signs that a keyboard, a phone or a word processor puts for "-". U+30FC is the long-vowel mark of
# Japanese keyboards; between kana it is a letter, so it is a hyphen only beside Latin letters, digits or an end.
_HYPHENS = re.compile("[\u00ad\u058a\u2010-\u2015\u2043\u2212\ufe58\ufe63\uff0d]")
_LONG_VOWEL = re.compile("(?<![\u3040-\u30fa\u30fd-\u30ff])\u30fc(?![\u3040-\u30fa\u30fd-\u30ff])")
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufe00-\ufe0f]")
_QUOTES = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb\u201e"


def plain(text: str) -> str:
    """The form in which two texts are compared: NFKC, no case, no unseen characters, one hyphen, one space, no outer quotes
    and no full stop at the end."""
    found = unicodedata.normalize("NFKC", text)
    found = _LONG_VOWEL.sub("-", _HYPHENS.sub("-", _UNSEEN.sub("", found)))
    # Casefold can take a text out of NFKC (and twice is not once for some letters), so both are repeated.
    found = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", found.casefold()).casefold())
    found = re.sub(r"\s*-\s*", "-", " ".join(found.split()))
    return found.strip(_QUOTES + " ").removesuffix(".").strip(_QUOTES + " ")
