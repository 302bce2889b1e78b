"""One step: from the gradients that are there to a job, carried out at once or while the caller goes on."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from offload_lab import gradients, pending, update
from offload_lab.devices import HostView
from offload_lab.execution import Execution
from offload_lab.job import Job
from offload_lab.schedule import in_order

if TYPE_CHECKING:
    from offload_lab.backward import BackwardUpdates
    from offload_lab.engine import Engine
    from offload_lab.pipeline import Run

_running: weakref.WeakSet[Stepping] = weakref.WeakSet()  # those with a step under way


class Stepping:
    """The steps of `engine`, one at a time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.execution = Execution(engine)
        self.deferred = 0
        self.scale = 1.0
        """What the next step multiplies its gradients by (clipping)."""
        self._underway: Job | None = None
        self._told_of_compiler = False
        self.backward: BackwardUpdates | None = None

    def step(self, settings: Sequence[tuple[int, dict]], decoupled: bool) -> str | None:
        """One step for `(parameter number, its group's settings)`. The state is that of t or t + 1, never between.

        Where the policy says so the step goes on after this returned. Returns None, or why the step was skipped.
        """
        if self.backward is not None:
            begun, skipped = self.backward.step(settings)
            if begun:
                return skipped
        self.wait()
        views: dict[int, HostView] = {}
        groups: dict[int, dict] = {}
        for number, group in settings:
            tracked = self.engine.tracked[number]
            gradient = tracked.parameter.grad
            if gradient is None or tracked.parameter.numel() == 0:
                continue
            gradients.check_gradient(gradient, tracked.name)
            if gradients.DTYPES.get(tracked.parameter.dtype) != tracked.dtype:
                raise RuntimeError(
                    f"{tracked.name} was {tracked.dtype} when this optimizer was built and is "
                    f"{tracked.parameter.dtype} now; convert the model first, then build the optimizer"
                )
            if bool(group["amsgrad"]) != tracked.amsgrad:
                raise RuntimeError(
                    f"amsgrad of {tracked.name} was {tracked.amsgrad} when its state was made and is {group['amsgrad']} now; "
                    "it can't change: save state_dict() and build another optimizer"
                )
            views[number] = HostView(tracked.parameter, gradient)
            groups[number] = group
        kernel = self.engine.kernel
        if not gradients.all_finite(views.values(), kernel):
            culprits = [number for number, view in views.items() if not gradients.all_finite([view], kernel)]
            return self.skipped([self.engine.tracked[number].name for number in culprits])
        if not views:
            return None
        self.engine.provide([number for number in views if not self.engine.tracked[number].parts])
        job = self._job(views, groups, decoupled)
        if self.engine.policy.overlap == "none" or self._compiler_in_use():
            self.deferred = 0
            self.execution.carry_out(job)
        else:
            for number in job.views:
                parameter = self.engine.tracked[number].parameter
                if pending.can_wait(parameter):
                    pending.defer(parameter, lambda number=number: job.wait_for(number))
            self.defer(job)
        return None

    def skipped(self, culprits: list[str]) -> str:
        """Count a step that is skipped because the gradients of `culprits` are not finite, and say so."""
        self.scale = 1.0
        self.engine.skipped_steps += 1
        others = f" (nor are {len(culprits) - 1} others)" if len(culprits) > 1 else ""
        return (
            f"step skipped: the gradient of {culprits[0]} is not finite{others}; nothing was changed. "
            f"Skipped so far: {self.engine.skipped_steps}."
        )

    def _compiler_in_use(self) -> bool:
        if not pending.compiler_in_use():
            return False
        if not self._told_of_compiler:
            self._told_of_compiler = True
            warnings.warn(
                f"torch.compile is in use, and compiled code reads weights without waiting for them; overlap="
                f"{self.engine.policy.overlap!r} is therefore off: every step is over when step() returns",
                stacklevel=5,
            )
        return True

    def _job(self, views: dict[int, HostView], groups: dict[int, dict], decoupled: bool) -> Job:
        """The step as a job, and booked as done: counts, and version counters (ours, so that autograd sees the change)."""
        active = {index for number in views for index in self.engine.tracked[number].parts}
        scalars = {
            number: update.scalars(group, self.engine.tracked[number].step + 1, decoupled=decoupled, scale=self.scale)
            for number, group in groups.items()
        }
        self.scale = 1.0
        edited = {number: tracked for number, tracked in enumerate(self.engine.tracked) if tracked.edited()}
        for index in active:
            for span in self.engine.partitions[index].spans:
                if span.parameter not in views:  # it has no gradient, but its weight is written to disk with the others
                    views[span.parameter] = HostView(self.engine.tracked[span.parameter].parameter, None)
        settings = self.engine.describe_groups() if self.engine.policy.keeps_weights else []
        masters = {number: tracked.loaded_master for number, tracked in edited.items() if tracked.loaded_master is not None}
        order = in_order(active, self.engine.policy.order, self.engine.steps)
        job = Job(self.engine.steps + 1, order, views, scalars, frozenset(edited), masters, settings)
        job.expect(self.engine.partitions)
        self.engine.steps += 1
        for number in groups:
            tracked = self.engine.tracked[number]
            tracked.step += 1
            tracked.loaded_master = None
            torch.autograd.graph.increment_version(tracked.parameter)
            tracked.seen = tracked.now()
        return job

    def defer(self, job: Job, begun: Run | None = None) -> None:
        """Carry the job out in a thread of its own; whoever reads a parameter of it waits."""
        self.deferred = sum(pending.can_wait(self.engine.tracked[number].parameter) for number in job.views)
        self._underway = job
        _running.add(self)
        job.thread = threading.Thread(target=self._in_background, args=(job, begun), name="offload step")
        try:
            job.thread.start()
        except RuntimeError:  # no thread to be had: then here and now
            job.thread = None
            self._in_background(job, begun)
        if self.deferred < len(job.views):
            self.wait()

    def _in_background(self, job: Job, begun: Run | None) -> None:
        try:
            self.execution.carry_out(job, begun)
            self.execution.read_ahead(job)
        except BaseException as error:  # carried to whoever waits
            job.fail(error)

    def wait(self) -> None:
        """Return when no step is under way. Raises, once, what stopped the one that was."""
        job = self._underway
        if job is None:
            return
        if job.thread is not None and job.thread is not threading.current_thread():
            job.thread.join()
        self._underway = None
        _running.discard(self)
        for number in job.views:
            with contextlib.suppress(RuntimeError):  # the same error for each; it is raised once, below
                pending.settle(self.engine.tracked[number].parameter)
        if job.error is not None:
            raise job.error


def _before_fork() -> None:
    # The child would have the locks, but none of the threads that are going to release them.
    for stepping in list(_running):
        with contextlib.suppress(Exception):  # it is raised again by the next call that needs the engine
            stepping.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
