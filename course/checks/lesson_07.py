"""Lesson 7: a mended listing, and a checker of waits, each tried on what its learner has not seen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from course.checks.ordering import differs, lists, pairs_of, shared, told, unordered
from course.contract import LEARNERS_ERRORS
from course.pairs import Pairs
from course.recorded import Step, recorded
from course.six_listings import FEW
from course.storyboard import storyboard
from course.two_runs import two_runs
from offload_lab.races import RACES, Race, reveal
from offload_lab.revealer import Bench, Program
from quizzes.answers import shell
from quizzes.say import _

_LONGEST = 300


def check_mended(program: Program, race: Race) -> bool:
    """Judge `program`, a learner's mended listing of `race`: run with each choice of late transfers, against what one thing
    after the other gives. Print what is wrong, with a picture where a notebook shows one; or what it costs. What it raises is
    said, not raised."""
    try:
        did: list[str] = []
        bench = Bench(gradients_here=race.gradients_here, watch=lambda kind, *_more: did.append(kind))
        program(bench)
        bench.end(False)
        if not did:
            print(_("Not begun. Copy the listing into the cell above, and put in what it lacks."))
            return False
        found = reveal(program, race)
    except LEARNERS_ERRORS as error:
        print(_("Not yet: it stops with {type}: {error}").format(type=type(error).__name__, error=error))
        return False
    if found.fault is not None:
        print(_("Not yet. {found}").format(found=found))
        print(_why(program) or _("Start early, wait late, but before the use."))
        _show(_("Yours"), {_("yours"): program}, found.held_back, race)
        return False
    if lacks := _why(program):
        print(_("Not yet. What is late shows no fault, and still there is a race. {lacks}").format(lacks=lacks))
        return False
    print(_("Right: whatever is late, the same numbers as one thing after the other ({runs} runs).").format(runs=2 * 2**4))
    _cost(program, race)
    return True


def _show(title: str, programs: dict[str, Program], late: tuple[str, ...], race: Race) -> None:
    if shell() is None:
        return
    from IPython.display import display

    few = FEW[RACES.index(race)]
    try:
        display(storyboard(title, programs, late, partitions=few, gradients_here=race.gradients_here))
    except LEARNERS_ERRORS as error:  # written for five partitions, say
        print(_("(No picture: with {count} partitions it stops with {error}.)").format(count=few, error=error))


def _why(program: Program) -> str:
    """The first two steps that nothing orders; empty where there are none, or where that cannot be told."""
    try:
        steps = recorded(program).steps
    except LEARNERS_ERRORS:
        return ""
    for one, other in sorted(unordered(steps), key=lambda pair: pair[::-1]):
        place = sorted(shared(steps[one], steps[other]))[0]
        said = _("Nothing makes the {later} wait for the {earlier}, and both use {place}.")
        return said.format(later=steps[other].name, earlier=steps[one].name, place=place)
    return ""


def _cost(program: Program, race: Race) -> None:
    try:
        mine, reference = recorded(program), recorded(race.fixed)
    except LEARNERS_ERRORS:
        print(_("What it costs cannot be told: it looks at the data of the bench."))
        return
    print(_("Simulated: {mine:.0f} ms; the reference takes {reference:.0f} ms.").format(mine=mine.ms, reference=reference.ms))
    if mine.ms <= reference.ms:
        print(_("No wait too many."))
        return
    said = _("So it is right, and {share:.0%} slower than it has to be. Start early, wait late, but before the use.")
    print(said.format(share=mine.ms / reference.ms - 1))
    if shell() is not None:
        from IPython.display import display

        runs = {_("yours"): mine.events, _("reference"): reference.events}
        display(two_runs(_("What waiting costs"), runs))


# --- a checker of waits -----------------------------------------------------------------------------------------------


def check_missing_waits(missing_waits: Callable[[Sequence[Step]], Any]) -> bool:
    """Judge a learner's checker on cases by hand, on the six listings, and on some drawn anew. Print what is wrong, of the
    shortest list that shows it, with a picture where a notebook shows one; return whether nothing is. What it raises is said,
    not raised."""
    every = sorted(lists(seed=random.randrange(10**6)), key=len)
    given = []
    for steps in every:
        try:
            given.append(_held(missing_waits(list(steps))))
        except LEARNERS_ERRORS as error:
            stops = _("Not yet: of these steps it stops with {type}: {error}\n\n{steps}")
            print(stops.format(type=type(error).__name__, error=error, steps=told(steps)))
            return False
    if all(pairs is None for pairs in given):
        print(_("Not begun. Return a list of pairs (earlier, later), empty where no wait is missing."))
        return False
    for steps, pairs in zip(every, given, strict=True):
        if wrong := differs(pairs, steps):
            print(_("Not yet. Of these steps:\n\n{steps}\n").format(steps=told(steps)))
            print(_("expected: {pairs}").format(pairs=_short(sorted(unordered(steps)))))
            print(_("yours:    {pairs}").format(pairs=_short(pairs)))
            print(wrong)
            _show_pairs(steps, pairs_of(pairs))
            return False
    said = _("Right, for {count} lists of steps: some by hand, the listings and their fixes, and some drawn at random.")
    print(said.format(count=len(every)))
    return True


def _held(given: Any) -> Any:
    """A generator can be gone through once, and raises on its way."""
    return list(given) if isinstance(given, Iterator) else given


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _show_pairs(steps: Sequence[Step], pairs: set[tuple[int, int]] | None) -> None:
    if shell() is None or pairs is None:
        return
    from IPython.display import display

    display(Pairs(_("Pairs that nothing orders: expected and yours"), steps, unordered(steps), pairs))
