"""One step on its way: what it works on, which parameters are done, and who waits for what."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from offload_lab.devices import HostView
from offload_lab.partition import Partition


@dataclass
class Job:
    """The step to state `step`. `views` are those parameters with state in partitions `active`, with or without a gradient;
    `scalars` those of the ones with; `edited` the ones whose weight somebody changed since the last step."""

    step: int
    active: list[int]
    views: dict[int, HostView]
    scalars: dict[int, list[float]]
    edited: frozenset[int]
    masters: dict[int, torch.Tensor]
    """float32 masters of a checkpoint that was loaded before the weights of some of these."""
    groups: list[dict]
    """Settings of the groups as they were when the step was asked for."""
    error: BaseException | None = None
    thread: threading.Thread | None = None
    begun: frozenset[int] = frozenset()
    """Partitions that were taken up during backward."""
    asked: float = field(default_factory=time.perf_counter)
    """When the step was asked for, or backward began it."""
    pid: int = field(default_factory=os.getpid)
    completed: list[int] = field(default_factory=list)
    """Partitions in the order in which the last of their gradients arrived."""
    _left: dict[int, int] = field(default_factory=dict)
    _missing: dict[int, set[int]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def expect(self, partitions: Sequence[Partition]) -> None:
        """Count for each parameter the active partitions that have to be updated before it is done."""
        for index in self.active:
            for number in _parameters(partitions[index]):
                self._left[number] = self._left.get(number, 0) + 1

    def updated(self, part: Partition) -> None:
        """Partition `part` has its new state. A parameter that is done gets its weight, and gives up its gradient."""
        for number in _parameters(part):
            with self._changed:
                self._left[number] -= 1
                done = not self._left[number]
            if done:
                self.views[number].finish()
                with self._changed:
                    self._left.pop(number)
                    self._changed.notify_all()

    def wait_for(self, number: int) -> None:
        """Return when parameter `number` has its new weight. Raises what stopped the step, if something did."""
        if os.getpid() != self.pid:
            raise RuntimeError(f"this weight was being updated by process {self.pid} when this one was forked from it")
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or number not in self._left)
            if number in self._left:
                raise RuntimeError(f"the step that was under way stopped: {self.error}") from self.error

    # --- gradients that come one by one, during backward -------------------------------------------------------------

    def await_gradients_of(self, partitions: Sequence[Partition], numbers: set[int]) -> None:
        """The step begins before its gradients are there: those of parameters `numbers`, in `partitions`."""
        for index in self.active:
            self._missing[index] = numbers.intersection(_parameters(partitions[index]))

    def arrived(self, number: int, parts: Sequence[int]) -> None:
        """The gradient of parameter `number`, which lies in partitions `parts`, is in `views`."""
        with self._changed:
            for index in parts:
                self._missing[index].discard(number)
                if not self._missing[index]:
                    self.completed.append(index)
            self._changed.notify_all()

    def no_more_gradients(self) -> None:
        """What has not arrived has no gradient in this step; `views` says so."""
        with self._changed:
            self._missing.clear()
            self._changed.notify_all()

    def wait_for_gradients(self, index: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or not self._missing.get(index))

    def leave_out(self, part: Partition) -> None:
        """Partition `part` has no part in this step after all."""
        for number in _parameters(part):
            with self._changed:
                self._left[number] -= 1
                if not self._left[number]:
                    self._left.pop(number)
                self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = error
            self._changed.notify_all()


def _parameters(part: Partition) -> Mapping[int, None]:
    return dict.fromkeys(span.parameter for span in part.spans)
