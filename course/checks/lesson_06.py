"""Lesson 6: which partition to give up, and a schedule on hidden machines that is to beat the reference."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy

from course.contract import LEARNERS_ERRORS, Case, Contract, Idea
from course.keeping import GiveUp, by_step, kept, made_up, reads
from offload_lab.plots import residency, residency_flags
from offload_lab.puzzles import PUZZLES, Checked, Row, check
from offload_lab.schedule import Task
from offload_lab.simulate import Simulation
from offload_lab.work import Schedule, Work
from quizzes.answers import shell
from quizzes.say import N_, _

_UP = list(range(8))
_DOWN = _UP[::-1]


def next_use(partition: int, place: int, order: Sequence[int], following: Sequence[int]) -> float:
    """Turns from `place` until `partition` is used; infinite where it is in neither what is left of `order` nor `following`."""
    if partition in order[place + 1 :]:
        return order.index(partition, place + 1) - place
    return len(order) - place + following.index(partition) if partition in following else float("inf")


def furthest(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    """Belady's choice: what the exercise asks for."""
    return max(held, key=lambda partition: next_use(partition, place, order, following))


def _longest_unused(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return held[0]


def _used_last(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return held[-1]


def _nearest(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return min(held, key=lambda partition: next_use(partition, place, order, following))


def _always_up(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return furthest(held, place, order, order)


def _always_turns(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return furthest(held, place, order, order[::-1])


def _this_step_only(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return furthest(held, place, order, [])


def _place_in_order(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return max(held, key=lambda partition: order.index(partition) if partition in order else len(order))


def _rest_forgotten(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return max(held, key=lambda one: next_use(one, place, order, following) - (one not in order[place:]) * (len(order) - place))


def _one_short(held: list[int], place: int, order: list[int], following: list[int]) -> int:
    return max(held, key=lambda one: next_use(one, place, order, following) - (one not in order[place:]))


class _WithoutBars(Contract):
    """Numbers of partitions are names: bars of them would say nothing."""

    def _rows(self, outcomes: object) -> list[tuple[str, float, float | None, str]]:
        return []


_TURN = N_("This step goes up, the next one down: what was used last is needed first. `following` says so.")
_NEVER = N_("What is in neither the rest of `order` nor `following` is not needed again, and goes before all others.")

give_up = _WithoutBars(
    "give_up",
    [
        Case(([3, 4, 5, 6], 7, _UP, _UP), 6, N_("All four come in the next step: 3 in four turns, 6 in seven. 6 goes.")),
        Case(
            ([5, 6, 7, 0, 1], 2, _UP, _UP),
            1,
            N_("5, 6 and 7 are needed in this step yet. 1 has just been used, and comes last of all."),
        ),
        Case(
            ([7, 0], 3, _UP, _UP),
            0,
            N_("7 comes in four turns, as the last of this step; 0 in five, as the first of the next."),
        ),
        Case(([5, 0, 4], 1, [4, 1, 3, 0, 2, 5], [4, 1, 3, 0, 2, 5]), 4, N_("The order counts, not the partitions' numbers.")),
        Case(([2, 3, 4, 5], 6, _UP, _DOWN), 2, _TURN),
        Case(([5, 4, 3, 2], 6, _DOWN, _UP), 5, N_("This step goes down, the next one up: 2 comes in four turns, 5 in seven.")),
        Case(([1, 2, 0], 3, [0, 1, 2, 3], [0, 3, 2]), 1, _NEVER),
        Case(([2, 3, 0], 1, [0, 1, 2, 3], []), 0, _NEVER),
        Case(([], 0, _UP, _UP), ValueError, N_("Where nothing is held, nothing can be given up: that is a ValueError.")),
    ],
    [
        Idea(
            N_(
                "You give up what has not been used for longest (LRU). On a scan, that is what comes next. Do not look back: "
                "`order` and `following` tell the future."
            ),
            _longest_unused,
        ),
        Idea(
            N_(
                "You give up what was used last. On a scan that is right; where the next step turns around, it is what comes "
                "first. Only the next use counts."
            ),
            _used_last,
        ),
        Idea(N_("You give up what is needed soonest. It is the other end: what is needed furthest away goes."), _nearest),
        Idea(
            N_("You take the next step to be like this one. Where it turns around, it is not: look in `following`."),
            _always_up,
        ),
        Idea(N_("You let every step turn around. Whether the next one does, `following` says."), _always_turns),
        Idea(
            N_("You look no further than this step. What was used in it is used again in the next one: look in `following`."),
            _this_step_only,
        ),
        Idea(
            N_(
                "You compare places in `order`, not turns from now. What stands before `place` has been used already, and "
                "comes in the next step only."
            ),
            _place_in_order,
        ),
        Idea(
            N_(
                "You count the turns of the next step from its own beginning. The rest of this step comes before: add "
                "len(order) − place."
            ),
            _rest_forgotten,
        ),
        Idea(
            N_(
                "You are one short at the turn from one step to the next: its first partition comes one turn after the last of "
                "this step, len(order) − place turns from now."
            ),
            _one_short,
        ),
    ],
)


def check_give_up(function: GiveUp) -> bool:
    """Try `function` on the contract's cases, on orders that are drawn now, and in the simulator, beside LRU and the best.
    Print what is right or wrong, with a map of what it reads where a notebook shows one; return whether all is right."""

    def apart(*arguments: object) -> int:
        return function(*deepcopy(arguments))  # who sorts the lists sorts their own

    right = give_up.check(apart)
    if right and (told := _wrong_on_drawn(function)):
        print(told)
        right = False
    _played(function, right)
    return right


def _wrong_on_drawn(function: GiveUp, count: int = 300) -> str:
    """Any that is needed furthest away is right: of several that are never needed again, each."""
    rng = random.Random()
    for _number in range(count):
        size = rng.randint(2, 9)
        order, following = rng.sample(range(size), size), rng.sample(range(size), rng.randint(0, size))
        place = rng.randrange(size)
        held = rng.sample(others := [one for one in range(size) if one != order[place]], rng.randint(1, len(others)))
        asked = f"give_up({held}, {place}, {order}, {following})"
        try:
            given = function(list(held), place, list(order), list(following))
        except LEARNERS_ERRORS as error:
            return _("Not yet: {asked} stops with {type}: {error}").format(asked=asked, type=type(error).__name__, error=error)
        best = furthest(held, place, order, following)
        if given not in held or next_use(given, place, order, following) < next_use(best, place, order, following):
            return _("Not yet: {asked} should give {best}; yours gives {given}.").format(asked=asked, best=best, given=given)
    return ""


def _played(function: GiveUp, right: bool) -> None:
    """Say what `function` reads in the simulator, where it can be run; and draw that where it is not right."""
    case = made_up()
    try:
        theirs = [reads(case, kept(function, turns))[-1] for turns in (False, True)]
        run = case.run(kept(function))
    except LEARNERS_ERRORS:  # the contract has told it already
        return
    lru = [reads(case, kept(_longest_unused, turns))[-1] for turns in (False, True)]
    best = [reads(case, kept(furthest, turns))[-1] for turns in (False, True)]
    for name, *counts in zip((_("always up"), _("up and down")), theirs, lru, best, strict=True):
        if not right and theirs == best:
            return  # these orders do not show what is wrong
        said = _("{order}: yours reads {theirs} of 8 a step; LRU {lru}, the best {best}, predicted")
        print(said.format(order=name, theirs=counts[0], lru=counts[1], best=counts[2]))
    if not right and shell() is not None:
        from IPython.display import display

        display(residency(residency_flags(by_step(run)), source="predicted", title=_("Always up: what yours reads")))


# --- the puzzle -------------------------------------------------------------------------------------------------------


def check_puzzle(schedule: Schedule, name: str = "keep what you have") -> bool:
    """Score `schedule` beside the reference, on machines that are drawn now; print it, with two maps where a notebook shows
    one. Returns whether it is right and, over all machines, at least as fast. Raises KeyError for an unknown `name`."""
    puzzle = PUZZLES[name]
    made: list[Sequence[Task] | None] = []

    def watched(work: Work) -> Sequence[Task]:
        made.append(schedule(work))
        return made[-1]  # type: ignore[return-value]

    checked = check(watched, puzzle)
    if made and (made[0] is None or (isinstance(made[0], list) and not made[0])):
        print(_("Not begun. {todo}").format(todo=_(puzzle.ask)))
        return False
    print(checked)
    if checked.marks is None:
        return False
    ahead = 100 * (checked.marks.time - checked.reference_marks.time)
    won = checked.as_fast or ahead > 1e-7
    if ahead > 1e-7:
        print(_("You beat the reference, by {points:.2f} points.").format(points=ahead))
    elif won:
        print(_("Level with the reference. Where partitions differ in size, there is more to be had."))
    else:
        print(_slower(checked))
    if shell() is not None:
        from IPython.display import display

        row = _worst(checked)
        for title, run in ((_("yours on {case}"), row.theirs), (_("the reference on {case}"), row.reference)):
            flags = residency_flags(by_step(run))
            display(residency(flags, source="predicted", title=title.format(case=row.case.name)))
    return won


def _worst(checked: Checked) -> Row:
    return max(checked.rows, key=lambda row: row.theirs.makespan / row.reference.makespan)


def _bytes_read(run: Simulation) -> int:
    return sum(event.nbytes for event in run.events if event.name == "read")


def _slower(checked: Checked) -> str:
    """Why a schedule that is right is slower than the reference."""
    row = _worst(checked)
    theirs, reference = _bytes_read(row.theirs), _bytes_read(row.reference)
    everything = row.case.steps * sum(item.read_bytes for item in row.case.work.items)
    if theirs == everything > reference:
        return _(
            "Yours finds nothing in RAM. Either it reads what `work.held` has already, or it goes through the partitions "
            "always the same way and gives up each just before its turn."
        )
    if theirs > reference:
        said = _("On {case}, yours reads {theirs:,} bytes and the reference {reference:,}. Which could have been kept?")
        return said.format(case=row.case.name, theirs=theirs, reference=reference)
    return _(
        "On {case}, yours reads no more than the reference, and takes longer. Something waits: does the first read wait for a "
        "buffer that could be free earlier?"
    ).format(case=row.case.name)
