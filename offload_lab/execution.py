"""Carries out the job of one step: the schedule for its partitions, run through the pipeline, and published."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from offload_lab import pipeline, schedule
from offload_lab.devices import HostView
from offload_lab.halves import write_mirror
from offload_lab.job import Job
from offload_lab.partition import WEIGHT_BYTES, Partition
from offload_lab.schedule import Item, Task, in_order, without_forward
from offload_lab.staging import SLABS
from offload_lab.storage.direct_io import StorageError
from offload_lab.validation import Ending, ScheduleError, checked_tasks
from offload_lab.work import Work

if TYPE_CHECKING:
    from offload_lab.engine import Engine

Planned = tuple[list[Task], Ending]
"""Tasks that were checked, and what the buffers hold when they have run."""

_SMALL = 1 << 16  # elements below which a second thread costs more than it brings


class Execution:
    """Runs jobs on the records and files of `engine`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.last: tuple[float, float] | None = None
        """When the last step that was published began and ended, on the trace's clock."""
        self.ran: list[Sequence[Task]] = []
        """The tasks of the last step: of one list, or, where backward began the step, of what it began and of the rest."""
        self.linked = False
        """Whether the step under way has parameters on an accelerator."""
        self._counting = threading.Lock()
        self._unpublished: set[int] = set()  # partitions that have changed since the last step that was published

    def carry_out(self, job: Job, begun: pipeline.Run | None = None) -> None:
        """All of the job that is not in `begun`, after `begun` has ended; then publish it."""
        began = time.perf_counter()
        try:
            if begun is not None:
                begun.join()
                self.engine.records.cache.forget()  # it was filled for tasks that were cut off
            rest = [index for index in job.active if index not in job.begun]
            if rest:
                self._run(job, rest)
            self._settle(job)
        except BaseException as error:
            self.engine.steps -= 1
            self.engine.failed = error
            raise
        self.last = (min(began, job.asked), time.perf_counter())

    def begin(self, job: Job) -> pipeline.Run:
        """Start the job, whose updates wait for their gradients. `carry_out` ends it."""
        self.engine.records.cache.forget()
        planned = self.plan(job.active, job.step, gradients=True)
        if planned is None:
            items = self._items(job.active, job.step)
            tasks: Sequence[Task] = schedule.step(items, self.engine.records.cache, gradients=True, slabs=SLABS)
        else:
            tasks = planned[0]
        self._count_needed(self._items(job.active, job.step), job)
        self.ran = [tasks]
        return self._pipeline(tasks, job, job.active).start()

    def plan(self, partitions: Sequence[int], step: int, *, gradients: bool = False) -> Planned | None:
        """What the policy's schedule function makes of the step to state `step`, checked; None where there is no function.

        Changes nothing. Raises ScheduleError, and whatever the function raises.
        """
        engine = self.engine
        if engine.policy.schedule is None:
            return None
        if self.linked:
            raise ScheduleError(
                "OffloadPolicy(schedule=…) is for parameters in host memory, and some are on an accelerator; leave it out there"
            )
        work = Work(
            tuple(self._items(partitions, step)),
            len(engine.records.buffers),
            step - 1,
            engine.records.cache.held(),
            {partition: nbytes for partition, (_, nbytes) in engine.records.cache.debts().items()},
            engine.files is not None and not engine.policy.keeps_weights,
            gradients,
        )
        tasks, ending = checked_tasks(engine.policy.schedule, work)
        return without_forward(tasks), ending

    def _run(self, job: Job, partitions: list[int]) -> None:
        items = self._items(partitions, job.step)
        planned = self.plan(partitions, job.step) if job.begun else job.planned
        if planned is not None:
            tasks, ending = planned
        else:
            following = in_order(job.active, self.engine.policy.order, job.step)
            cache = self.engine.records.cache
            tasks = schedule.step(items, cache, following=following, write_back=self.write_back, slabs=SLABS)
        self.ran = [*(self.ran if job.begun else ()), tasks]
        self._pipeline(tasks, job, partitions).here()
        self._count_needed(items, job)
        if planned is not None:
            self.engine.records.cache.take_over(ending.held, ending.owed)
            return
        if self.engine.policy.order == "forward" and self.engine.policy.residency in ("pinned", "none"):
            # What is left in the buffers would only count where there are hardly more partitions than buffers, and would
            # make what a share in RAM saves depend on that. It is kept where reuse is the point.
            self.engine.records.cache.forget()

    def _count_needed(self, items: Sequence[Item], job: Job) -> None:
        """What would have been read with nothing in RAM: all but what was never written."""
        for item in items:
            if item.read_bytes or (item.resident and job.step > 1):
                self.engine.bytes_needed += self.engine.partitions[item.partition].state_bytes

    def _pipeline(self, tasks: Sequence[Task], job: Job, partitions: Sequence[int]) -> pipeline.Run:
        engine = self.engine
        elements = sum(engine.partitions[index].numel for index in partitions)
        slices = engine.threads if elements > _SMALL else 1

        def ended(task: Task) -> None:
            if task.kind == ("update" if task.slab is None else "send"):
                job.updated(engine.layouts[task.partition].distinct)
            elif task.kind == "write" and not engine.policy.keeps_weights:
                engine.files.turn([task.partition])  # scratch: nothing is published, the newest counts
            with self._counting:
                engine.bytes_read += task.nbytes if task.kind == "read" else 0
                engine.bytes_written += task.nbytes if task.kind == "write" else 0

        io = engine.policy.io_threads
        links = {"device-to-host": 1, "host-to-device": 1}
        widths = {"backward": 1, "cpu": slices, "disk-read": io, "disk-write": io, **links}
        return pipeline.Run(tasks, lambda task: self._pieces(task, job, slices), widths, engine.trace, ended)

    def read_ahead(self, job: Job) -> None:
        """The reads with which the next step begins, if it is like this one. A schedule of the user's has its own, and a step
        that begins in backward begins with empty buffers: what was read for it would be read again."""
        if self.engine.policy.schedule is not None or self.engine.policy.overlap == "backward":
            return
        items = [self._item(index, False) for index in in_order(job.active, self.engine.policy.order, job.step)]
        tasks = schedule.ahead(items, self.engine.records.cache)
        if not tasks:
            return
        try:
            self._pipeline(tasks, job, ()).here()
        except StorageError:  # the step, which is over, had no part in it; the next one reads again and meets it
            self.engine.records.cache.forget()

    def _items(self, partitions: Sequence[int], step: int) -> list[Item]:
        return [self._item(index, self._publishing(step)) for index in partitions]

    def _item(self, index: int, publishing: bool) -> Item:
        engine, part = self.engine, self.engine.partitions[index]
        resident, files = index in engine.records.resident, engine.files
        if files is None or (resident and not publishing):
            written = 0
        else:
            written = engine.record_bytes(part) if publishing else part.state_bytes
        stored = files is not None and (files.slots[index] is not None or index in engine.records.cache.debts())
        read = part.state_bytes if stored and not resident else 0
        moved = part.update_bytes(publishing and engine.files is not None)
        return Item(index, read, written, resident, moved, *(self._over_the_link(part) if self.linked else ()))

    def _over_the_link(self, part: Partition) -> tuple[int, int]:
        """Bytes of a partition to bring from the accelerator before its update, and to carry there after it."""
        linked = [span for span in part.spans if self.engine.link_of(span.parameter) is not None]
        size = WEIGHT_BYTES[part.dtype] or 2  # a float16 record has no weight but the master
        wide = self.engine.policy.gradients == "float32"
        sent = size * sum(span.length for span in linked)
        return sent + (4 if wide else size) * sum(span.length for span in linked), sent

    @property
    def write_back(self) -> bool:
        """Whether a partition is written only when its buffer is wanted: nothing on disk has to be whole between steps, and
        the buffers are many enough to be worth it."""
        return not self.engine.policy.keeps_weights and self.engine.policy.residency in ("lru", "furthest")

    def _pieces(self, task: Task, job: Job, slices: int) -> list[pipeline.Piece]:
        part = self.engine.partitions[task.partition]
        if task.kind == "gradient":
            return [lambda: job.wait_for_gradients(part.index)]
        if task.slab is not None and task.kind != "update":
            move = self.engine.staging.fetch if task.kind == "fetch" else self.engine.staging.send
            return [lambda: move(task.slab, part, job)]
        record = self.engine.records.resident[part.index] if task.buffer is None else self.engine.records.buffers[task.buffer]
        if task.kind == "update":
            layout = self.engine.layouts[part.index]
            staged = None if task.slab is None else self.engine.staging.staged(task.slab, part, job)
            return layout.pieces(record, job, slices, self._publishing(job.step), self.engine.kernel, staged)
        if task.kind == "read" and task.nbytes == 0:  # never written: its state is all zero
            return [lambda: record[: part.state_bytes].fill(0)]
        transfer = self.engine.files.read if task.kind == "read" else self.engine.files.write
        return [
            lambda at=at, length=length: transfer(part.index, record[at : at + length], at)
            for at, length in self.engine.files.chunks(part.index, task.nbytes)
        ]

    # --- publishing -------------------------------------------------------------------------------------------------

    def _publishing(self, step: int) -> bool:
        every = self.engine.policy.publish_every
        return every is not None and step % every == 0

    def _settle(self, job: Job) -> None:
        """Let what the job wrote count, and publish it where its step is one to be published."""
        engine, publishing = self.engine, self._publishing(job.step)
        if not engine.policy.keeps_weights:
            return
        engine.files.turn([index for index in job.active if publishing or index not in engine.records.resident])
        self._unpublished.update(job.active)
        if publishing:
            self._unpublished.difference_update(job.active)
            self._publish(job.step, job.groups)

    def publish_rest(self) -> None:
        """Publish the steps since the last one that was, if there are any. Between steps only."""
        if self._unpublished:
            self._publish(self.engine.steps, self.engine.describe_groups())

    def _publish(self, step: int, groups: list[dict]) -> None:
        engine = self.engine
        for index in sorted(self._unpublished):
            self._write_rest(engine.partitions[index])
        engine.files.publish(step, [tracked.step for tracked in engine.tracked], groups, engine.layout_described)
        self._unpublished.clear()

    def _write_rest(self, part: Partition) -> None:
        """Bring to disk what steps that were not published left out: the weights, and records that stay in RAM."""
        engine = self.engine
        record, start = engine.records.resident.get(part.index), 0
        if record is None:
            record, start = engine.records.buffers[0], part.state_bytes
            engine.records.cache.forget()
        mirror = engine.fields(part, record).weight
        for span in part.spans if mirror.size else ():  # a float16 weight is its master's rounding, which is in the state
            view = HostView(engine.tracked[span.parameter].local, None)
            write_mirror(mirror[span.offset : span.offset + span.length], view.words, span)
        nbytes = engine.record_bytes(part)
        if nbytes > start:
            engine.files.write(part.index, record[start:nbytes], start)
            engine.files.turn([part.index])
            with self._counting:
                engine.bytes_written += nbytes - start

    def forget_unpublished(self) -> None:
        """The state is a published one again, or all of it was replaced and published."""
        self._unpublished.clear()
