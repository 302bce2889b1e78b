"""The step that begins during backward: a partition is updated as soon as the last of its gradients is there.

That is a speculation. Backward may yet find a gradient that is not finite, or the caller may never call `step()`. It rests on
what makes a step crash-safe: until the step is published its partitions are written to the other slots, and the published
ones, which hold the weights too, take everything back.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from offload_lab import checkpoint, gradients, pending, update
from offload_lab.devices import Views
from offload_lab.job import Job

if TYPE_CHECKING:
    from offload_lab.pipeline import Run
    from offload_lab.stepping import Stepping

Settings = Sequence[tuple[int, dict]]
_VALUES = ("lr", "betas", "eps", "weight_decay", "maximize")


def _snapshot(settings: Settings) -> list[tuple]:
    groups = {id(group): group for _, group in settings}.values()
    return [tuple(str(group[name]) for name in _VALUES) for group in groups]


class _Refused(BaseException):
    """Stops the run of a speculation that is given up."""


class Speculation:
    """A step under way whose `step()` has not been called yet."""

    def __init__(self, job: Job, run: Run, settings: Settings) -> None:
        self.job, self.run, self.settings = job, run, settings
        self.values = _snapshot(settings)
        self.groups = dict(settings)
        self.culprits: list[int] = []
        self.error: RuntimeError | None = None


class BackwardUpdates:
    """Takes gradients from autograd as they come, for an engine whose policy has overlap="backward".

    `settings()` gives the numbers of all parameters with their groups, as `Engine.step` takes them.
    """

    def __init__(self, stepping: Stepping, settings: Callable[[], Settings], decoupled: bool) -> None:
        self._stepping, self._engine = stepping, stepping.engine
        self._settings, self._decoupled = settings, decoupled
        self._lock = threading.RLock()  # an accelerator's backward has threads of its own
        self._open: Speculation | None = None
        self._off = False
        self._learned: list[int] = []
        self._handles: dict[int, torch.utils.hooks.RemovableHandle] = {}
        self.follow()

    def follow(self) -> None:
        """Watch the parameters that came since the last call."""
        myself = weakref.ref(self)  # a parameter must not keep the optimizer alive
        for number, tracked in enumerate(self._engine.tracked):
            if number not in self._handles and tracked.parameter.requires_grad:

                def hook(parameter: torch.Tensor, number: int = number) -> None:
                    updates = myself()
                    if updates is not None:
                        updates._take(number)

                self._handles[number] = tracked.parameter.register_post_accumulate_grad_hook(hook)

    def close(self) -> None:
        self.discard()
        for handle in self._handles.values():
            handle.remove()
        self._handles = {}

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Gradients accumulate in `.grad`, as torch does it, and wait for the backward after this one."""
        before, self._off = self._off, True
        try:
            yield
        finally:
            self._off = before

    # --- during backward ------------------------------------------------------------------------------------------

    def _take(self, number: int) -> None:
        with self._lock, torch.no_grad():
            tracked = self._engine.tracked[number]
            if self._off or not tracked.parts:
                return
            if self._open is None:
                if not self._may_begin():
                    return
                self._begin()
            speculation = self._open
            assert speculation is not None
            if number in speculation.job.views:
                speculation.error = RuntimeError(
                    f"backward brought a second gradient of {tracked.name} before step(), and the first is used up: "
                    'overlap="backward" updates during backward. Put every backward but the last before a step into '
                    "`with optimizer.accumulate():`. The step is taken back; call optimizer.zero_grad() to go on"
                )
                raise speculation.error
            self._add(speculation, number, tracked.parameter.grad)

    def _may_begin(self) -> bool:
        """Whether the step could be taken back: every partition has been published, with the weights that are here now."""
        engine = self._engine
        if engine.closed is not None or engine.failed is not None or pending.compiler_in_use():
            return False
        self._stepping.wait()
        return (
            bool(engine.partitions)
            and all(slot is not None for slot in engine.files.slots)
            and not any(tracked.edited() or tracked.loaded_master is not None for tracked in engine.tracked)
            and all(pending.can_wait(tracked.parameter) for tracked in engine.tracked)
        )

    def _begin(self) -> None:
        engine, settings = self._engine, self._settings()
        # Gradients come in the order in which they came last time; the first time, take them for coming from the end.
        learned = [index for index in self._learned if index < len(engine.partitions)]
        order = learned + [part.index for part in reversed(engine.partitions) if part.index not in set(learned)]
        job = Job(engine.steps + 1, order, len(engine.tracked), engine.describe_groups())
        held = {index: engine.layouts[index].distinct for index in order}
        job.expect(held)
        grouped = {number for number, _ in settings}
        expected = {n for n, t in enumerate(engine.tracked) if t.parameter.requires_grad and t.parts and n in grouped}
        job.await_gradients_of(held, expected)
        for number, tracked in enumerate(engine.tracked):
            if tracked.parts and number not in expected:  # it shares a partition, and is written to disk with the others
                job.put({number: Views().of(tracked.parameter, None)})
        execution = self._stepping.execution
        execution.linked = any(
            engine.link_of(number) is not None for number, tracked in enumerate(engine.tracked) if tracked.parts
        )
        if execution.linked:
            engine.reserve_staging(order, False)
        self._open = Speculation(job, execution.begin(job), settings)

    def _add(self, speculation: Speculation, number: int, gradient: torch.Tensor | None) -> None:
        tracked, job = self._engine.tracked[number], speculation.job
        parameter = tracked.parameter
        if gradient is not None:
            gradients.check_gradient(gradient, tracked.name)
        views = {number: Views().of(parameter, gradient)}
        if gradients.not_finite(views, self._engine.kernel, 1):
            speculation.culprits.append(number)
            return  # its partitions are never updated: the step will be taken back
        job.put(views)
        if gradient is not None:
            job.stepped.append(number)
            job.scalars[number] = update.scalars(speculation.groups[number], tracked.step + 1, decoupled=self._decoupled)
            parameter.grad = None
            tracked.step += 1
            torch.autograd.graph.increment_version(parameter)
            tracked.note()
        pending.defer(parameter, lambda: job.wait_for(number), refuse=self._refusal(tracked.name))
        job.arrived(number, tracked.parts)

    def _refusal(self, name: str) -> str:
        return (
            f"{name} is being updated since backward brought its gradient, which is used up; neither can be read before "
            'step(). Clipping, unscaling and looking at gradients need overlap="forward" or "none"; every backward before '
            "a step but the last goes into `with optimizer.accumulate():`; to give this one up, call optimizer.zero_grad()"
        )

    # --- at the step ----------------------------------------------------------------------------------------------

    def step(self, settings: Settings) -> tuple[bool, str | None]:
        """End what backward began. Returns whether there was anything, and why it was skipped, if it was."""
        with self._lock:
            speculation = self._open
            if speculation is None:
                return False, None
            engine, job = self._engine, speculation.job
            if speculation.error is None and _snapshot(settings) != speculation.values:
                speculation.error = RuntimeError(
                    'a setting of a parameter group was changed between backward and step(), but overlap="backward" had '
                    "begun the step with the old one. Change settings after step(). The step is taken back"
                )
            if speculation.error is None:
                for number, _ in settings:
                    gradient = engine.tracked[number].parameter.grad if number not in job.views else None
                    if gradient is not None and engine.tracked[number].parts:  # it came before the last backward
                        self._add(speculation, number, gradient)
            if speculation.error is not None:
                self.discard()
                raise speculation.error
            if speculation.culprits:
                names = [engine.tracked[number].name for number in speculation.culprits]
                self.discard()
                return True, self._stepping.skipped(names)
            self._end(speculation)
            return True, None

    def _end(self, speculation: Speculation) -> None:
        engine, job = self._engine, speculation.job
        for index in job.active:
            for span in engine.partitions[index].spans:
                if span.parameter not in job.views:
                    self._add(speculation, span.parameter, None)
        job.begun = speculation.run.cut()
        job.no_more_gradients()
        self._learned = list(job.completed)
        rest, stepped = [], set(job.stepped)
        for index in sorted(set(job.active) - job.begun):
            if stepped.intersection(engine.layouts[index].distinct):
                rest.append(index)
            else:
                job.leave_out(engine.layouts[index].distinct)
        job.active = [*job.begun, *rest]
        engine.steps += 1
        self._open = None
        for number in job.views:
            pending.allow(engine.tracked[number].parameter)
        self._stepping.defer(job, speculation.run)

    def discard(self) -> None:
        """Take back what backward began: weights, moments and step counts are those of the last published step."""
        with self._lock:
            speculation, self._open = self._open, None
            if speculation is None:
                return
            engine, job = self._engine, speculation.job
            speculation.run.stop(_Refused())
            job.fail(RuntimeError("the step was taken back"))
            with contextlib.suppress(_Refused):
                speculation.run.join()
            begun = speculation.run.cut()
            engine.records.cache.forget()
            for number in job.views:
                pending.give_back(engine.tracked[number].parameter)
            checkpoint.reload(engine, sorted(begun), job.stepped)
            for number in job.stepped:
                tracked = engine.tracked[number]
                tracked.step -= 1
                tracked.note()
