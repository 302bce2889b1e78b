"""The six listings of lesson 7, as a learner meets them: a question about each, and afterwards what was wrong with it."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from course.picking import Option, Pick, lines
from course.storyboard import Storyboard, storyboard
from offload_lab.races import RACES, reveal, source
from quizzes.say import N_, _

FEW = (1, 3, 1, 2, 1, 1)
"""Of each listing: as many partitions as show its race in a picture."""
_WIDTH = 96
_QUESTION = N_("Which line goes ahead before something that it needs is over?")
_OTHERWISE = N_("Ask of this line: what does it touch, and who may still be at that?")


class _Told(NamedTuple):
    """`replies`: by a part of one line, whether it is right and what is said to who picks it."""

    title: str
    why: str
    replies: Mapping[str, tuple[bool, str]]


_TOLD = (
    _Told(
        N_("A missing wait"),
        N_("`read` only starts the transfer. The update works on a buffer of which half is still to come."),
        {
            "bench.read(": (True, N_("Here the wait is missing; the next line is the one that goes ahead too early.")),
            "bench.update(": (True, N_("Nobody waited for the read, so half of the buffer may still be to come.")),
            "bench.write(": (False, N_("It comes after update(), which works until it is done. And it is waited for.")),
        },
    ),
    _Told(
        N_("A buffer used too early"),
        N_(
            "All writes are waited for, but at the end. Until then a buffer is read into again while it is still being "
            "written, and the rest of one partition goes to disk as another's."
        ),
        {
            "bench.read(": (True, N_("It is read into the buffer of two turns ago, whose write may still be under way.")),
            "bench.update(": (False, N_("Its read is waited for, in the line above.")),
            "writing.append(": (False, N_("It starts in time. Who uses its buffer next, and when?")),
            "pending.wait()": (False, N_("A good wait, and too late. Which line should it have held back?")),
        },
    ),
    _Told(
        N_("A copy taken for granted"),
        N_(
            "A copy from an accelerator that does not block is over when it says so, not when something else is. The update "
            "adds whatever is in the gradient's memory by then."
        ),
        {
            "bench.fetch(": (True, N_("What it returns is thrown away, so nobody can wait for the copy before the update.")),
            "bench.update(": (True, N_("It adds a gradient whose copy nobody has waited for.")),
            "bench.read(": (False, N_("It is waited for. That says nothing of the copy.")),
        },
    ),
    _Told(
        N_("A wait for the wrong one"),
        N_(
            "The read ahead has taken the name of the read before it. Reads that were started one after the other need not "
            "end in that order, so the later one says nothing of the earlier one."
        ),
        {
            "reading = bench.read(partition": (True, N_("The read before loses its name here, and nobody can wait for it.")),
            "reading.wait()": (True, N_("There is a wait, but it is for the read of the next partition.")),
            "bench.update(": (True, N_("Its own read is not what was waited for.")),
            "reading = bench.read(0": (False, N_("A good start. What becomes of its name?")),
            "bench.write(": (False, N_("It is waited for, and update() is over before it begins.")),
        },
    ),
    _Told(
        N_("Published before it is written"),
        N_(
            "The last write is not waited for. In the running program nothing is wrong: it shows after a crash, when what was "
            "published is read back."
        ),
        {
            "bench.publish()": (True, N_("One write, the last, may still be under way.")),
            "writing.wait()": (False, N_("It frees the buffer for the next turn. And after the last one?")),
            "writing = bench.write(": (False, N_("It starts in time. The next turn waits for it; and after the last?")),
            "bench.read(": (False, N_("The write before it was waited for, so the buffer is free.")),
        },
    ),
    _Told(
        N_("A gradient zeroed under its update"),
        N_("The update goes on while its gradient is overwritten with zeros. The rest of the partition is not updated."),
        {
            "bench.zero_gradient(": (True, N_("Until the update is over, it reads the gradient.")),
            "bench.update_later(": (False, N_("Its read is waited for. It starts in time.")),
            "updating.wait()": (False, N_("In time for the write. Who else should have come after it?")),
            "bench.write(": (False, N_("By then the update is over.")),
        },
    ),
)  # fmt: skip


def ask(number: int, called: str) -> Pick:
    """The question about listing `number`, 1 to 6; `called` is the variable that holds it. Raises ValueError for another."""
    told, program = _TOLD[_at(number)], RACES[_at(number)].broken
    replies = {part: Option("", _(reply), right) for part, (right, reply) in told.replies.items()}
    return Pick(f"07-listing-{number}", _(_QUESTION), lines(program, replies, _(_OTHERWISE)), called)


def revealed(number: int, pick: Pick) -> Storyboard:
    """Print what the revealer finds in listing `number`, beside what was picked, and the fix; return both as a picture."""
    told, race = _TOLD[_at(number)], RACES[_at(number)]
    found = reveal(race.broken, race)
    if pick.choice is None:
        print(_("You picked no line."))
    else:
        said = (
            _("You picked line {line}, and that is it.") if pick.right else _("You picked line {line}. That one is all right.")
        )
        print(said.format(line=pick.choice))
    for paragraph in (f"{_(told.title)}. {_(told.why)}", str(found), _("The fix:")):
        print("\n" + textwrap.fill(paragraph, _WIDTH))
    print()
    print("\n".join(difference(source(race.broken), source(race.fixed))))
    programs = {_("as listed"): race.broken, _("mended"): race.fixed}
    here = race.gradients_here
    return storyboard(_(told.title), programs, found.held_back, partitions=FEW[_at(number)], gradients_here=here)


def score(picks: Sequence[Pick]) -> str:
    """How many of `picks` were made, and how many are right."""
    made = sum(pick.choice is not None for pick in picks)
    if not made:
        return _("You picked no line in any of the {all} listings. Go back whenever you like: picks are kept.").format(
            all=len(picks)
        )
    said = _("The right line in {right} of {all} listings. Not picked: {left}.")
    return said.format(right=sum(pick.right for pick in picks), all=len(picks), left=len(picks) - made)


def difference(before: str, after: str) -> list[str]:
    """The lines of a listing and of its fix: "-" is gone, "+" is new. The name of the function, which differs, is left out."""
    one, other = (text.rstrip().splitlines()[1:] for text in (before, after))
    return [line.rstrip() for line in difflib.ndiff(one, other) if not line.startswith("?")]


def _at(number: int) -> int:
    if number not in range(1, len(RACES) + 1):
        raise ValueError(_("there are listings 1 to {count}, and none {number!r}").format(count=len(RACES), number=number))
    return number - 1
