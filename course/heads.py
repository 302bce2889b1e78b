"""What the head of a lesson says: its title, what the learner does, how long it takes, what it builds on. Pure.

Nothing of this is typed a second time: the landing notebook, the glossary and the site read it from the lessons' own cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

RUN_ALL = "{run_all}"
"""In a lesson's head, where the measured time of "Run all" belongs."""
_TITLE = re.compile(r"# (\d+) · (.+)")
_TYPED = re.compile(r"(\brunning\s+all\s+cells\s+takes\s+)([^.;:]+)")
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}
_ONES = {"five": 5}
_HOURS = {"half an hour": 30, "three quarters of an hour": 45, "an hour": 60}
_LONG = rf"{'|'.join(_HOURS)}|[a-z]+(?:-[a-z]+)?\s+minutes|\d+\s+minutes"
_TAKES = re.compile(rf"\b(?:takes|allow)\s+(?:about\s+)?({_LONG})\b", re.I)
_LISTED = re.compile(r"\blessons? (\d+(?:(?:,| and|, and) \d+)*)", re.I)
_END = re.compile(r"(?<=[.!?])\s+")
_DOES = re.compile(r"(?:In this lesson you|You) (?!need\b|may\b|can\b)")


@dataclass(frozen=True)
class Head:
    """`minutes` of a learner, None where the head does not say it in words that are known; `needs` are numbers of lessons that
    its recall names; `gist` says in a sentence what the learner does, "" where no sentence does; `asks` counts predictions."""

    file: str
    number: str
    title: str
    gist: str
    minutes: int | None
    needs: tuple[str, ...]
    asks: int


def head(file: str, cells: Iterable[tuple[str, str]], say: Callable[[str], str] = str) -> Head | None:
    """The head of a lesson whose cells are (kind, source); None for a notebook that does not begin as a lesson does.

    `file` is the notebook's name. `say` translates a paragraph as the build does.
    """
    held = list(cells)
    first = next((source for kind, source in held if kind == "markdown"), "")
    title, *paragraphs = re.split(r"\n\s*\n", placed(first).strip())
    match = _TITLE.fullmatch(title)
    if match is None:
        return None
    told = _TITLE.search(say(title))
    prose = "\n\n".join(source for kind, source in held if kind == "markdown")
    recalled = prose.split("## Predict")[0]
    own = int(match[1])
    numbers = {int(number) for listed in _LISTED.findall(recalled) for number in re.findall(r"\d+", listed)}
    return Head(
        file,
        f"{own:02}",
        (told or match)[2],
        _gist(paragraphs, say),
        _minutes(" ".join(first.split())),
        tuple(f"{n:02}" for n in sorted(numbers) if n < own),
        sum(len(re.findall(r"\bPrediction\(", source)) for kind, source in held if kind == "code"),
    )


def placed(title: str) -> str:
    """A head with a place where its writer typed how long running all cells takes: that is measured. Without, as it was."""
    return _TYPED.sub(lambda found: found[1] + RUN_ALL, title)


def typed(title: str) -> str:
    """What the writer of a head typed there; "" for nothing."""
    found = _TYPED.search(title)
    return found[2].strip() if found else ""


def _minutes(text: str) -> int | None:
    found = _TAKES.search(text)
    if found is None:
        return None
    said = " ".join(found[1].lower().split())
    if said in _HOURS:
        return _HOURS[said]
    word = said.split()[0]
    tens, _, ones = word.partition("-")
    if word.isdigit():
        return int(word)
    known = tens in _TENS and (not ones or ones in _ONES)
    return _TENS[tens] + _ONES.get(ones, 0) if known else None


def _sentences(block: str) -> list[str]:
    text = " ".join(block.split())
    # A small letter begins no sentence ("et al. (2021)" and "e.g. this" do not end one); some scripts have no small letters.
    ends = [found.end() for found in _END.finditer(text) if not text[found.end()].islower() and text[found.end()] != "("]
    return [text[a:b].strip() for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


def _gist(paragraphs: list[str], say: Callable[[str], str]) -> str:
    """The longest sentence that says what "you" do; the longest that speaks of "you" at all where there is none."""
    found: list[tuple[bool, int, str]] = []
    for block in paragraphs:
        sentences, told = _sentences(block), _sentences(say(block))
        for place, sentence in enumerate(sentences):
            if RUN_ALL in sentence or not re.search(r"\byou\b", sentence, re.I):
                continue
            # A translation may cut its sentences otherwise; then nobody knows which one this is.
            same = told[place] if len(told) == len(sentences) else sentence
            found.append((bool(_DOES.match(sentence)), len(sentence), re.sub(r"^In this lesson you ", "You ", same)))
    return max(found)[2] if found else ""
