"""A seventh listing for lesson 7, whose race the revealer does not show: a read that was guessed wrong, and left alone."""

from __future__ import annotations

from course.picking import Option, Pick, lines
from offload_lab.revealer import Bench
from quizzes.say import N_, _

ORDER = (0, 2, 1, 3, 4)
"""In which a step comes to its partitions, for once. What reads ahead expects them by number."""

_QUESTION = N_("Before which line is a wait missing?")
_OTHERWISE = N_("Follow `reading` from one turn to the next: whose transfer does it hold, and what happens to that one?")
_EARLIER = N_("So it is: a wait here, in every turn, orders what comes after. It is needed only where the guess was wrong.")
_REPLIES = {
    "buffer = turn": (True, _EARLIER),
    "if partition != guess": (True, _EARLIER),
    "reading = bench.read(partition": (True, N_("The wrong read still fills this buffer, and now its name is gone as well.")),
    "        reading.wait()": (False, N_("It waits for the right partition. But is that the only read into this buffer?")),
    "bench.update(": (False, N_("The read that was wanted is over by then. Another one may come in after it.")),
    "reading = bench.read(guess": (
        False,
        N_("The other buffer is free: its write was waited for. What if the guess is wrong?"),
    ),
}


def reads_ahead(bench: Bench) -> None:
    guess, reading = 0, bench.read(0, buffer=0)
    for turn, partition in enumerate(ORDER):
        buffer = turn % 2
        if partition != guess:
            reading = bench.read(partition, buffer)
        reading.wait()
        guess = (partition + 1) % len(ORDER)
        reading = bench.read(guess, 1 - buffer)
        bench.update(partition, buffer)
        bench.write(partition, buffer).wait()
    reading.wait()


def waits_for_the_wrong_guess(bench: Bench) -> None:
    guess, reading = 0, bench.read(0, buffer=0)
    for turn, partition in enumerate(ORDER):
        buffer = turn % 2
        if partition != guess:
            reading.wait()
            reading = bench.read(partition, buffer)
        reading.wait()
        guess = (partition + 1) % len(ORDER)
        reading = bench.read(guess, 1 - buffer)
        bench.update(partition, buffer)
        bench.write(partition, buffer).wait()
    reading.wait()


def ask(called: str) -> Pick:
    """The question about it; `called` is the variable that holds it."""
    replies = {part: Option("", _(reply), right) for part, (right, reply) in _REPLIES.items()}
    return Pick("07-abandoned", _(_QUESTION), lines(reads_ahead, replies, _(_OTHERWISE)), called)
