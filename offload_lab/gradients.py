"""The gradients of one step: which parameters have one, whether the loop can use it, whether it is finite."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from offload_lab.devices import HostView
from offload_lab.kernels import Kernel

DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}
_INFINITY = {torch.float32: 0, torch.bfloat16: 0x7F80, torch.float16: 0x7C00}  # bit patterns, for the 16-bit dtypes


def check_parameter(parameter: torch.Tensor, name: str) -> None:
    """Raises TypeError naming the parameter when its state can't be kept: complex, integer, float64, or not strided."""
    if parameter.dtype not in DTYPES:
        raise TypeError(
            f"{name} is {str(parameter.dtype).removeprefix('torch.')}; OffloadAdamW keeps state for float32, bfloat16 and "
            "float16 parameters. Leave it to another optimizer, or convert the model."
        )
    if parameter.layout != torch.strided:
        raise TypeError(f"{name} is {parameter.layout}; OffloadAdamW needs dense (strided) parameters")


def check_gradient(gradient: torch.Tensor, name: str) -> None:
    """Raises RuntimeError naming the parameter for a sparse gradient, before any state has changed."""
    if gradient.layout != torch.strided:
        raise RuntimeError(
            f"the gradient of {name} is sparse ({gradient.layout}); OffloadAdamW needs dense gradients. "
            "Build the Embedding with sparse=False, or give this parameter to torch.optim.SparseAdam."
        )


def all_finite(views: Iterable[HostView], kernel: Kernel) -> bool:
    """Whether no gradient holds an infinity or a NaN. Reads each gradient once, in no more memory."""
    for view in views:
        gradient = view.gradient
        if gradient is not None and not kernel.all_finite(
            gradient.data_ptr(), gradient.numel(), gradient.element_size(), _INFINITY[gradient.dtype]
        ):
            return False
    return True
