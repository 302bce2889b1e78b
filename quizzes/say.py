"""What is said to a learner, through gettext: English where there is no catalogue. Pure but for reading catalogues.

Catalogues lie in `course/locale/<language>/LC_MESSAGES/offload_lab.mo`. The pseudo-locale "xx" brackets and accents every
string, so that a test sees at once what did not go through `_()`.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

DOMAIN = "offload_lab"
LOCALES = Path(__file__).parent.parent / "course" / "locale"
PSEUDO = "xx"
_language: ContextVar[str] = ContextVar("language", default="en")
_ACCENTS = str.maketrans("aeiouyAEIOUY", "áéíóúýÁÉÍÓÚÝ")
_KEPT = re.compile(r"(\{[^{}]*\})")  # places for values stay as they are


def _(text: str) -> str:
    """`text` in the language of this context; itself where no catalogue has it."""
    language = _language.get()
    return pseudo(text) if language == PSEUDO else _catalogue(language).gettext(text)


def pseudo(text: str) -> str:
    """`text` as the pseudo-locale writes it."""
    parts = _KEPT.split(text)
    return "⟦" + "".join(part if part.startswith("{") else part.translate(_ACCENTS) for part in parts) + "⟧"


def spoken() -> str:
    """The language of this context."""
    return _language.get()


@contextmanager
def language(name: str) -> Iterator[None]:
    """Speak `name` ("en", "fr", "ko", "fr-CA", "xx") within a `with` block, in this thread or task only."""
    token = _language.set(name)
    try:
        yield
    finally:
        _language.reset(token)


@lru_cache(maxsize=32)
def _catalogue(name: str) -> gettext.NullTranslations:
    # Only a language tag is looked for: a locale may come from a request, and becomes part of a path.
    tag = re.fullmatch(r"([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{2,8})*", name)
    if tag is None:
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALES, [name.replace("-", "_"), tag[1].lower()], fallback=True)
