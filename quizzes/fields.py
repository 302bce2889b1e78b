"""Whether a translation can stand where its source stood: the same places for values, no markup of its own. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from string import Formatter

_TAG = re.compile(r"</?[a-z!?][^\s>/]*", re.I)
_LINK = re.compile(r"(?:javascript|vbscript|data)\s*:", re.I)
_BRACES = re.compile(r"\{[^{}]*\}")
_MOST = 200  # numbers tried to see which of them a plural form is for


def fields(text: str) -> frozenset[str]:
    """The places for values of a text, each as it is written (`{share:.0%}`); and "{" where a brace has no partner."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return frozenset([*_BRACES.findall(text), "{"])
    found = set()
    for _, name, spec, conversion in parts:
        if name is not None:
            found.add("{" + name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}")
    return frozenset(found)


def complaint(source: str, translation: str) -> str:
    """Why `translation` can't stand for `source`; "" where it can."""
    return _differing(fields(source), fields(translation)) or _markup(source, translation)


def plural_complaint(one: str, many: str, forms: Sequence[str], plural: Callable[[int], int]) -> str:
    """Why the plural forms of a translation can't be used; "" where they can. `plural` says which form a number takes.

    A form has the places of the English plural. One that is for the number 1 alone may have those of the singular, which need
    not name the number; French says its first form for 0 too, and so has to name it.
    """
    try:
        taken = [plural(number) for number in range(_MOST)]
    except (ArithmeticError, ValueError, RecursionError) as error:
        return f"its rule for plural forms cannot be computed ({error})"
    if max(taken) >= len(forms):
        return f"its rule asks for {max(taken) + 1} forms, and it has {len(forms)}"
    for number, form in enumerate(forms):
        alone = [n for n in range(_MOST) if taken[n] == number] == [1]
        said = _differing(fields(many), fields(form))
        if said and alone and fields(form) == fields(one):
            said = ""
        if said or (said := _markup(one + many, form)):
            return f"form {number}: {said}"
    return ""


def _differing(wanted: frozenset[str], found: frozenset[str]) -> str:
    missing, extra = sorted(wanted - found), sorted(found - wanted)
    if "{" in found and "{" not in wanted:
        return "a brace has no partner; write {{ and }} for braces that are shown"
    said = [f"{', '.join(missing)} is missing"] if missing else []
    said += [f"{', '.join(extra)} is not in the English"] if extra else []
    return "; ".join(said)


def _markup(source: str, translation: str) -> str:
    def tags(text: str) -> set[str]:
        return {tag.lower() for tag in _TAG.findall(text)}

    strange = sorted(tags(translation) - tags(source))
    if strange:
        return f"{', '.join(strange)}: markup that the English has not"
    if _LINK.search(translation) and not _LINK.search(source):
        return "a link that runs code"
    return ""
