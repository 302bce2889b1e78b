"""Carries out the job of one step: the schedule for its partitions, run through the pipeline, and published."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from offload_lab import pipeline, schedule
from offload_lab.job import Job
from offload_lab.partition import BLOCK
from offload_lab.schedule import Item, Task, in_order
from offload_lab.storage.direct_io import StorageError

if TYPE_CHECKING:
    from offload_lab.engine import Engine

_SMALL = 1 << 16  # elements below which a second thread costs more than it brings


class Execution:
    """Runs jobs on the records and files of `engine`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.last: tuple[float, float] | None = None
        """When the last step that was published began and ended, on the trace's clock."""
        self._counting = threading.Lock()

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
            self._publish(job)
        except BaseException as error:
            self.engine.steps -= 1
            self.engine.failed = error
            raise
        self.last = (min(began, job.asked), time.perf_counter())

    def begin(self, job: Job) -> pipeline.Run:
        """Start the job, whose updates wait for their gradients. `carry_out` ends it."""
        items = [self._item(index) for index in job.active]
        self._count_needed(items, job)
        self.engine.records.cache.forget()
        return self._pipeline(schedule.step(items, self.engine.records.cache, gradients=True), job, job.active).start()

    def _run(self, job: Job, partitions: list[int]) -> None:
        items = [self._item(index) for index in partitions]
        following = in_order(job.active, self.engine.policy.order, job.step)
        tasks = schedule.step(items, self.engine.records.cache, following=following, write_back=self.write_back)
        self._pipeline(tasks, job, partitions).here()
        self._count_needed(items, job)
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
            if task.kind == "update":
                job.updated(engine.layouts[task.partition].distinct)
            elif task.kind == "write" and not engine.policy.keeps_weights:
                engine.files.turn(task.partition)  # scratch: nothing is published, the newest counts
            with self._counting:
                engine.bytes_read += task.nbytes if task.kind == "read" else 0
                engine.bytes_written += task.nbytes if task.kind == "write" else 0

        io = engine.policy.io_threads
        widths = {"backward": 1, "cpu": slices, "disk-read": io, "disk-write": io}
        return pipeline.Run(tasks, lambda task: self._pieces(task, job, slices), widths, engine.trace, ended)

    def read_ahead(self, job: Job) -> None:
        """The reads with which the next step begins, if it is like this one."""
        items = [self._item(index) for index in in_order(job.active, self.engine.policy.order, job.step)]
        tasks = schedule.ahead(items, self.engine.records.cache)
        if not tasks:
            return
        try:
            self._pipeline(tasks, job, ()).here()
        except StorageError:  # the step, which is over, had no part in it; the next one reads again and meets it
            self.engine.records.cache.forget()

    def _item(self, index: int) -> Item:
        part, resident = self.engine.partitions[index], index in self.engine.records.resident
        written = (
            self.engine.record_bytes(part)
            if self.engine.files is not None and (not resident or self.engine.policy.keeps_weights)
            else 0
        )
        stored = self.engine.files is not None and (
            self.engine.files.slots[index] is not None or index in self.engine.records.cache.debts()
        )
        return Item(index, part.state_bytes if stored and not resident else 0, written, resident)

    @property
    def write_back(self) -> bool:
        """Whether a partition is written only when its buffer is wanted: nothing on disk has to be whole between steps, and
        the buffers are many enough to be worth it."""
        return not self.engine.policy.keeps_weights and self.engine.policy.residency in ("lru", "furthest")

    def _pieces(self, task: Task, job: Job, slices: int) -> list[pipeline.Piece]:
        part = self.engine.partitions[task.partition]
        if task.kind == "gradient":
            return [lambda: job.wait_for_gradients(part.index)]
        record = self.engine.records.resident[part.index] if task.buffer is None else self.engine.records.buffers[task.buffer]
        if task.kind == "update":
            layout = self.engine.layouts[part.index]
            return layout.pieces(record, job, slices, self.engine.policy.keeps_weights, self.engine.kernel)
        if task.kind == "read" and task.nbytes == 0:  # never written: its state is all zero
            return [lambda: record[: part.state_bytes].fill(0)]
        transfer = self.engine.files.read if task.kind == "read" else self.engine.files.write
        chunk = max(BLOCK, self.engine.policy.chunk_bytes // BLOCK * BLOCK)
        return [
            lambda at=at: transfer(part.index, record[at : min(at + chunk, task.nbytes)], at)
            for at in range(0, task.nbytes, chunk)
        ]

    def _publish(self, job: Job) -> None:
        if self.engine.policy.keeps_weights:
            slots = self.engine.files.turned(job.active)
            self.engine.files.publish(
                self.engine.manifest(job.step, slots, [tracked.step for tracked in self.engine.tracked], job.groups)
            )
