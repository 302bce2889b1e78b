"""The display name on a certificate: what may stand there, and what looks like something else. Pure."""

from __future__ import annotations

import re
import unicodedata

from quizzes.certificates import text
from quizzes.say import _

_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2060-\u2064\u206a-\u206f\u2800\u3164"
    "\ufff9-\ufffc\uffa0\U000e0000-\U000e0fff\U0001d173-\U0001d17a]"
)
"""Marks of direction, fillers and tags that change what a name seems to say without being seen. The zero-width joiner and
non-joiner are not among them: Persian and many emoji need them."""

_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC")
"""Scripts that share letter forms: two of them in one word are a look-alike."""


def check(name: str) -> str:
    """`name` itself. Raises ValueError for hidden characters and for any form but NFC."""
    text.check(name)
    found = _UNSEEN.search(name)
    if found:
        raise ValueError(
            _("character {start}, U+{found:04X}, cannot be seen").format(start=found.start() + 1, found=ord(found[0]))
        )
    if unicodedata.normalize("NFC", name) != name:
        raise ValueError(_("it is not in normal form C"))
    return name


def tidy(name: str) -> str:
    """`name` in normal form C with single spaces, checked as by `check`."""
    return check(text.tidy(name))


def lookalikes(name: str) -> list[str]:
    """What in `name` may pass for something else, each in a sentence; empty for an ordinary name.

    Nothing is refused for it: `Zoë`, `김민준` and `Αλέξης Smith` are ordinary names, `Аda` with a Cyrillic А is not.
    """
    remarks = []
    for word in re.findall(r"\w+", name):
        scripts = {script: letter for letter in word for script in _SCRIPTS if unicodedata.name(letter, "").startswith(script)}
        if len(scripts) > 1:
            parts = ", ".join(f"{letter!r} (U+{ord(letter):04X}) is {script.title()}" for script, letter in scripts.items())
            remarks.append(_("The word {word!r} mixes scripts that look alike: {parts}.").format(word=word, parts=parts))
    folded = [letter for letter in name if letter != " " and unicodedata.normalize("NFKC", letter) != letter]
    if folded:
        listed = ", ".join(f"{letter!r} (U+{ord(letter):04X})" for letter in dict.fromkeys(folded))
        remarks.append(_("These characters are variants that look like others: {listed}.").format(listed=listed))
    if re.search(r"[A-Za-z][0-9]|[0-9][A-Za-z]", name):
        remarks.append(_("A digit stands beside a letter, where 0 and O or 1 and l look alike."))
    if max((len(run) for run in re.findall(r"[\u0300-\u036f]+", unicodedata.normalize("NFD", name))), default=0) > 4:
        remarks.append(_("More than four accents stand on one letter."))
    return remarks
