"""The update as training has it: real steps of `OffloadAdamW`, large ones for the bandwidth, tiny ones for what a step takes
beside its bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from offload_lab.hardware import Figure
from offload_lab.optimizer import OffloadAdamW
from offload_lab.policy import OffloadPolicy
from offload_lab.probes.timing import repeat, spread

BYTES_HELD = 14  # an element: weight and gradient 2 each, record 10
BYTES_MOVED = 28
"""Reads: the gradient twice, as it is looked through for what is not finite, 4; weight 2, moments 8, low half 2. Writes: the
last three again. As `engine_bytes.py` counts a step."""
_TENSOR = 4 << 20  # elements; a layer of a large model
_TINY, _MANY = 16, 256


@contextlib.contextmanager
def _steps(sizes: Sequence[int], policy: OffloadPolicy) -> Iterator[OffloadAdamW]:
    """The optimizer of bfloat16 parameters of these sizes that have gradients; closed at the end."""
    parameters = [torch.nn.Parameter(torch.full((size,), 0.5, dtype=torch.bfloat16)) for size in sizes]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.01)
    with OffloadAdamW(parameters, lr=1e-6, offload=policy) as optimizer:
        yield optimizer


def update_bandwidth(elements: int, seconds: float) -> Figure:
    """Bytes a second, reads and writes together, of steps of `elements` bfloat16 parameters with their state in RAM.

    Raises MemoryError where the system refuses the memory.
    """
    whole, rest = divmod(elements, _TENSOR)
    with _steps([_TENSOR] * whole + [rest] * bool(rest), OffloadPolicy()) as optimizer:
        rates = [BYTES_MOVED * elements / taken for taken in repeat(optimizer.step, seconds)]
        kernel = optimizer.stats()["kernel"]
    note = (
        f"steps of {elements:,} bfloat16 parameters in RAM, {BYTES_MOVED} bytes each, {torch.get_num_threads()} threads, "
        f"{kernel}; {spread(rates)}"
    )
    return Figure(statistics.median(rates), "measured", note)


def step_seconds(seconds: float) -> tuple[Figure, Figure]:
    """What a step in RAM takes beside its bytes: (seconds a step, seconds a tensor)."""
    taken = []
    for count in (1, _MANY):
        with _steps([_TINY] * count, OffloadPolicy()) as optimizer:
            taken.append(statistics.median(repeat(optimizer.step, seconds / 2)))
    a_tensor = max(0.0, taken[1] - taken[0]) / (_MANY - 1)
    return (
        Figure(taken[0], "measured", f"a step of one tensor of {_TINY} elements in RAM"),
        Figure(a_tensor, "measured", f"steps of 1 and of {_MANY} tensors of {_TINY} elements in RAM"),
    )


def publish_seconds(directory: Path, seconds: float) -> Figure:
    """Seconds in which a step on the disk under `directory` makes itself durable, beside its bytes. Leaves no file.

    Raises StorageError where the disk refuses.
    """
    folder = tempfile.mkdtemp(prefix=f".offload-measure-{os.getpid()}-", dir=directory)
    try:
        with _steps([_TINY], OffloadPolicy(tier="disk", directory=Path(folder) / "state")) as optimizer:
            taken = repeat(optimizer.step, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    note = f"a step of one tensor of {_TINY} elements on disk; median of {len(taken)}"
    return Figure(statistics.median(taken), "measured", note)
