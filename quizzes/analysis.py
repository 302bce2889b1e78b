"""Item analysis for the instructor: how hard a question was, whether it tells learners apart, what it drew. Pure.

A row is one learner's answer to one question. Nothing here reads a gradebook; `rows` takes what one exports.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quizzes.say import _

FEW = 10  # learners; with fewer, one of them moves a facility by more than 0.1


@dataclass(frozen=True)
class Row:
    """`share` of the points in [0, 1]; `picked` are choice ids, or one typed text."""

    learner: str
    question: str
    share: float
    picked: tuple[str, ...] = ()
    misconceptions: tuple[str, ...] = ()
    language: str = ""
    variant: str = ""


@dataclass(frozen=True)
class Gap:
    """Shares of wholly right answers in two languages, and how many answered. `p` is what `language_gap` gives; `flagged`
    after Holm's correction; `too_few` where not even all right against all wrong could be flagged."""

    first: str
    second: str
    facilities: tuple[float, float]
    p: float
    flagged: bool
    learners: tuple[int, int] = (0, 0)
    too_few: bool = False


@dataclass(frozen=True)
class Item:
    """`facility` is the mean share; `discrimination` its correlation with the rest, None where one has no spread."""

    question: str
    learners: int
    facility: float
    discrimination: float | None
    drew: dict[str, int]
    misconceptions: dict[str, int]
    by_language: dict[str, dict[str, int]]
    gaps: tuple[Gap, ...]
    by_variant: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Learners and facility of each variant that was drawn."""

    @property
    def too_few(self) -> bool:
        """Whether facility and discrimination say next to nothing: under FEW learners."""
        return self.learners < FEW


def rows(records: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows from JSON objects or a CSV's (csv.DictReader): learner, question, share, and picked, misconceptions,
    language, variant.

    Lists may be text divided by ";". Raises ValueError naming the row where a share is no number in [0, 1], or where a
    learner answers one question twice.
    """
    found: list[Row] = []
    seen: set[tuple[str, str]] = set()
    for number, record in enumerate(records, start=1):
        try:
            share = float(record["share"])
            row = Row(
                str(record["learner"]),
                str(record["question"]),
                share,
                _list(record.get("picked")),
                _list(record.get("misconceptions")),
                str(record.get("language") or ""),
                str(record.get("variant") or ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                _("row {number}: {error}; learner, question and share (a number) are needed").format(number=number, error=error)
            ) from None
        if not 0 <= share <= 1:
            raise ValueError(_("row {number}: share is {share}; it is a number from 0 to 1").format(number=number, share=share))
        if (row.learner, row.question) in seen:
            raise ValueError(
                _("row {number}: {learner} has answered {question} before").format(
                    number=number, learner=row.learner, question=row.question
                )
            )
        seen.add((row.learner, row.question))
        found.append(row)
    return found


def _list(value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, (list, tuple)) else str(value or "").split(";")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def analyse(answers: Sequence[Row], alpha: float = 0.01) -> list[Item]:
    """One item a question, in the order in which they first come.

    Gaps between languages are tested by Fisher's exact test; `alpha` bounds the chance of a single false flag over all pairs of
    languages of all questions together (Holm).
    """
    totals: dict[str, float] = defaultdict(float)
    by_question: dict[str, list[Row]] = defaultdict(list)
    for row in answers:
        totals[row.learner] += row.share
        by_question[row.question].append(row)
    items = []
    for question, own in by_question.items():
        shares = [row.share for row in own]
        # Corrected: without the item itself, which would correlate with itself.
        rest = [totals[row.learner] - row.share for row in own]
        variants: dict[str, list[float]] = defaultdict(list)
        languages: dict[str, Counter[str]] = defaultdict(Counter)
        for row in own:
            languages[row.language].update(row.misconceptions)
            if row.variant:
                variants[row.variant].append(row.share)
        items.append(
            Item(
                question,
                len(own),
                math.fsum(shares) / len(shares),
                correlation(shares, rest),
                dict(Counter(choice for row in own for choice in row.picked)),
                dict(Counter(idea for row in own for idea in row.misconceptions)),
                {name: dict(count) for name, count in sorted(languages.items())},
                _gaps(own),
                {name: (len(own), math.fsum(own) / len(own)) for name, own in sorted(variants.items())},
            )
        )
    return _corrected(items, alpha)


def _corrected(items: list[Item], alpha: float) -> list[Item]:
    """Flag gaps by Holm's step-down: the k-th smallest p of m (from 0) is held against alpha / (m - k), up to the first that
    fails."""
    every = sorted((gap.p, place, n) for place, item in enumerate(items) for n, gap in enumerate(item.gaps))
    flagged = set()
    for k, (p, place, n) in enumerate(every):
        if p >= alpha / (len(every) - k):
            break
        flagged.add((place, n))
    return [
        replace(
            item,
            gaps=tuple(
                replace(gap, flagged=(place, n) in flagged, too_few=smallest_p(*gap.learners) >= alpha / len(every))
                for n, gap in enumerate(item.gaps)
            ),
        )
        for place, item in enumerate(items)
    ]


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's; with shares of 0 and 1 in `first` it is the point-biserial. None under two values or without spread."""
    if len(first) < 2 or max(first) == min(first) or max(second) - min(second) < 1e-12:
        return None
    a, b = math.fsum(first) / len(first), math.fsum(second) / len(second)
    both = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    spread = math.fsum((x - a) ** 2 for x in first) * math.fsum((y - b) ** 2 for y in second)
    return max(-1.0, min(1.0, both / math.sqrt(spread)))


def language_gap(right: int, of: int, other_right: int, other_of: int) -> float:
    """Fisher's exact test, two-sided: the chance of a table as unlikely as this one or less, were both languages alike.

    Exact, so it also holds for a class of ten. A gap can be the class's as well as the translation's: it says where to look.
    """
    total, hits = of + other_of, right + other_right
    low, high = max(0, hits - other_of), min(of, hits)
    weight = {k: math.comb(of, k) * math.comb(other_of, hits - k) for k in range(low, high + 1)}
    return sum(one for one in weight.values() if one <= weight[right]) / math.comb(total, hits)


def smallest_p(of: int, other_of: int) -> float:
    """The smallest p that two groups of these sizes can give: everybody right in one, nobody in the other."""
    return min(language_gap(of, of, 0, other_of), language_gap(0, of, other_of, other_of))


def _gaps(own: Sequence[Row]) -> tuple[Gap, ...]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in own:
        if row.language:
            groups[row.language].append(row)
    names = sorted(groups)
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
    gaps = []
    for one, other in pairs:
        counts = [(sum(row.share == 1 for row in groups[name]), len(groups[name])) for name in (one, other)]
        p = language_gap(*counts[0], *counts[1])
        shares = (counts[0][0] / counts[0][1], counts[1][0] / counts[1][1])
        gaps.append(Gap(one, other, shares, p, False, (counts[0][1], counts[1][1])))
    return tuple(gaps)
