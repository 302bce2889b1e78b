"""The update of one partition in pieces: the table that tells a kernel's loops of its spans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from offload_lab import update
from offload_lab.halves import low_halves
from offload_lab.job import Job
from offload_lab.kernels import Kernel
from offload_lab.partition import Partition
from offload_lab.staging import Staged
from offload_lab.storage.memory import as_bytes

_WEIGHT_SIZE = {"float32": 4, "bfloat16": 2, "float16": 2}


def in_a_row(numbers: np.ndarray) -> slice | np.ndarray:
    """`numbers` (int64, at least one) as an index: a slice where each is one more than the one before, since it copies
    nothing; else themselves."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if (np.diff(numbers) == 1).all() else numbers


class Layout:
    """What of a partition's table stays the same from step to step: filled once, so that a step with thousands of small
    parameters does no more for each than a few array operations do."""

    def __init__(self, part: Partition) -> None:
        self.part = part
        self.numbers = np.array([span.parameter for span in part.spans])
        self._where = in_a_row(self.numbers)
        self.distinct = list(dict.fromkeys(span.parameter for span in part.spans))
        self._offsets = np.array([span.offset for span in part.spans])
        self._starts = np.array([span.start for span in part.spans])
        self._table = update.table(part)  # filled in anew for each step; there is never more than one under way
        self._size = _WEIGHT_SIZE[part.dtype]

    def pieces(
        self,
        record: np.ndarray,
        job: Job,
        slices: int,
        with_weights: bool,
        kernel: Kernel,
        staged: Staged | None = None,
    ) -> list[Callable[[], None]]:
        """The update of the partition by `job`, in at most `slices` pieces that may run at the same time. What is on an
        accelerator is updated where it is `staged`."""
        part, numbers = self.part, self._where
        arrays = update.fields(part, record, with_weights)
        table = self._table
        wide, gradients = job.wide[numbers], job.gradients[numbers]
        weights, addresses = job.weights[numbers], gradients
        if self._starts.any():  # not where all parameters of the partition are small, and many
            weights = weights + self._starts * self._size
            addresses = np.where(gradients != 0, gradients + self._starts * np.where(wide, 4, self._size), 0)
        if staged is not None:
            linked = job.linked[numbers]
            weights = np.where(linked, staged.weights + self._offsets * self._size, weights)
            there = np.where(gradients != 0, staged.gradients + self._offsets * staged.gradient_size, 0)
            addresses = np.where(linked, there, addresses)
        table[:, update.WEIGHT_ADDRESS], table[:, update.GRADIENT_ADDRESS] = weights, addresses
        table[:, update.GRADIENT_FLOAT32] = wide
        table[:, update.EDITED] = job.edited[numbers]
        values = job.scalars[numbers]
        if part.state_dtype != "float32":
            table[:, update.SEED] = [update.seed(n, int(row[update.STEP])) for n, row in zip(self.numbers, values, strict=True)]
        if job.masters:
            self._take_masters(table, arrays, job)
        if part.dtype == "float16":
            self._keep_weights(table, arrays)
        per_piece = -(-part.numel // slices)
        return [
            lambda begin=begin: kernel.update(table, values, *arrays, begin, min(begin + per_piece, part.numel))
            for begin in range(0, part.numel, per_piece)
        ]

    def _take_masters(self, table: np.ndarray, arrays: update.Fields, job: Job) -> None:
        for row, span in enumerate(self.part.spans):
            if table[row, update.EDITED] and table[row, update.GRADIENT_ADDRESS] and span.parameter in job.masters:
                here = slice(span.offset, span.offset + span.length)
                arrays.master[here] = low_halves(
                    job.masters[span.parameter], table[row, update.WEIGHT_ADDRESS] - span.start * self._size, span
                )
                table[row, update.EDITED] = False

    def _keep_weights(self, table: np.ndarray, arrays: update.Fields) -> None:
        """A float16 record has no place for the weight but the master. Where a span has no gradient, the loop does nothing: so
        the master is given the weight here, unless it rounds to it, or a resume would find zeros there."""
        for row, span in enumerate(self.part.spans):
            if not table[row, update.GRADIENT_ADDRESS]:
                master = arrays.master[span.offset : span.offset + span.length]
                weight = as_bytes(int(table[row, update.WEIGHT_ADDRESS]), 2 * span.length).view(np.float16)
                with np.errstate(over="ignore"):
                    stale = master.astype(np.float16).view(np.uint16) != weight.view(np.uint16)
                master[stale] = weight[stale]
