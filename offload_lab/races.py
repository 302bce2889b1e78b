"""Find the race: six programs that do one step, each with one fault of the kind that passes every test, and its fix.

`print(source(race.broken))` shows one; `reveal(race.broken)` makes its fault show, every time; `reveal(yours)` judges yours.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass

from offload_lab.revealer import Bench, Pending, Program, Revealed
from offload_lab.revealer import reveal as reveal_program


@dataclass(frozen=True)
class Race:
    """`broken` and `fixed` do one step on a `Bench`. `hint` asks, `why` tells."""

    name: str
    broken: Program
    fixed: Program
    hint: str
    why: str
    gradients_here: bool = True


def source(program: Program) -> str:
    """The lines of a program, to be shown to a learner."""
    return textwrap.dedent(inspect.getsource(program))


def reveal(program: Program, race: Race | None = None) -> Revealed:
    """Judge `program`, which does the step of `race`: whether a fault shows, whichever transfers are late."""
    return reveal_program(program, gradients_here=race is None or race.gradients_here)


# --- 1 ----------------------------------------------------------------------------------------------------------------


def update_while_reading(bench: Bench) -> None:
    for partition in bench.partitions:
        bench.read(partition, buffer=0)
        bench.update(partition, buffer=0)
        bench.write(partition, buffer=0).wait()


def update_after_reading(bench: Bench) -> None:
    for partition in bench.partitions:
        bench.read(partition, buffer=0).wait()
        bench.update(partition, buffer=0)
        bench.write(partition, buffer=0).wait()


# --- 2 ----------------------------------------------------------------------------------------------------------------


def buffer_given_away(bench: Bench) -> None:
    writing = []
    for turn, partition in enumerate(bench.partitions):
        buffer = turn % 2
        bench.read(partition, buffer).wait()
        bench.update(partition, buffer)
        writing.append(bench.write(partition, buffer))
    for pending in writing:
        pending.wait()


def buffer_kept_until_written(bench: Bench) -> None:
    writing: dict[int, Pending] = {}
    for turn, partition in enumerate(bench.partitions):
        buffer = turn % 2
        if buffer in writing:
            writing[buffer].wait()
        bench.read(partition, buffer).wait()
        bench.update(partition, buffer)
        writing[buffer] = bench.write(partition, buffer)
    for pending in writing.values():
        pending.wait()


# --- 3 ----------------------------------------------------------------------------------------------------------------


def gradient_half_here(bench: Bench) -> None:
    for partition in bench.partitions:
        bench.fetch(partition)
        bench.read(partition, buffer=0).wait()
        bench.update(partition, buffer=0)
        bench.write(partition, buffer=0).wait()


def gradient_here(bench: Bench) -> None:
    for partition in bench.partitions:
        fetching = bench.fetch(partition)
        bench.read(partition, buffer=0).wait()
        fetching.wait()
        bench.update(partition, buffer=0)
        bench.write(partition, buffer=0).wait()


# --- 4 ----------------------------------------------------------------------------------------------------------------


def waits_for_the_next_one(bench: Bench) -> None:
    reading = bench.read(0, buffer=0)
    for partition in bench.partitions:
        buffer = partition % 2
        if partition + 1 in bench.partitions:
            reading = bench.read(partition + 1, buffer=1 - buffer)
        reading.wait()
        bench.update(partition, buffer)
        bench.write(partition, buffer).wait()


def waits_for_this_one(bench: Bench) -> None:
    reading = bench.read(0, buffer=0)
    for partition in bench.partitions:
        buffer = partition % 2
        this = reading
        if partition + 1 in bench.partitions:
            reading = bench.read(partition + 1, buffer=1 - buffer)
        this.wait()
        bench.update(partition, buffer)
        bench.write(partition, buffer).wait()


# --- 5 ----------------------------------------------------------------------------------------------------------------


def published_too_early(bench: Bench) -> None:
    writing = None
    for partition in bench.partitions:
        if writing is not None:
            writing.wait()
        bench.read(partition, buffer=0).wait()
        bench.update(partition, buffer=0)
        writing = bench.write(partition, buffer=0)
    bench.publish()


def published_when_written(bench: Bench) -> None:
    writing = None
    for partition in bench.partitions:
        if writing is not None:
            writing.wait()
        bench.read(partition, buffer=0).wait()
        bench.update(partition, buffer=0)
        writing = bench.write(partition, buffer=0)
    if writing is not None:
        writing.wait()
    bench.publish()


# --- 6 ----------------------------------------------------------------------------------------------------------------


def gradient_zeroed_too_early(bench: Bench) -> None:
    for partition in bench.partitions:
        bench.read(partition, buffer=0).wait()
        updating = bench.update_later(partition, buffer=0)
        bench.zero_gradient(partition)
        updating.wait()
        bench.write(partition, buffer=0).wait()


def gradient_zeroed_after_the_update(bench: Bench) -> None:
    for partition in bench.partitions:
        bench.read(partition, buffer=0).wait()
        updating = bench.update_later(partition, buffer=0)
        updating.wait()
        bench.zero_gradient(partition)
        bench.write(partition, buffer=0).wait()


RACES = (
    Race(
        "a missing wait",
        update_while_reading,
        update_after_reading,
        "What does `read` return, and who waits for it?",
        "`read` only starts the transfer. The update works on a buffer of which half is still to come.",
    ),
    Race(
        "a buffer used too early",
        buffer_given_away,
        buffer_kept_until_written,
        "Partition 2 is read into the buffer of partition 0. Where is partition 0 by then?",
        "All writes are waited for, but at the end: until then a buffer is read into again while it is still being written, "
        "and the rest of one partition's state goes to disk as another's.",
    ),
    Race(
        "a read of an unfinished copy",
        gradient_half_here,
        gradient_here,
        "The read hides the copy of the gradient. What if the copy takes longer?",
        "A copy from an accelerator that does not block is over when it says so, not when something else is. The update adds "
        "what is in the gradient's memory by then.",
        gradients_here=False,
    ),
    Race(
        "a wait for the wrong one",
        waits_for_the_next_one,
        waits_for_this_one,
        "At `reading.wait()`, the read of which partition is waited for?",
        "The read ahead has taken the name of the read before it. Reads that were started one after the other need not end in "
        "that order, so the later one says nothing of the earlier one.",
    ),
    Race(
        "published before it is written",
        published_too_early,
        published_when_written,
        "How many writes may be under way at `publish()`?",
        "The last write is not waited for. In the running program nothing is wrong: it shows after a crash, when what was "
        "published is read back.",
    ),
    Race(
        "a gradient zeroed under its update",
        gradient_zeroed_too_early,
        gradient_zeroed_after_the_update,
        "Who reads the gradient at `zero_gradient`?",
        "The update goes on while its gradient is overwritten with zeros: the rest of the partition is not updated.",
    ),
)
"""All six, easiest first."""
