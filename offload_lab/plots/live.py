"""The live view: training in a thread, and its memory on one plot while it runs."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from offload_lab.meter import Meter, Reading, Sampler
from offload_lab.plots.front_end import FrontEnd, probe
from offload_lab.plots.losses import Losses
from offload_lab.plots.plot import MemoryPlot
from offload_lab.plots.renderers import Display, Renderer, renderer_for
from offload_lab.plots.scale import fullest
from offload_lab.state_bytes import readable
from offload_lab.worker import Worker

Work = Callable[[threading.Event, Callable[[int, float], None]], Any]
GRACE = 120.0
"""Seconds a training may take to end its step once it is asked to stop."""


SHARE = 0.01
"""Of one core's time, what drawing may take: where it takes more, it is drawn less often."""


@dataclass(frozen=True)
class LiveRun:
    """What a run left: readings, losses, how it ended, and what the work returned."""

    name: str
    outcome: str
    """"finished", "stopped", or "stopped after 120 s"."""
    losses: list[float] = field(repr=False)
    """Of each step; of more than 2,000 steps every second, fourth, … one, evenly spaced from the first."""
    readings: list[Reading] = field(repr=False)
    value: Any = field(repr=False, default=None)
    steps: int = 0
    """Steps there were, whether their loss is in `losses` or not."""
    said: str = field(repr=False, default="")

    def __repr__(self) -> str:
        peak = f"; at most {readable(fullest(self.readings).ram)} in RAM" if self.readings else ""
        return f"{self.name} {self.said or self.outcome}{peak}"


class LiveMemory:
    """Shows the memory of a training while it runs.

        view = LiveMemory("AdamW", prediction_bytes=400_000_000)
        view.start(lambda stop, on_step: train(model, optimizer, batches, 30, stop=stop, on_step=on_step, meter=meter), meter)

    and, in the next cell, `run = view.wait(timeout=120)`. The work gets an event to look at between steps, and a function to
    call after each with its number and loss. Its Stop button, `stop()`, and an interrupt of `wait()` end it after the step it
    is in. One run at a time: a start ends the run before it, so that a cell can be run again. What was shown stays as a still
    picture with its text. `prediction_bytes` and `limit_bytes` are drawn as lines.
    """

    def __init__(
        self,
        name: str = "training",
        *,
        prediction_bytes: int | None = None,
        limit_bytes: int | None = None,
        title: str | None = None,
        sample_seconds: float = 0.05,
        front_end: FrontEnd | None = None,
        display: Display | None = None,
    ) -> None:
        self._name, self._title = name, title or f"Memory while {name} trains"
        self._prediction, self._limit = prediction_bytes, limit_bytes
        self._sample_seconds = sample_seconds
        self._front_end, self._display = front_end, display
        self._stop, self._ended = threading.Event(), threading.Event()
        self._reason = "stopped"
        self._losses = Losses()
        self._readings: list[Reading] = []
        self._sampler: Sampler | None = None
        self._renderer: Renderer | None = None
        self._training: Worker | None = None
        self._follower: Worker | None = None
        self._left = False

    def start(self, work: Work, meter: Meter) -> None:
        """Start `work(stop, on_step)` in a thread, and show `meter`. Returns at once; `wait()` has the result.

        Raises RuntimeError if the run before this one does not end when it is told to.
        """
        _make_way_for(self)
        self._stop, self._ended = threading.Event(), threading.Event()
        self._reason, self._left = "stopped", False
        self._losses, self._readings = Losses(), []
        stop, ended, losses = self._stop, self._ended, self._losses
        self._renderer = renderer_for(self._front_end or probe(), stop, self._display)
        self._sampler = Sampler(meter, self._sample_seconds)

        def train() -> Any:
            try:
                return work(stop, lambda step, loss: losses.add(loss))
            finally:
                ended.set()

        self._training = Worker(train, "live training")
        self._follower = Worker(self._follow, "live plot")
        self._renderer.open(self.plot())
        self._sampler.start()
        self._training.start()
        self._follower.start()

    def stop(self) -> None:
        """Ask the training to end after the step it is in. Does not wait for it."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> LiveRun:
        """Wait for the end; return what the run left. After `timeout` seconds it is stopped, which is no error.

        What the training raised is raised here, with its own traceback; so is what the meter raised. An interrupt stops the
        training, leaves the plot, and is raised again. Raises RuntimeError if nothing was started, or if the training does
        not end when it is told to.
        """
        if self._training is None or self._follower is None:
            raise RuntimeError(f"LiveMemory({self._name!r}).wait: nothing was started; call start(work, meter) first")
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            # In short waits: only between them does Python see an interrupt on every system.
            while not self._ended.wait(0.1):
                if deadline is not None and time.monotonic() > deadline:
                    self._ask(f"stopped after {timeout:g} s")
                    break
        except KeyboardInterrupt:
            self._ask("interrupted")
            self._finish()
            raise
        self._finish()
        value = self._training.result()
        self._follower.result()
        losses, outcome = self._losses, self._outcome()
        return LiveRun(self._name, outcome, losses.kept, self.readings, value, len(losses), _described(outcome, losses))

    def run(self, work: Work, meter: Meter, timeout: float | None = None) -> LiveRun:
        """`start` and `wait` in one, where nobody needs to press a button."""
        self.start(work, meter)
        return self.wait(timeout)

    @property
    def running(self) -> bool:
        return self._training is not None and self._training.is_alive()

    @property
    def readings(self) -> list[Reading]:
        """All that was measured so far, thinned evenly when it is much."""
        sampler = self._sampler
        return sampler.readings if sampler is not None else list(self._readings)

    def plot(self) -> MemoryPlot:
        """The plot as it is now."""
        note = _described(self._outcome(), self._losses)
        series = {self._name: self.readings}
        return MemoryPlot(series, self._title, self._limit, self._prediction, {self._name: note})

    def _follow(self) -> None:
        """Redraw until the training ends, always from the latest readings; then leave the still picture."""
        assert self._renderer is not None and self._training is not None and self._sampler is not None
        try:
            pause = self._renderer.interval
            while not self._ended.wait(pause):
                before = time.thread_time()
                self._renderer.draw(self.plot())
                pause = max(self._renderer.interval, (time.thread_time() - before) / SHARE)
        finally:
            self._training.join()
            try:
                self._sampler.stop()
            finally:
                self._readings = self._sampler.readings
                self._sampler = None  # with it go the meter and the model, which a reader of the plot does not need
        self._renderer.close(self.plot())

    def _ask(self, reason: str) -> None:
        self._reason = reason
        self._stop.set()

    def _finish(self) -> None:
        assert self._renderer is not None and self._training is not None and self._follower is not None
        self._training.join(GRACE)
        if self._training.is_alive():
            raise RuntimeError(
                f"{self._name}: the training goes on {GRACE:.0f} s after it was asked to stop. It has to look at the event "
                "that it is given, between two steps; restart the kernel to end it."
            )
        self._follower.join()
        if not self._left:
            self._left = True
            self._renderer.leave(self.plot())

    def _outcome(self) -> str:
        if self._training is None or not self._ended.is_set():
            return "running"
        self._training.join()  # it has nothing left to do but to keep what it raised
        if self._training.error is not None:
            lines = str(self._training.error).splitlines()
            return ": ".join([type(self._training.error).__name__, *lines[:1]])
        return self._reason if self._stop.is_set() else "finished"


def _described(outcome: str, losses: Losses) -> str:
    return f"{outcome}: {losses}" if len(losses) else outcome


_turn = threading.Lock()
_running: list[LiveMemory] = []


def _make_way_for(view: LiveMemory) -> None:
    """End the run that goes on, if one does. Two at once would each measure the other."""
    with _turn:
        for before in _running:
            if before.running:
                before._ask("stopped for the next run")
                before._finish()
        _running[:] = [view]


@atexit.register
def _end_with_python() -> None:
    """A thread that computes while the interpreter goes away can crash it."""
    for view in _running:
        view.stop()
        if view._training is not None:
            view._training.join(10)
