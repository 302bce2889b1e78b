"""One step on its way: what it works on, which parameters are done, and who waits for what."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from offload_lab.devices import View
from offload_lab.update import SCALAR_FIELDS

if TYPE_CHECKING:
    from offload_lab.execution import Planned


class Job:
    """The step to state `step`, in partitions `active`, for an engine of `count` parameters.

    Of each parameter with state in these: `views`, and by its number in arrays that a partition's table is made from,
    `weights` and `gradients` (addresses; 0 without a gradient), `wide`, `linked` (on an accelerator: its addresses are those
    of a slab, partition by partition), `edited` (somebody changed the weight since the last step), and `scalars`, a row of
    float32. `stepped` are those with a gradient.
    """

    def __init__(self, step: int, active: list[int], count: int, groups: list[dict]) -> None:
        self.step, self.active = step, active
        self.groups = groups
        """Settings of the groups as they were when the step was asked for."""
        self.views: dict[int, View] = {}
        self.stepped: list[int] = []
        self.weights, self.gradients = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.wide, self.edited = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.linked = np.zeros(count, np.bool_)
        self.scalars = np.zeros((count, SCALAR_FIELDS), np.float32)
        self.copies: list[torch.Tensor] = []
        """Gradients that were copied together; kept because `gradients` has their addresses."""
        self.masters: dict[int, torch.Tensor] = {}
        """float32 masters of a checkpoint that was loaded before the weights of some of these."""
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None
        self.begun: frozenset[int] = frozenset()
        """Partitions that were taken up during backward."""
        self.planned: Planned | None = None
        """Tasks of the policy's schedule function, where it has one."""
        self.asked = time.perf_counter()
        """When the step was asked for, or backward began it."""
        self.pid = os.getpid()
        self.completed: list[int] = []
        """Partitions in the order in which the last of their gradients arrived."""
        self._left: dict[int, int] = {}
        self._missing: dict[int, set[int]] = {}
        self._changed = threading.Condition()

    def put(self, views: Mapping[int, View]) -> None:
        """Take up parameters, by number."""
        self.views.update(views)
        numbers = list(views)
        self.weights[numbers] = [view.words for view in views.values()]
        self.gradients[numbers] = [view.gradient_address for view in views.values()]
        self.wide[numbers] = [view.wide for view in views.values()]
        self.linked[numbers] = [view.link is not None for view in views.values()]

    def expect(self, partitions: Mapping[int, list[int]]) -> None:
        """Count for each parameter the active partitions that have to be updated before it is done. `partitions`: the
        parameters of each."""
        for index in self.active:
            for number in partitions[index]:
                self._left[number] = self._left.get(number, 0) + 1

    def updated(self, numbers: Sequence[int]) -> None:
        """A partition with parameters `numbers` has its new state. A parameter that is done gets its weight, and gives up its
        gradient. Without `expect` nobody waits for one, and nothing is done."""
        if not self._left:
            return
        with self._changed:
            done = []
            for number in numbers:
                self._left[number] -= 1
                if not self._left[number]:
                    done.append(number)
        for number in done:
            if number in self.views:  # those of a crowd have none, nor anything to finish
                self.views[number].finish()
        if done:
            with self._changed:
                for number in done:
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

    def await_gradients_of(self, partitions: Mapping[int, list[int]], numbers: set[int]) -> None:
        """The step begins before its gradients are there: those of parameters `numbers`, in `partitions`."""
        for index in self.active:
            self._missing[index] = numbers.intersection(partitions[index])

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

    def leave_out(self, numbers: Sequence[int]) -> None:
        """A partition with parameters `numbers` has no part in this step after all."""
        with self._changed:
            for number in numbers:
                self._left[number] -= 1
                if not self._left[number]:
                    self._left.pop(number)
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = error
            self._changed.notify_all()
