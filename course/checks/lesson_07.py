"""Lesson 7: a mended listing, a test that shows a race, and a checker of waits, each tried on what its learner has not seen."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from course.checks.ordering import differs, lists, shared, told, unordered
from course.contract import LEARNERS_ERRORS
from course.recorded import Step, recorded
from course.storyboard import storyboard
from course.two_runs import two_runs
from offload_lab.races import RACES, Race, reveal
from offload_lab.revealer import Bench, Program
from quizzes.answers import shell
from quizzes.say import N_, _

_PARTITIONS = (1, 3, 1, 2, 1, 1)
"""Of each race: as many as show it, for the picture."""


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
        print(_why(program) or _(race.hint))
        _show(_("Yours"), {_("yours"): program}, found.held_back, race)
        return False
    if lacks := _why(program):
        print(_("Not yet. What is late shows no fault, and still there is a race. {lacks}").format(lacks=lacks))
        return False
    print(_("Right: whatever is late, the same numbers as one thing after the other ({runs} runs).").format(runs=2 * 2**4))
    _cost(program, race)
    return True


def show_race(race: Race, mended: bool = False) -> Any:
    """The picture of a listing as it is, with what makes it fail held back; with `mended` its fix below it."""
    programs = {_("as listed"): race.broken} | ({_("mended"): race.fixed} if mended else {})
    return storyboard(
        _(race.name).capitalize(),
        programs,
        reveal(race.broken, race).held_back,
        partitions=_PARTITIONS[RACES.index(race)],
        gradients_here=race.gradients_here,
    )


def _show(title: str, programs: dict[str, Program], late: tuple[str, ...], race: Race) -> None:
    if shell() is None:
        return
    from IPython.display import display

    few = _PARTITIONS[RACES.index(race)]
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


# --- a test that shows a race -----------------------------------------------------------------------------------------


def _all_fetched_first(bench: Bench) -> None:
    fetching = [bench.fetch(partition) for partition in bench.partitions]
    for partition in bench.partitions:
        bench.read(partition, 0).wait()
        fetching[partition].wait()
        bench.update(partition, 0)
        bench.write(partition, 0).wait()


def _first_wait_only(bench: Bench) -> None:
    fetching = [bench.fetch(partition) for partition in bench.partitions]
    fetching[0].wait()
    for partition in bench.partitions:
        bench.read(partition, 0).wait()
        bench.update(partition, 0)
        bench.write(partition, 0).wait()


def _last_is_forgotten(bench: Bench) -> None:
    for partition in bench.partitions:
        fetching = bench.fetch(partition)
        bench.read(partition, 0).wait()
        if partition + 1 in bench.partitions:
            fetching.wait()
        bench.update(partition, 0)
        bench.write(partition, 0).wait()


def _waited_after(bench: Bench) -> None:
    for partition in bench.partitions:
        fetching = bench.fetch(partition)
        bench.read(partition, 0).wait()
        bench.update(partition, 0)
        fetching.wait()
        bench.write(partition, 0).wait()


def _waited_at_once(bench: Bench) -> None:
    for partition in bench.partitions:
        bench.fetch(partition).wait()
        bench.read(partition, 0).wait()
        bench.update(partition, 0)
        bench.write(partition, 0).wait()


_TRIED: tuple[tuple[str, Program, bool], ...] = (
    (N_("the listing, which does not wait for its copies"), RACES[2].broken, True),
    (N_("the mended listing"), RACES[2].fixed, False),
    (N_("a program that starts all copies first, and waits for each in its turn"), _all_fetched_first, False),
    (N_("a program that waits for the first copy only"), _first_wait_only, True),
    (N_("a program that forgets the wait for the last copy"), _last_is_forgotten, True),
    (N_("a program that waits for each copy after the update"), _waited_after, True),
    (N_("a program that waits for each copy at once"), _waited_at_once, False),
)


def check_finds(finds: Callable[[Program], Any]) -> bool:
    """Judge a learner's test: `finds(program)` says whether `program` goes wrong when its copies are late. Print what is wrong;
    return whether nothing is. What it raises is said, not raised."""
    before = threading.active_count()
    try:
        answers = [finds(program) for _name, program, _faulty in _TRIED]
    except LEARNERS_ERRORS as error:
        print(_("Not yet: it stops with {type}: {error}").format(type=type(error).__name__, error=error))
        return False
    if all(answer is None for answer in answers):
        print(_("Not begun. Make a bench with late copies, run the program on it, and return whether there is a fault."))
        return False
    wrong = [
        (name, faulty, answer)
        for (name, _program, faulty), answer in zip(_TRIED, answers, strict=True)
        if bool(answer) is not faulty
    ]
    if not wrong:
        print(_("Right: it finds the race in {count} programs that have it, and accuses no other.").format(count=4))
        if threading.active_count() > before:
            print(_("It leaves transfers under way, though: call bench.end(False) at the end, or their threads stay."))
        return True
    name, faulty, answer = wrong[0]
    said = _("Not yet: of {name} it says {answer!r}, and that {verdict}.")
    print(said.format(name=_(name), answer=answer, verdict=_("goes wrong") if faulty else _("is right")))
    print(_finds_idea(answers))
    return False


def _finds_idea(answers: Sequence[Any]) -> str:
    found = [bool(answer) for answer in answers]
    if not any(found):
        return _(
            "It never finds anything. Is anything late on your bench? Without held_back each copy ends at once, and a race "
            "that nobody runs into is not seen. The fault is read with bench.fault() after bench.end(False)."
        )
    if all(found):
        return _(
            "It accuses every program. What bench.fault() returns is None where all is right; and a mended program is right on "
            "a bench of your making, gradients_here=False."
        )
    if found == [not faulty for _name, _program, faulty in _TRIED]:
        return _("It says the opposite each time: bench.fault() is None where nothing is wrong.")
    return _("Look at every partition, and after bench.end(False): bench.fault() does both.")


# --- a checker of waits -----------------------------------------------------------------------------------------------


def check_missing_waits(missing_waits: Callable[[Sequence[Step]], Any]) -> bool:
    """Judge a learner's checker on cases by hand, on the six listings, and on some drawn anew. Print what is wrong; return
    whether nothing is. What it raises is said, not raised."""
    every = lists(seed=random.randrange(10**6))
    try:
        given = [missing_waits(list(steps)) for steps in every]
    except LEARNERS_ERRORS as error:
        print(_("Not yet: it stops with {type}: {error}").format(type=type(error).__name__, error=error))
        return False
    if all(pairs is None for pairs in given):
        print(_("Not begun. Return a list of pairs (earlier, later), empty where no wait is missing."))
        return False
    for steps, pairs in zip(every, given, strict=True):
        if wrong := differs(pairs, steps):
            print(_("Not yet. Of these steps:\n\n{steps}\n\n{wrong}").format(steps=told(steps), wrong=wrong))
            return False
    said = _("Right, for {count} lists of steps: some by hand, the listings and their fixes, and some drawn at random.")
    print(said.format(count=len(every)))
    return True
