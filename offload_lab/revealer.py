"""Makes a race show every time: each transfer that a program starts ends as late as the program allows it to.

A race passes a hundred tests because transfers usually end soon. Here one that is *held back* does its first half at once,
and its second half in a thread of its own when somebody waits for it, or when the program is over: the delay is not a time,
so it is long enough on every machine. What a transfer has not brought yet is not what was there before but poison, NaN. A
program is run once for every choice of which kinds of transfer are held back.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

KINDS = ("read", "write", "fetch", "update")
ELEMENTS = 64

What = tuple[str, int, int | None]
"""Kind, partition, buffer."""
Watch = Callable[[str, int, int | None, int, int], None]
"""Told the kind, the partition (-1: none), the buffer (None: none), which half is over (0: all of it), and the number of the
transfer, counted from 0 in the order in which they were started (-1: none)."""


class Pending:
    """A transfer under way."""

    def __init__(self, first: Callable[[], None], second: Callable[[], None], held_back: bool) -> None:
        self._allowed = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(second,), daemon=True)
        first()
        self._thread.start()
        if not held_back:
            self.wait()

    def _run(self, second: Callable[[], None]) -> None:
        self._allowed.wait()
        second()

    def wait(self) -> None:
        """Return when the transfer has ended."""
        self._allowed.set()
        self._thread.join()


class Bench:
    """What a program of `races.py` works with: state of some partitions on a disk, two buffers, gradients, one step to do.

    `read`, `write`, `fetch` and `update_later` only start something, and return what can be waited for. After the step the
    state of partition p on disk has to be what it was plus its gradient, and so has what was published, where it was.

    `watch` is called right after each half of a transfer, and after each call that works at once: never twice at a time, for
    whoever lets a second half go waits for its end.
    """

    def __init__(
        self,
        held_back: Collection[str] = (),
        *,
        gradients_here: bool = True,
        partitions: int = 5,
        watch: Watch | None = None,
    ) -> None:
        self.partitions = range(partitions)
        self._watch = watch
        self.held_back = held_back
        self.disk = [np.arange(ELEMENTS, dtype=np.float64) + 1000 * p for p in self.partitions]
        self.buffers = [np.full(ELEMENTS, np.nan) for _ in range(2)]
        self._on_device = [np.full(ELEMENTS, p + 1.0) for p in self.partitions]
        self.gradients = [g.copy() if gradients_here else np.full(ELEMENTS, np.nan) for g in self._on_device]
        self.published: list[np.ndarray] | None = None
        self.called: set[str] = set()
        self._expected = [state + gradient for state, gradient in zip(self.disk, self._on_device, strict=True)]
        self._started: list[Pending] = []

    def read(self, partition: int, buffer: int) -> Pending:
        """Start to bring the state of `partition` from disk into `buffer`."""
        return self._transfer(("read", partition, buffer), self.disk[partition], self.buffers[buffer], poison=True)

    def write(self, partition: int, buffer: int) -> Pending:
        """Start to bring what is in `buffer` to disk, as the state of `partition`."""
        return self._transfer(("write", partition, buffer), self.buffers[buffer], self.disk[partition], poison=False)

    def fetch(self, partition: int) -> Pending:
        """Start to bring the gradient of `partition` from the accelerator to `gradients`."""
        return self._transfer(("fetch", partition, None), self._on_device[partition], self.gradients[partition], poison=True)

    def update(self, partition: int, buffer: int) -> None:
        """Add the gradient of `partition` to what is in `buffer`; over when this returns."""
        self.buffers[buffer] += self.gradients[partition]
        self._seen("update", partition, buffer, 0)

    def update_later(self, partition: int, buffer: int) -> Pending:
        """Start what `update` does."""
        state, gradient = self.buffers[buffer], self.gradients[partition]
        halves = (slice(None, ELEMENTS // 2), slice(ELEMENTS // 2, None))
        what = ("update", partition, buffer)
        return self._start(what, *(lambda half=half: _add(state[half], gradient[half]) for half in halves))

    def zero_gradient(self, partition: int) -> None:
        """Make the gradient of `partition` zero; over when this returns."""
        self.called.add("zero_gradient")
        self.gradients[partition].fill(0.0)
        self._seen("zero_gradient", partition, None, 0)

    def publish(self) -> None:
        """Declare what is on disk to be the new state: from here on it is what a crash leaves."""
        self.called.add("publish")
        self.published = [state.copy() for state in self.disk]
        self._seen("publish", -1, None, 0)

    # --- for `reveal` ---------------------------------------------------------------------------------------------

    def _seen(self, kind: str, partition: int, buffer: int | None, half: int, transfer: int = -1) -> None:
        if self._watch is not None:
            self._watch(kind, partition, buffer, half, transfer)

    def _transfer(self, what: What, source: np.ndarray, target: np.ndarray, poison: bool) -> Pending:
        def first() -> None:
            if poison:
                target.fill(np.nan)
            target[: ELEMENTS // 2] = source[: ELEMENTS // 2]

        def second() -> None:
            target[ELEMENTS // 2 :] = source[ELEMENTS // 2 :]

        return self._start(what, first, second)

    def _start(self, what: What, first: Callable[[], None], second: Callable[[], None]) -> Pending:
        one, other = self._half(what, 1, first), self._half(what, 2, second)
        self._started.append(Pending(one, other, what[0] in self.held_back))
        return self._started[-1]

    def _half(self, what: What, number: int, half: Callable[[], None]) -> Callable[[], None]:
        transfer = len(self._started)

        def run() -> None:
            half()
            self._seen(*what, number, transfer)

        return run

    def end(self, backwards: bool) -> None:
        """Let all that is held back end, in the order in which it was started or the other way round."""
        for pending in self._started[::-1] if backwards else self._started:
            pending.wait()

    def fault(self) -> str | None:
        """What is wrong with the state on disk, or with what was published; None where nothing is."""
        for what, states in (("on disk", self.disk), ("published", self.published or [])):
            for partition, (state, expected) in enumerate(zip(states, self._expected, strict=False)):
                wrong = ~(state == expected)  # NaN is not equal to anything
                if wrong.any():
                    at = int(wrong.argmax())
                    return (
                        f"element {at} of partition {partition}, {what}, is {state[at]:g} and should be {expected[at]:g}; "
                        f"{int(wrong.sum())} of {ELEMENTS} elements are wrong"
                    )
        return None


def _add(state: np.ndarray, gradient: np.ndarray) -> None:
    state += gradient


Program = Callable[[Bench], None]


@dataclass(frozen=True)
class Revealed:
    """`fault`: what a race did to the state, None where none was found; `held_back`: the kinds of transfer that were late."""

    fault: str | None
    held_back: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.fault is None:
            return "No race found, whichever transfers are late."
        late = " and ".join(f"each {kind}" for kind in self.held_back) or "nothing"
        return f"With {late} as late as the program allows: {self.fault}."


def reveal(program: Program, *, gradients_here: bool = True, must: Collection[str] = ()) -> Revealed:
    """Run `program` once for every choice of kinds that are late, fewest first, and say where it first goes wrong.

    `gradients_here`: False for a program that has to `fetch` gradients. `must`: "publish" or "zero_gradient", where a program
    that leaves it out does not do its step. What the program raises is raised.
    """
    for count in range(len(KINDS) + 1):
        for held_back in itertools.combinations(KINDS, count):
            for backwards in (False, True):
                bench = Bench(held_back, gradients_here=gradients_here)
                try:
                    program(bench)
                finally:
                    bench.end(backwards)  # also after an error: a thread that nobody lets end would stay
                missing = [name for name in must if name not in bench.called]
                fault = f"it never calls {missing[0]}()" if missing else bench.fault()
                if fault is not None:
                    return Revealed(fault, held_back)
    return Revealed(None)
