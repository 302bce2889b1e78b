"""What is said to a learner, through gettext: English where there is no catalogue.

`_("Not noted: {why}.").format(why=…)` for a sentence, `_n("{count} hint", "{count} hints", count).format(count=…)` where a
number changes it, `N_("…")` for a constant that is translated where it is shown. Whole sentences, named fields.
`docs/translating.md` says where the catalogues lie. The pseudo-locale "xx" changes every letter, so that a test sees at once
what did not go through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from quizzes import languages
from quizzes.languages import DOMAIN, PSEUDO

_language: ContextVar[str | None] = ContextVar("language", default=None)
_chosen: list[str] = []  # what this process speaks, where no context says otherwise
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ACCENTS = str.maketrans(_PLAIN, "åƀçðéƒĝĥîĵķļḿñöþǫŕšţûṽŵẋýžÅƁÇÐÉƑĜĤÎĴĶĻḾÑÖÞǪŔŠŢÛṼŴẊÝŽ")
_KEPT = re.compile(r"(\{[^{}]*\})")  # places for values stay as they are


def _(text: str) -> str:
    """`text` in the language of this context; itself where no catalogue has it, or what it has does not fit."""
    return words(DOMAIN, text)


def _n(one: str, many: str, number: int) -> str:
    """The form that the language has for `number`; of English the first for 1 and the second for all others."""
    here = spoken()
    if here == PSEUDO:
        return pseudo(one if number == 1 else many)
    return languages.catalogue(DOMAIN, here).many(one, many, number)


def N_(text: str) -> str:
    """`text` as it is, marked for the catalogue: it is translated by `_` where it is shown."""
    return text


def words(domain: str, text: str) -> str:
    """`text` of a catalogue other than the interface's: "lesson_01" has lesson 1 and its questions."""
    here = spoken()
    if not text or here == "en":
        return text
    return pseudo(text) if here == PSEUDO else languages.catalogue(domain, here).one(text)


def pseudo(text: str) -> str:
    """`text` as the pseudo-locale writes it: no plain letter is left, and it is two fifths longer."""
    if not text:
        return text
    parts = _KEPT.split(text)
    said = "".join(part if part.startswith("{") else part.translate(_ACCENTS) for part in parts)
    return f"⟦{said}{'·' * round(0.4 * len(text))}⟧"


def spoken() -> str:
    """The language that is spoken here: this context's, else this process's, else the environment's."""
    here = _language.get()
    if here is not None:
        return here
    if not _chosen:
        _chosen.append(languages.from_environment())
    return _chosen[-1]


def speak(name: str) -> str:
    """Speak `name` ("fr", "fr_CA.UTF-8") in this process from now on; return the language. Says so where it has no words."""
    _chosen[:] = [languages.negotiate(name)]
    if not languages.has(_chosen[0]):
        languages.say_once(f"There is no catalogue of {_chosen[0]} in {languages.locales()} yet: English is shown instead.")
    return _chosen[0]


@contextmanager
def language(name: str) -> Iterator[None]:
    """Speak `name` ("en", "fr", "ko", "fr-CA", "xx") within a `with` block, in this thread or task only."""
    token = _language.set(languages.negotiate(name))
    try:
        yield
    finally:
        _language.reset(token)
