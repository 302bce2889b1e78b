"""Units as people type them. Pure."""

from __future__ import annotations

import re
from fractions import Fraction

from quizzes.say import N_

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_BYTES = {"byte", "bytes", "octet", "octets", "octets.", "바이트"}
_SECONDS = {
    "": Fraction(1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "seconde", "secondes", "초"), Fraction(1)),
    **dict.fromkeys(("ms", "밀리초"), Fraction(1, 1000)),
    **dict.fromkeys(("us", "μs", "µs", "마이크로초"), Fraction(1, 10**6)),
    "ns": Fraction(1, 10**9),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "분"), Fraction(60)),
    **dict.fromkeys(("h", "hr", "hour", "hours", "heure", "heures", "시간"), Fraction(3600)),
    **dict.fromkeys(("d", "day", "days", "j", "jour", "jours", "일"), Fraction(86400)),
}
EXAMPLES = {
    "bytes": N_("12 GB, 12 GiB or 12e9"),
    "seconds": N_("1.5 s, 20 ms or 3 min"),
    "bytes_per_second": "3.5 GB/s",
    "percent": "40 %",
    "count": "1200",
    "dollars": "12.50",
    "ratio": "1.5",
}


def factor(word: str, unit: str) -> Fraction | None:
    """What a number with `word` behind it is multiplied by; None for a word that is no such unit.

    `unit` is that of the question; an answer without a word is in it. Percent answers a ratio (40 % is 0.4).
    """
    if not word:
        return Fraction(1)
    if unit == "seconds":
        return _SECONDS.get(word, _SECONDS.get(word.lower()))
    if unit == "bytes":
        return _bytes(word)
    if unit == "bytes_per_second":
        amount, slash, per = word.partition("/")
        if not slash:
            amount, per = (word[:-2], "s") if word.endswith("ps") else ("", "")
        return _bytes(amount) if amount and per.lower() in {"s", "sec", "second", "seconde", "초"} else None
    if unit == "percent":
        return Fraction(1) if word.lower() in {"%", "percent", "pourcent", "퍼센트"} else None
    if unit == "dollars":
        return Fraction(1) if word.lower() in {"$", "usd", "dollar", "dollars", "달러", "us$"} else None
    if unit == "ratio":
        return {"%": Fraction(1, 100), "x": Fraction(1), "×": Fraction(1)}.get(word.lower())
    counts = {"k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "millions": 10**6, "b": 10**9, "billion": 10**9}
    found = counts.get(word.lower())
    return Fraction(found) if found else None


def _bytes(word: str) -> Fraction | None:
    lowered = word.lower()
    if lowered in _BYTES:
        return Fraction(1)
    match = re.fullmatch(r"([kmgtp]?)(i?)([bo])", lowered)
    # A small b after a prefix is bits to everyone who cares; only a lone "b" is let through.
    if match is None or (match[2] and not match[1]) or (len(word) > 1 and word[-1] == "b"):
        return None
    return Fraction(1024 if match[2] else 1000) ** _POWERS[match[1]]
