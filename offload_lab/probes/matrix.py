"""Matrix throughput, of the host or of an accelerator."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from offload_lab.hardware import Figure
from offload_lab.probes.timing import repeat, spread


def matrix_flops(
    device: torch.device, dtype: torch.dtype, size: int, seconds: float, wait: Callable[[], None] = lambda: None
) -> Figure:
    """FLOP a second of `size` × `size` matrix products, 2 · size³ each. `wait()` returns when the device has nothing left to
    do. Raises RuntimeError where the device has no such product."""
    left = torch.full((size, size), 0.5, dtype=dtype, device=device)
    right, out = torch.full_like(left, 0.25), torch.empty_like(left)

    def product() -> None:
        torch.mm(left, right, out=out)
        wait()

    rates = [2 * size**3 / taken for taken in repeat(product, seconds)]
    name = str(dtype).removeprefix("torch.")
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    note = f"torch.mm of {size} × {size} {name} matrices{threads}; {spread(rates, 'TFLOP/s', 1e12)}"
    return Figure(statistics.median(rates), "measured", note)
