"""The compiled loops on one partition: which arrays of its record they take, and the table that tells them of its spans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from offload_lab import update
from offload_lab.halves import low_halves
from offload_lab.job import Job
from offload_lab.partition import Partition
from offload_lab.storage.memory import field

_LOOPS = {"float32": update.update_float32, "bfloat16": update.update_bfloat16, "float16": update.update_float16}


def fields(part: Partition, record: np.ndarray, with_weights: bool) -> tuple[np.ndarray, ...]:
    """Views of a record in the order in which the update loop takes them: moments, master or its low half, mirror."""
    n = part.numel
    views = [field(record, part.exp_avg_at, n, np.float32), field(record, part.exp_avg_sq_at, n, np.float32)]
    if part.dtype == "float16":
        return (*views, field(record, part.master_at, n, np.float32))
    word = np.float32 if part.dtype == "float32" else np.uint16
    if part.dtype == "bfloat16":
        views.append(field(record, part.master_at, n, np.uint16))
    views.append(field(record, part.weight_at, n if with_weights else 0, word))
    return tuple(views)


def pieces(part: Partition, record: np.ndarray, job: Job, slices: int, with_weights: bool) -> list[Callable[[], None]]:
    """The update of `part` by `job`, in at most `slices` pieces that may run at the same time."""
    table = np.zeros((len(part.spans), update.ROW_FIELDS), np.int64)
    values = np.zeros((len(part.spans), update.SCALAR_FIELDS), np.float32)
    arrays = fields(part, record, with_weights)
    for row, span in enumerate(part.spans):
        view = job.views[span.parameter]
        at = span.start * view.weight.element_size()
        gradient = wide = 0
        if view.gradient is not None:
            gradient = view.gradient.data_ptr() + span.start * view.gradient.element_size()
            wide = view.gradient.dtype != view.weight.dtype
        edited = span.parameter in job.edited
        if edited and gradient and span.parameter in job.masters:
            arrays[2][span.offset : span.offset + span.length] = low_halves(job.masters[span.parameter], view.weight, span)
            edited = False
        table[row] = view.weight.data_ptr() + at, gradient, span.offset, span.length, edited, wide
        if gradient:
            values[row] = job.scalars[span.parameter]
    loop = _LOOPS[part.dtype]
    per_piece = -(-part.numel // slices)
    return [
        lambda begin=begin: loop(table, values, *arrays, begin, min(begin + per_piece, part.numel))
        for begin in range(0, part.numel, per_piece)
    ]
