"""Which steps of a list nothing orders, worked out the slow way, and lists to try a learner's checker on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

from course.contract import LEARNERS_ERRORS
from course.recorded import Step, recorded
from offload_lab.races import RACES
from quizzes.say import _


def unordered(steps: Sequence[Step]) -> set[tuple[int, int]]:
    """Pairs (earlier, later) that use one place, one of them to write, and of which the later does not begin after the end of
    the earlier. By multiplying out "after", one round for each step: slow, plain, and made to be compared with."""
    count = len(steps)
    after = [[other in step.after for other in range(count)] for step in steps]
    for through in range(count):
        for later in range(count):
            if after[later][through]:
                after[later] = [mine or its for mine, its in zip(after[later], after[through], strict=True)]
    pairs = itertools.combinations(range(count), 2)
    return {(one, other) for one, other in pairs if shared(steps[one], steps[other]) and not after[other][one]}


def shared(one: Step, other: Step) -> frozenset[str]:
    return one.writes & (other.reads | other.writes) | one.reads & other.writes


def step(name: str, reads: str = "", writes: str = "", after: Iterable[int] = ()) -> Step:
    """A step by hand: `reads` and `writes` name places, with blanks between them."""
    return Step(name, frozenset(reads.split()), frozenset(writes.split()), tuple(after))


def _drawn(seed: int) -> list[Step]:
    """Steps as nobody would write them, so that nobody has looked at them."""
    draw = random.Random(seed)
    places = ["buffer-0", "buffer-1", "disk-0", "disk-1"]
    steps: list[Step] = []
    for number in range(draw.randint(2, 9)):
        reads, writes = (frozenset(draw.sample(places, draw.randint(0, 2))) for _side in range(2))
        after = tuple(sorted(draw.sample(range(number), min(number, draw.randint(0, 2)))))
        steps.append(Step(f"step {number}", reads, writes, after))
    return steps


_BY_HAND: tuple[list[Step], ...] = (
    [step("read", "disk-0", "buffer-0"), step("update", "buffer-0", "buffer-0")],
    [step("write", "buffer-0", "disk-0"), step("read", "disk-1", "buffer-0")],
    [step("fetch", "", "gradient-0"), step("zero", "", "gradient-0")],
    [step("update", "gradient-0 buffer-0", "buffer-0"), step("norm", "gradient-0", "")],
    [step("read", "disk-0", "buffer-0"), step("update", "buffer-0", "buffer-0", [0]), step("write", "buffer-0", "disk-0", [1])],
    [step("read", "disk-0", "buffer-0"), step("read", "disk-1", "buffer-1"), step("update", "buffer-0", "buffer-0", [1])],
    [step("read", "disk-0", "buffer-0"), step("read", "disk-1", "buffer-1"), step("read", "disk-2", "buffer-2")],
    [],
)


def lists(seed: int, drawn: int = 60) -> list[list[Step]]:
    """Steps by hand, those of the six listings and their fixes, and as many as asked for that are drawn with `seed`."""
    listed = [list(recorded(program).steps) for race in RACES for program in (race.broken, race.fixed)]
    return [*_BY_HAND, *listed, *(_drawn(seed + number) for number in range(drawn))]


def told(steps: Sequence[Step]) -> str:
    lines = []
    for number, each in enumerate(steps):
        reads, writes = (", ".join(sorted(places)) or "-" for places in (each.reads, each.writes))
        lines.append(f"{number}  {each.name}: reads {reads}; writes {writes}; after {each.after or 'nothing'}")
    return "\n".join(lines) or _("(none)")


def pairs_of(given: Any) -> set[tuple[int, int]] | None:
    """A learner's answer as a set of pairs; None where it is no such thing."""
    try:
        pairs = [tuple(pair) for pair in given]
    except LEARNERS_ERRORS:
        return None
    numbers = all(len(pair) == 2 and all(type(number) is int for number in pair) for pair in pairs)
    return {(pair[0], pair[1]) for pair in pairs} if numbers else None


def differs(given: Any, steps: Sequence[Step]) -> str:
    """What is wrong with a learner's pairs; empty where nothing is."""
    expected, pairs = unordered(steps), pairs_of(given)
    if pairs is None:
        return _("A list of pairs of numbers is wanted: (earlier, later).")
    if pairs == expected:
        return ""
    if pairs == {(other, one) for one, other in expected}:
        return _("These are the right pairs the other way round. The earlier step comes first: (earlier, later).")
    for one, other in sorted(expected - pairs):
        said = _("({one}, {other}) is missing. {idea}")
        return said.format(one=one, other=other, idea=_missed(steps, one, other))
    one, other = min(pairs - expected)
    return _("({one}, {other}) is no missing wait. {idea}").format(one=one, other=other, idea=_accused(steps, one, other))


def _missed(steps: Sequence[Step], one: int, other: int) -> str:
    earlier, later = steps[one], steps[other]
    if earlier.writes & later.reads:
        if later.after:
            return _(
                "The later step waits, but not for this one: neither by its own `after`, nor by that of those it waits for."
            )
        return _("The later step reads what the earlier one writes, and does not wait for it.")
    if earlier.writes & later.writes:
        return _("Both write one place: which of them comes last decides what is there.")
    return _(
        "The earlier step only reads, and still it races: the later one overwrites what it may not have read yet. A buffer is "
        "free when its write has ended."
    )


def _accused(steps: Sequence[Step], one: int, other: int) -> str:
    if not (0 <= one < other < len(steps)):
        return _("A pair is (earlier, later), two numbers of this list.")
    if other - one > 1 and shared(steps[one], steps[other]) and one not in steps[other].after:
        return _("The later step waits for one that waited for it in its turn: waits carry on, through any number of steps.")
    if one in steps[other].after:
        return _("It is there: {one} is in the `after` of {other}.").format(one=one, other=other)
    if steps[one].reads & steps[other].reads:
        return _("Both only read the place that they share. Readers do not disturb each other.")
    return _("The two share no place, so their order does not matter.")
