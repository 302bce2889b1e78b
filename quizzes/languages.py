"""Which language is spoken, and its catalogues as gettext reads them. What cannot be read is said once; English stands in."""

from __future__ import annotations

import gettext
import os
import re
import struct
import sys
from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from quizzes.fields import complaint, plural_complaint

LANGUAGES = ("en", "fr", "ko")
PSEUDO = "xx"
DOMAIN = "offload_lab"
LOCALES = Path(__file__).parent.parent / "course" / "locale"
# The questions that count, with their keys: beside them, because what lies in LOCALES goes to learners.
KEYS = Path(__file__).parent / "keys" / "locale"
_TAG = re.compile(r"([A-Za-z]{2,3})(?:[-_]([A-Za-z0-9]{2,8}))*")
_said: set[str] = set()


def locales() -> Path:
    """The folder of the catalogues: OFFLOAD_LAB_LOCALES, with which a translation is tried before it is installed, or ours."""
    return Path(os.environ.get("OFFLOAD_LAB_LOCALES") or LOCALES)


def known() -> tuple[str, ...]:
    """The languages that can be asked for: the three of the course, the pseudo-locale, and any that has a catalogue."""
    try:
        found = {path.name for path in locales().iterdir() if (path / "LC_MESSAGES").is_dir() and _TAG.fullmatch(path.name)}
    except OSError:
        found = set()
    return tuple(sorted({*LANGUAGES, PSEUDO, *found}))


def having(domain: str) -> list[str]:
    """The languages that have a catalogue of `domain`, English aside."""
    found = (path.parts[-3] for path in _folder(domain).glob(f"*/LC_MESSAGES/{domain}.mo"))
    return sorted(name for name in found if _TAG.fullmatch(name) and name not in {"en", PSEUDO})


def negotiate(*names: str | None) -> str:
    """The first language of `names` that is known: "fr_CA.UTF-8" is "fr", "C", "POSIX" and what nobody knows is "en".

    A name may be a list with colons, as LANGUAGE is.
    """
    there = {name.lower().replace("-", "_"): name for name in known()}
    for name in ":".join(name for name in names if name).split(":"):
        tag = re.split(r"[.@]", name.strip(), maxsplit=1)[0].replace("-", "_").lower()
        if tag in {"c", "posix"}:
            return "en"
        if _TAG.fullmatch(tag):
            found = there.get(tag) or there.get(tag.split("_")[0])
            if found:
                return found
    return "en"


def from_environment(environment: Mapping[str, str] = os.environ) -> str:
    """The language that the environment asks for: OFFLOAD_LAB_LANG, else what gettext looks at, in its order."""
    first = environment.get("OFFLOAD_LAB_LANG")
    if first:
        return negotiate(first)
    locale = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "")
    if locale.split(".")[0] in {"", "C", "POSIX"}:  # then gettext takes no notice of LANGUAGE either
        return "en"
    return negotiate(environment.get("LANGUAGE"), locale)


def has(language: str) -> bool:
    """Whether there is a catalogue of what the interface says in `language`."""
    return language in {"en", PSEUDO} or any(_paths(locales(), DOMAIN, language))


def say_once(text: str) -> None:
    """To standard error, the first time that it is said in this process."""
    if text not in _said:
        _said.add(text)
        print(text, file=sys.stderr)


class Catalogue:
    """One domain in one language. A translation that does not fit its source is not used."""

    def __init__(self, found: list[gettext.GNUTranslations]) -> None:
        self._found = found

    @lru_cache(maxsize=4096)  # noqa: B019 - catalogues are kept as long as the process lives
    def one(self, text: str) -> str:
        """The translation of `text`, or itself."""
        for catalogue in self._found:
            said = catalogue._catalog.get(text)  # type: ignore[attr-defined]
            if isinstance(said, str) and said and not complaint(text, said):
                return said
        return text

    @lru_cache(maxsize=4096)  # noqa: B019
    def many(self, one: str, many: str, number: int) -> str:
        """The plural form of `number`, English where there is none that fits."""
        for catalogue in self._found:
            held, rule = catalogue._catalog, catalogue.plural  # type: ignore[attr-defined]
            forms = list(takewhile(bool, (held.get((one, form)) for form in range(10))))
            if forms and not plural_complaint(one, many, forms, rule):
                return forms[rule(number)]
        return one if number == 1 else many

    def texts(self) -> set[str]:
        held = [catalogue._catalog for catalogue in self._found]  # type: ignore[attr-defined]
        keys = (key[0] if isinstance(key, tuple) else key for catalog in held for key, said in catalog.items() if said)
        return {key for key in keys if key}


def catalogue(domain: str, language: str) -> Catalogue:
    """What `domain` says in `language`; an empty one where there is nothing that can be read."""
    return _catalogue(_folder(domain), domain, language)


def _folder(domain: str) -> Path:
    return KEYS if domain == "keys" else locales()


def translated(domain: str, language: str) -> set[str]:
    """The texts of a domain that `language` has; of a plural the first."""
    return catalogue(domain, language).texts()


def forget() -> None:
    """Read catalogues again, and say again what is wrong with them: for whoever edits them while a kernel runs."""
    _catalogue.cache_clear()
    _said.clear()


@lru_cache(maxsize=256)
def _catalogue(folder: Path, domain: str, language: str) -> Catalogue:
    return Catalogue([read for path in _paths(folder, domain, language) if (read := _read(path)) is not None])


def _paths(folder: Path, domain: str, language: str) -> list[Path]:
    # Only a language tag is looked for: a locale may come from a request, and becomes part of a path.
    tag = _TAG.fullmatch(language)
    if tag is None or language == "en":
        return []
    names = dict.fromkeys([language.replace("-", "_"), tag[1].lower()])
    return [path for name in names if (path := folder / name / "LC_MESSAGES" / f"{domain}.mo").is_file()]


def _read(path: Path) -> gettext.GNUTranslations | None:
    try:
        with path.open("rb") as file:
            return gettext.GNUTranslations(file)
    except (OSError, ValueError, LookupError, ArithmeticError, struct.error) as error:
        why = getattr(error, "strerror", None) or error
        say_once(f"{path} cannot be read ({why}): English is shown instead. Make it again with `make words`.")
        return None
