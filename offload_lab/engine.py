"""The engine under the optimizer: partitions of state in RAM and on disk, and the step that takes them from t to t + 1.

It knows parameters by number and settings by dict; what torch's optimizers promise to their users is in `optimizer.py`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from offload_lab import gradients, loops, pending, pipeline, schedule, update
from offload_lab.devices import HostView
from offload_lab.job import Job
from offload_lab.partition import BLOCK, Partition, cut
from offload_lab.policy import OffloadPolicy
from offload_lab.records import Records
from offload_lab.residency import partition_size, place
from offload_lab.schedule import Item, Task, in_order
from offload_lab.storage.files import StateFiles
from offload_lab.storage.manifest import Manifest
from offload_lab.trace import Recorder

_running: weakref.WeakSet[Engine] = weakref.WeakSet()  # engines with a step under way
_SMALL = 1 << 16  # elements below which a second thread costs more than it brings


@dataclass
class Tracked:
    """One parameter as the engine follows it."""

    parameter: torch.Tensor
    name: str
    dtype: str
    step: int = 0
    seen: tuple[int, int] | None = None
    """Version counter and address after our own last write; anything else means that somebody edited the weight."""
    parts: tuple[int, ...] = ()
    """Partitions that hold its state."""
    loaded_master: torch.Tensor | None = None
    """A bfloat16 parameter's master from a checkpoint whose weights may be loaded only after it."""

    def now(self) -> tuple[int, int]:
        return self.parameter._version, self.parameter.data_ptr()

    def edited(self) -> bool:
        return self.seen is not None and self.seen != self.now()


class Engine:
    """State of `tracked` parameters under `policy`. `describe_groups()` gives the groups' settings for the manifest.

    `rows(part, …)`, `load(part)` and `store` are what `checkpoint.py` builds on; users call none of this.
    """

    def __init__(self, policy: OffloadPolicy, describe_groups: Callable[[], list[dict]]) -> None:
        self.policy = policy
        self.tracked: list[Tracked] = []
        self.partitions: list[Partition] = []
        self.steps = self.skipped_steps = self.bytes_read = self.bytes_written = 0
        self.trace = Recorder()
        self.closed: str | None = None
        self.failed: BaseException | None = None
        self._describe_groups = describe_groups
        self._size = 0
        self.records = Records(policy)
        self.bytes_needed = self.deferred = 0
        self.last: Job | None = None
        self._underway: Job | None = None
        self._told_of_compiler = False
        self.threads = max(1, torch.get_num_threads())
        self.files: StateFiles | None = None
        if policy.tier == "disk":
            self.files = StateFiles(
                policy.directory, existing=policy.existing, direct=policy.direct_io, keeps_weights=policy.keeps_weights
            )

    # --- building -------------------------------------------------------------------------------------------------

    def follow(self, parameters: Iterable[tuple[torch.Tensor, str]]) -> None:
        """Take up more parameters. Those that need no gradient get state only once they have one.

        The first call of an engine that resumes takes over the partitions that its directory holds, however they were cut.
        """
        first = len(self.tracked)
        self.tracked += [Tracked(parameter, name, gradients.DTYPES[parameter.dtype]) for parameter, name in parameters]
        try:
            found = self.files.found if self.files is not None else None
            if found is not None and not self.partitions:
                held = found.recorded(self.described(), [t.name for t in self.tracked], str(self.files.directory))
                self._size = max((part.numel for part in held), default=0)
                self._install(held)
            wanted = range(first, len(self.tracked))
            needing = [number for number in wanted if self.tracked[number].parameter.requires_grad]
            self.provide([number for number in needing if not self.tracked[number].parts])
        except BaseException:
            del self.tracked[first:]  # or later parameters would be taken for these
            raise

    def provide(self, numbers: Sequence[int]) -> None:
        """Give state to parameters that have none yet: cut partitions, reserve files, allocate RAM. All zero at first."""
        shapes = [(number, self.tracked[number].parameter.numel(), self.tracked[number].dtype) for number in numbers]
        if not self._size:
            self._size = partition_size(sum(numel for _, numel, _ in shapes), self.policy)
        self._install(cut(shapes, self._size, first_index=len(self.partitions)))

    def _install(self, added: list[Partition]) -> None:
        if not added:
            return
        partitions = self.partitions + added
        residency = place(partitions, self._size, self.policy, self.records.residency)
        files = self.files
        self.records.extend(added, residency, lambda: files.extend(added) if files is not None else None)
        self.partitions = partitions
        for part in added:
            for number in dict.fromkeys(span.parameter for span in part.spans):
                self.tracked[number].parts += (part.index,)

    def record_bytes(self, part: Partition) -> int:
        return part.record_bytes(self.policy.keeps_weights)

    # --- the step -------------------------------------------------------------------------------------------------

    def usable(self) -> None:
        """Raises RuntimeError when this engine is closed, failed, or belongs to the process that this one was forked from."""
        if self.closed is not None:
            raise RuntimeError(f"this optimizer is closed: {self.closed}. Build a new one to go on.")
        if self.failed is not None:
            advice = 'build it again with existing="resume"' if self.policy.keeps_weights else "load your last checkpoint"
            raise RuntimeError(
                f"this optimizer stopped after step {self.steps} because of: {self.failed}. The weights in memory may be "
                f"partly of the step after it; {advice} to go on from a whole step."
            ) from self.failed
        if self.files is not None and os.getpid() != self.files.owner_pid:
            raise RuntimeError(
                f"this optimizer belongs to process {self.files.owner_pid}; a forked process cannot step it, or the two would "
                "write over each other. Build one here, in another directory."
            )

    def step(self, settings: Sequence[tuple[int, dict]], decoupled: bool) -> str | None:
        """One step for `(parameter number, its group's settings)`. The state is that of t or t + 1, never between.

        Where the policy says so the step goes on after this returned. Returns None, or why the step was skipped.
        """
        self.wait()
        views: dict[int, HostView] = {}
        groups: dict[int, dict] = {}
        for number, group in settings:
            tracked = self.tracked[number]
            gradient = tracked.parameter.grad
            if gradient is None or tracked.parameter.numel() == 0:
                continue
            gradients.check_gradient(gradient, tracked.name)
            if gradients.DTYPES.get(tracked.parameter.dtype) != tracked.dtype:
                raise RuntimeError(
                    f"{tracked.name} was {tracked.dtype} when this optimizer was built and is "
                    f"{tracked.parameter.dtype} now; convert the model first, then build the optimizer"
                )
            views[number] = HostView(tracked.parameter, gradient)
            groups[number] = group
        if not gradients.all_finite(views.values()):
            self.skipped_steps += 1
            culprits = [self.tracked[n].name for n, view in views.items() if not gradients.all_finite([view])]
            others = f" (nor are {len(culprits) - 1} others)" if len(culprits) > 1 else ""
            return (
                f"step skipped: the gradient of {culprits[0]} is not finite{others}; nothing was changed. "
                f"Skipped so far: {self.skipped_steps}."
            )
        if not views:
            return None
        self.provide([number for number in views if not self.tracked[number].parts])
        job = self._job(views, groups, decoupled)
        if self.policy.overlap == "none" or self._compiler_in_use():
            self.deferred = 0
            self._carry_out(job)
        else:
            self._defer(job)
        return None

    def _compiler_in_use(self) -> bool:
        if not pending.compiler_in_use():
            return False
        if not self._told_of_compiler:
            self._told_of_compiler = True
            warnings.warn(
                f"torch.compile is in use, and compiled code reads weights without waiting for them; overlap="
                f"{self.policy.overlap!r} is therefore off: every step is over when step() returns",
                stacklevel=5,
            )
        return True

    def _job(self, views: dict[int, HostView], groups: dict[int, dict], decoupled: bool) -> Job:
        """The step as a job, and booked as done: counts, and version counters (ours, so that autograd sees the change)."""
        active = {index for number in views for index in self.tracked[number].parts}
        scalars = {
            number: update.scalars(group, self.tracked[number].step + 1, decoupled=decoupled)
            for number, group in groups.items()
        }
        edited = {number: tracked for number, tracked in enumerate(self.tracked) if tracked.edited()}
        for index in active:
            for span in self.partitions[index].spans:
                if span.parameter not in views:  # it has no gradient, but its weight is written to disk with the others
                    views[span.parameter] = HostView(self.tracked[span.parameter].parameter, None)
        settings = self._describe_groups() if self.policy.keeps_weights else []
        masters = {number: tracked.loaded_master for number, tracked in edited.items() if tracked.loaded_master is not None}
        order = in_order(active, self.policy.order, self.steps)
        job = Job(self.steps + 1, order, views, scalars, frozenset(edited), masters, settings)
        job.expect(self.partitions)
        self.steps += 1
        for number in groups:
            tracked = self.tracked[number]
            tracked.step += 1
            tracked.loaded_master = None
            torch.autograd.graph.increment_version(tracked.parameter)
            tracked.seen = tracked.now()
        return job

    def _defer(self, job: Job) -> None:
        """Carry the job out in a thread of its own; whoever reads a parameter of it waits."""
        waiting = [number for number in job.views if pending.can_wait(self.tracked[number].parameter)]
        for number in waiting:
            pending.defer(self.tracked[number].parameter, lambda number=number: job.wait_for(number))
        self.deferred = len(waiting)
        self._underway = job
        _running.add(self)
        job.thread = threading.Thread(target=self._in_background, args=(job,), name="offload step")
        try:
            job.thread.start()
        except RuntimeError:  # no thread to be had: then here and now
            job.thread = None
            self._in_background(job)
        if len(waiting) < len(job.views):
            self.wait()

    def _in_background(self, job: Job) -> None:
        try:
            self._carry_out(job)
            self._read_ahead(job)
        except BaseException as error:  # carried to whoever waits
            job.fail(error)

    def _carry_out(self, job: Job) -> None:
        began = time.perf_counter()
        try:
            self._run(job)
            self._publish(job)
        except BaseException as error:
            self.steps -= 1
            self.failed = error
            raise
        job.seconds = time.perf_counter() - began
        self.last = job

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
                pending.settle(self.tracked[number].parameter)
        if job.error is not None:
            raise job.error

    def _run(self, job: Job) -> None:
        items = [self._item(index) for index in job.active]
        following = in_order(job.active, self.policy.order, job.step)
        tasks = schedule.step(items, self.records.cache, following=following, write_back=self.write_back)
        elements = sum(self.partitions[index].numel for index in job.active)
        slices = self.threads if elements > _SMALL else 1
        run = self._pipeline(tasks, lambda task: self._pieces(task, job, slices), slices, job)
        run.here()
        self.bytes_needed += sum(self.partitions[index].state_bytes for index in job.active)
        if self.policy.order == "forward" and self.policy.residency in ("pinned", "none"):
            # What is left in the buffers would only count where there are hardly more partitions than buffers, and would
            # make what a share in RAM saves depend on that. It is kept where reuse is the point.
            self.records.cache.forget()

    def _pipeline(self, tasks: Sequence[Task], split, slices: int, job: Job) -> pipeline.Run:
        def ended(task: Task) -> None:
            if task.kind == "update":
                job.updated(self.partitions[task.partition])
            elif task.kind == "write" and not self.policy.keeps_weights:
                self.files.slots = self.files.turned([task.partition])  # scratch: nothing is published, the newest counts

        self.bytes_read += sum(task.nbytes for task in tasks if task.kind == "read")
        self.bytes_written += sum(task.nbytes for task in tasks if task.kind == "write")
        io = self.policy.io_threads
        return pipeline.Run(tasks, split, {"cpu": slices, "disk-read": io, "disk-write": io}, self.trace, ended)

    def _read_ahead(self, job: Job) -> None:
        """The reads with which the next step begins, if it is like this one."""
        items = [self._item(index) for index in in_order(job.active, self.policy.order, job.step)]
        tasks = schedule.ahead(items, self.records.cache)
        if tasks:
            self._pipeline(tasks, lambda task: self._pieces(task, job, 1), 1, job).here()

    def _item(self, index: int) -> Item:
        part, resident = self.partitions[index], index in self.records.resident
        written = self.record_bytes(part) if self.files is not None and (not resident or self.policy.keeps_weights) else 0
        stored = self.files is not None and (self.files.slots[index] is not None or index in self.records.cache.debts())
        return Item(index, part.state_bytes if stored and not resident else 0, written, resident)

    @property
    def write_back(self) -> bool:
        """Whether a partition is written only when its buffer is wanted: nothing on disk has to be whole between steps, and
        the buffers are many enough to be worth it."""
        return not self.policy.keeps_weights and self.policy.residency in ("lru", "furthest")

    def _pieces(self, task: Task, job: Job, slices: int) -> list[pipeline.Piece]:
        part = self.partitions[task.partition]
        record = self.records.resident[part.index] if task.buffer is None else self.records.buffers[task.buffer]
        if task.kind == "update":
            return loops.pieces(part, record, job, slices, self.policy.keeps_weights)
        if task.kind == "read" and task.nbytes == 0:  # never written: its state is all zero
            return [lambda: record[: part.state_bytes].fill(0)]
        transfer = self.files.read if task.kind == "read" else self.files.write
        chunk = max(BLOCK, self.policy.chunk_bytes // BLOCK * BLOCK)
        return [
            lambda at=at: transfer(part.index, record[at : min(at + chunk, task.nbytes)], at)
            for at in range(0, task.nbytes, chunk)
        ]

    def fields(self, part: Partition, record: np.ndarray) -> tuple[np.ndarray, ...]:
        """Views of a record in the order in which the update loop takes them: moments, master or its low half, mirror."""
        return loops.fields(part, record, self.policy.keeps_weights)

    def _publish(self, job: Job) -> None:
        if self.policy.keeps_weights:
            slots = self.files.turned(job.active)
            self.files.publish(self.manifest(job.step, slots, [tracked.step for tracked in self.tracked], job.groups))

    def manifest(self, step: int, slots: list[int | None], steps: list[int], groups: list[dict] | None = None) -> Manifest:
        return Manifest(
            step=step,
            slots=slots,
            parameter_steps=steps,
            parameters=self.described(),
            partitions=[[p.index, p.dtype, [[s.parameter, s.start, s.length] for s in p.spans]] for p in self.partitions],
            groups=self._describe_groups() if groups is None else groups,
        )

    def described(self) -> list[dict]:
        """Shape and dtype of each parameter, as a manifest has them."""
        return [{"shape": list(t.parameter.shape), "dtype": t.dtype} for t in self.tracked]

    # --- state for checkpoint.py ----------------------------------------------------------------------------------

    def load(self, index: int, scratch: np.ndarray) -> np.ndarray:
        """A partition's newest record (state only): the resident one, or read into `scratch`."""
        part = self.partitions[index]
        if index in self.resident:
            return self.resident[index]
        if self.files is None or self.files.slots[index] is None:
            scratch[: part.state_bytes].fill(0)
        else:
            self.files.read(index, scratch[: part.state_bytes])
        return scratch

    def scratch(self) -> np.ndarray:
        """Room for the record of any partition that is not resident; only between steps, it is one of their buffers.

        What the buffers held is on disk after this, and nothing counts as held.
        """
        self.wait()
        for index, (buffer, nbytes) in self.records.cache.debts().items():
            self.files.write(index, self.records.buffers[buffer][:nbytes])
            self.files.slots = self.files.turned([index])
        self.records.cache.forget()
        return self.records.buffers[0] if self.records.buffers else np.zeros(0, np.uint8)

    def memory(self) -> dict[str, int]:
        return {
            "ram": self.records.nbytes,
            "disk": self.files.allocated() if self.files is not None else 0,
        }

    @property
    def resident(self) -> dict[int, np.ndarray]:
        """Records that stay in RAM, by partition."""
        return self.records.resident

    def abandon(self) -> None:
        """Undo a construction that failed: give back RAM and files, but delete nothing that was there to be resumed."""
        if self.files is not None and self.files.found is None and not any(s is not None for s in self.files.slots):
            self.files.close(remove=True)
            self.files = None
        self.close("it was not built completely")

    def close(self, why: str) -> None:
        """Give back RAM and files, after the step that is under way. Twice is once."""
        if self.closed is not None:
            return
        try:
            self.wait()
        finally:
            self.closed = why
            self.records.close()
            if self.files is not None:
                self.files.close(remove=not self.policy.keeps_weights)


def _before_fork() -> None:
    # The child would have the locks, but none of the threads that are going to release them.
    for engine in list(_running):
        with contextlib.suppress(Exception):  # it is raised again by the next call that needs the engine
            engine.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
