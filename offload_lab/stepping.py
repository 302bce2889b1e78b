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

from offload_lab import gradients, pending, sharded, update
from offload_lab.crowd import Crowd, Taken, gather
from offload_lab.devices import View, Views
from offload_lab.execution import Execution
from offload_lab.job import Job
from offload_lab.schedule import in_order
from offload_lab.sharded import local

if TYPE_CHECKING:
    from offload_lab.backward import BackwardUpdates
    from offload_lab.engine import Engine
    from offload_lab.pipeline import Run
    from offload_lab.tracked import Tracked

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
        self.crowd: Crowd | None = None
        """The small parameters that the last step took up all at once."""
        self._passed = 0
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
        taken = self._take_crowd(settings)
        empty: list[Tracked] = []
        views: dict[int, View] = {}
        made = Views()
        groups: dict[int, dict] = {}
        everything = self.engine.tracked
        for number, group in settings if taken is None else taken.crowd.others:
            tracked = everything[number]
            parameter = tracked.parameter
            gradient = parameter.grad
            if gradient is None:
                continue
            if not tracked.numel:
                empty.append(tracked)
                continue
            if gradient.layout is not torch.strided or parameter.dtype is not tracked.torch_dtype:
                gradients.check_gradient(gradient, tracked.name)
                raise RuntimeError(
                    f"{tracked.name} was {tracked.dtype} when this optimizer was built and is "
                    f"{parameter.dtype} now; convert the model first, then build the optimizer"
                )
            if not tracked.sharded and parameter.numel() != tracked.numel:
                raise RuntimeError(
                    f"{tracked.name} had {tracked.numel} elements when this optimizer was built and has {parameter.numel()} "
                    "now; its state has no room for another size: change the model first, then build the optimizer"
                )
            if group["amsgrad"] != tracked.amsgrad:
                raise RuntimeError(
                    f"amsgrad of {tracked.name} was {tracked.amsgrad} when its state was made and is {group['amsgrad']} now; "
                    "it can't change: save state_dict() and build another optimizer"
                )
            if tracked.sharded:
                parameter, gradient = tracked.local, local(gradient)
            views[number] = made.of(parameter, gradient)
            groups[number] = group
        culprits = gradients.not_finite(views, self.engine.kernel, self.engine.threads)
        if sharded.somewhere(bool(culprits), (tracked.parameter for tracked in everything)):
            names = [everything[number].name for number in culprits]
            return self.skipped(names or ["a shard on another rank"])
        for tracked in empty:
            tracked.step += tracked.sharded  # an empty shard has the step count of the others
        if not views and (taken is None or not taken.stepped.size):
            return None
        self.engine.provide([number for number in views if not everything[number].parts])
        deferring = self.engine.policy.overlap != "none" and not self._compiler_in_use()
        active = {index for number in views for index in everything[number].parts}
        active |= taken.parts() if taken is not None else set()
        order = in_order(list(active), self.engine.policy.order, self.engine.steps)
        held = self.engine.layouts
        missing = {n for index in active for n in (taken.crowd.beside(index) if taken else held[index].distinct)}
        missing.difference_update(views)
        for number in missing:  # it has no gradient, but its weight is written to disk with the others
            views[number] = made.of(everything[number].local, None)
        if taken is not None:
            self._passed = 0
        self.execution.linked = any(view.link is not None for view in views.values())
        planned = self.execution.plan(order, self.engine.steps + 1)  # before anything is booked: it may be refused
        job = self._job(views, groups, order, decoupled, deferring, taken)
        job.planned = planned
        if not deferring:
            self.deferred = 0
            self.execution.carry_out(job)
            if taken is not None:
                taken.carry()
            else:
                self._gather_crowd(settings)
        else:
            for number in job.views:
                parameter = everything[number].parameter
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

    def _take_crowd(self, settings: Sequence[tuple[int, dict]]) -> Taken | None:
        """The small parameters all at once, where nothing about them asks for more than that."""
        if self.crowd is None or self.crowd.settings is not settings or self.engine.policy.overlap != "none":
            return None
        return self.crowd.take(self.engine.kernel)

    def _gather_crowd(self, settings: Sequence[tuple[int, dict]]) -> None:
        """After a step that took up every parameter by itself: see whether the next one need not. Less and less often where
        that keeps turning out wrong."""
        if self.engine.policy.overlap != "none":
            return
        self._passed += 1
        if self._passed & (self._passed - 1) == 0:
            self.crowd = gather(self.engine, settings)

    def _job(
        self,
        views: dict[int, View],
        groups: dict[int, dict],
        active: list[int],
        decoupled: bool,
        deferring: bool,
        taken: Taken | None,
    ) -> Job:
        """The step as a job, and booked as done: counts, and version counters (ours, so that autograd sees the change)."""
        engine = self.engine
        if self.execution.linked:
            engine.reserve_staging(active, any(view.wide for view in views.values()))
        settings = engine.describe_groups() if engine.policy.keeps_weights else []
        job = Job(engine.steps + 1, active, len(engine.tracked), settings)
        job.put(views)
        job.stepped = list(groups)
        alike: dict[tuple[int, int], list[int]] = {}  # parameters of one group at one step have the same scalars
        for number, group in groups.items():
            alike.setdefault((id(group), engine.tracked[number].step + 1), []).append(number)
        for (_, step), numbers in alike.items():
            job.scalars[numbers] = update.scalars(groups[numbers[0]], step, decoupled=decoupled, scale=self.scale)
        if taken is not None:
            taken.put(job, decoupled=decoupled, scale=self.scale)
        self.scale = 1.0
        for number in views:
            tracked = engine.tracked[number]
            if tracked.edited():
                job.edited[number] = True
                if tracked.loaded_master is not None:
                    job.masters[number] = tracked.loaded_master
        if deferring or any(view.copied for view in views.values()):
            job.expect({index: engine.layouts[index].distinct for index in active})
        engine.steps += 1
        torch.autograd.graph.increment_version([engine.tracked[number].local for number in groups])
        for number in groups:
            tracked = engine.tracked[number]
            tracked.step += 1
            tracked.loaded_master = None
            tracked.note()
        return job

    def defer(self, job: Job, begun: Run | None = None) -> None:
        """Carry the job out in a thread of its own; whoever reads a parameter of it waits."""
        self.deferred = sum(pending.can_wait(self.engine.tracked[number].parameter) for number in job.views)
        self._underway = job
        pending.before_compiling(_wait_for_all)
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
        error = self.settle()
        if error is not None:
            raise error

    def settle(self) -> BaseException | None:
        """Return when no step is under way: what stopped the one that was, once, if something did."""
        job = self._underway
        if job is None:
            return None
        if job.thread is not None and job.thread is not threading.current_thread():
            job.thread.join()
        self._underway = None
        _running.discard(self)
        for number in job.views:
            with contextlib.suppress(RuntimeError):  # the same error for each; it is told once, below
                pending.settle(self.engine.tracked[number].parameter)
        return job.error


def _before_fork() -> None:
    # The child would have the locks, but none of the threads that are going to release them.
    for stepping in list(_running):
        with contextlib.suppress(Exception):  # it is raised again by the next call that needs the engine
            stepping.wait()


def _wait_for_all(*why: object) -> None:
    """What is told why differs between editions of torch."""
    for stepping in list(_running):
        stepping.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
