"""The update of one partition in pieces: the table that tells a kernel's loops of its spans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from offload_lab import update
from offload_lab.halves import low_halves
from offload_lab.job import Job
from offload_lab.kernels import Kernel
from offload_lab.partition import Partition


def pieces(
    part: Partition, record: np.ndarray, job: Job, slices: int, with_weights: bool, kernel: Kernel
) -> list[Callable[[], None]]:
    """The update of `part` by `job`, in at most `slices` pieces that may run at the same time."""
    table = update.table(part)
    values = np.zeros((len(part.spans), update.SCALAR_FIELDS), np.float32)
    arrays = update.fields(part, record, with_weights)
    for row, span in enumerate(part.spans):
        view = job.views[span.parameter]
        at = span.start * view.weight.element_size()
        gradient = wide = 0
        if view.gradient is not None:
            gradient = view.gradient.data_ptr() + span.start * view.gradient.element_size()
            wide = view.gradient.dtype != view.weight.dtype
        edited = span.parameter in job.edited
        if edited and gradient and span.parameter in job.masters:
            arrays.master[span.offset : span.offset + span.length] = low_halves(job.masters[span.parameter], view.weight, span)
            edited = False
        table[row, update.WEIGHT_ADDRESS], table[row, update.GRADIENT_ADDRESS] = view.weight.data_ptr() + at, gradient
        table[row, update.EDITED], table[row, update.GRADIENT_FLOAT32] = edited, wide
        if gradient:
            values[row] = job.scalars[span.parameter]
            table[row, update.SEED] = update.seed(span.parameter, int(job.scalars[span.parameter][update.STEP]))
    per_piece = -(-part.numel // slices)
    return [
        lambda begin=begin: kernel.update(table, values, *arrays, begin, min(begin + per_piece, part.numel))
        for begin in range(0, part.numel, per_piece)
    ]
