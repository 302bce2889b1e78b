"""Watches a training run: figures after each step, alarms where one leaves its range, and what is done then."""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from offload_lab.health import exposition
from offload_lab.health.alarm import ACTIONS, Action, Alarm, words
from offload_lab.health.figures import Figures, Reader
from offload_lab.health.thresholds import KINDS, Kind, Thresholds

log = logging.getLogger("offload_lab.health")


class Monitor:
    """`observe(loss)` after each step; the rest follows from `thresholds`.

        monitor = Monitor(optimizer, actions={"loss": "rollback", "disk_free": "pause"}, on_alarm=page_me)
        for batch in batches:
            monitor.running.wait()      # where an alarm may pause: until somebody calls monitor.resume()
            …
            optimizer.step()
            monitor.observe(loss)

    `actions` says what an alarm does beside being logged as a warning: "none", "pause" (clears `running`, an event that the
    loop waits on), or "rollback" (`optimizer.rollback()`: the step that was just made is undone, weights included).
    `on_alarm` is called with each alarm that is raised, after its action; what it raises ends the loop. With `log_every` a
    line of all figures is logged each so many observations. `name` is the label `run` of the metrics.

    Raises ValueError for an unknown action or alarm, and where "rollback" is asked of an optimizer that publishes no step.
    Not for two threads; `prometheus()` and `resume()` may be called from any.
    """

    def __init__(
        self,
        optimizer: Any,
        thresholds: Thresholds | None = None,
        *,
        actions: Mapping[Kind, Action] | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
        log_every: int | None = None,
        name: str = "training",
        clock: Callable[[], float] = time.perf_counter,
        disk_usage: Callable[[str], Any] = shutil.disk_usage,
    ) -> None:
        self._actions = _checked(actions or {}, optimizer)
        if log_every is not None and log_every < 1:
            raise ValueError(f"Monitor(log_every={log_every!r}): a number of at least 1, or None")
        self.thresholds = thresholds or Thresholds()
        endurance = self.thresholds.endurance
        self._reader = Reader(
            optimizer, None if endurance is None else int(endurance), self.thresholds.written_before, disk_usage
        )
        self._detectors = self.thresholds.detectors()
        self._optimizer, self._on_alarm, self._log_every, self._clock = optimizer, on_alarm, log_every, clock
        self.name = name
        self.running = threading.Event()
        self.running.set()
        self.figures = Figures()
        """Of the last observation."""
        self.observations = 0
        self.events: deque[Alarm] = deque(maxlen=1000)
        """The newest alarms, raised and cleared."""
        self._raised = dict.fromkeys(self._detectors, 0)
        self._last: float | None = None
        self._lock = threading.Lock()

    def observe(self, loss: Any = None) -> list[Alarm]:
        """Look at the step that was just made. Returns the alarms that it raised, after what they do is done.

        `loss` is a number or a tensor of one element, or None where there is none. Raises what `optimizer.rollback()` and
        `on_alarm` raise, and RuntimeError where the optimizer is closed or has failed.
        """
        now = self._clock()
        seconds = None if self._last is None else now - self._last
        figures = self._reader.read(None if loss is None else float(loss), seconds)
        found = self._judge(figures)
        raised = [alarm for alarm in found if alarm.state == "raised"]
        with self._lock:
            self.figures = figures
            self.observations += 1
            for alarm in raised:
                self._raised[alarm.kind] += 1
        self.events += found
        for alarm in found:
            log.log(logging.WARNING if alarm.state == "raised" else logging.INFO, "%s (step %s)", alarm.message, alarm.step)
        if self._log_every is not None and self.observations % self._log_every == 0:
            log.info("%s", self.line())
        if any(alarm.action == "pause" for alarm in raised):
            self.running.clear()
        if any(alarm.action == "rollback" for alarm in raised):  # once, however many ask for it
            self._optimizer.rollback()
            log.warning("rolled back from step %s", figures.step)
        if self._on_alarm is not None:
            for alarm in raised:
                self._on_alarm(alarm)
        self._last = self._clock()  # what was done in here is no part of the next step
        return raised

    def _judge(self, figures: Figures) -> list[Alarm]:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        found = []
        for kind, detector in self._detectors.items():
            value = figures.loss if kind == "not_finite" else getattr(figures, kind)
            if value is None or (kind != "not_finite" and not math.isfinite(value)):
                continue
            signal = detector.observe(value)
            if signal is not None:
                action = self._actions.get(kind, "none") if signal.kind == "raised" else "none"
                told = words(kind, signal)
                found.append(
                    Alarm(kind, signal.kind, figures.step, when, signal.value, signal.reference, signal.bound, told, action)
                )
        return found

    def resume(self) -> None:
        """Let a loop that was paused go on. The time of the pause is part of no step."""
        self._last = None
        self.running.set()

    @property
    def active(self) -> list[Kind]:
        """Alarms that were raised and have not cleared."""
        return [kind for kind, detector in self._detectors.items() if detector.active]

    def rebase(self, kind: Kind | None = None) -> None:
        """Take what comes next as normal: after a change that was meant (a longer sequence, another disk). None: for all."""
        for each, detector in self._detectors.items():
            if kind in (None, each):
                detector.rebase()

    def line(self) -> str:
        """The last figures as one line of `name=value`, with the alarms that are active."""
        with self._lock:
            figures = self.figures
        shown = {field.name: getattr(figures, field.name) for field in fields(Figures)}
        parts = [
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in shown.items()
            if value is not None
        ]
        return " ".join([*parts, f"alarms={','.join(self.active) or 'none'}"])

    def prometheus(self) -> str:
        """The same in Prometheus's text exposition format 0.0.4."""
        with self._lock:
            figures, observations, raised = self.figures, self.observations, dict(self._raised)
        return exposition.text(figures, self.name, observations, raised, set(self.active))

    def serve(self, port: int = 0) -> exposition.Server:
        """Answer `GET /metrics` on 127.0.0.1, in a daemon thread, until `.close()` or the end of a `with`. 0: any free port,
        which `.port` names. Raises OSError where the port is taken."""
        return exposition.Server(self.prometheus, port)


def _checked(actions: Mapping[Any, Any], optimizer: Any) -> dict[Kind, Action]:
    for kind, action in actions.items():
        if kind not in KINDS:
            raise ValueError(f"Monitor(actions=…): there is no alarm {kind!r}; there are {', '.join(KINDS)}")
        if action not in ACTIONS:
            raise ValueError(f"Monitor(actions={{{kind!r}: {action!r}}}): one of {', '.join(ACTIONS)} is needed")
    if "rollback" in actions.values():
        durability = optimizer.stats(wait=False)["durability"] if hasattr(optimizer, "rollback") else None
        if durability in (None, "checkpoint"):
            raise ValueError(
                'Monitor(actions={…: "rollback"}): this optimizer publishes no step to go back to. It takes an OffloadAdamW '
                'with tier="disk" and durability="step" or a number of steps.'
            )
    return dict(actions)
