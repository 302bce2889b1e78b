"""The gradients of one step: whether the loop can use them, whether they are finite, how long they are as one vector."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping

import numpy as np
import torch

from offload_lab.devices import View
from offload_lab.kernels import Kernel
from offload_lab.link import Link
from offload_lab.sharded import is_sharded

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


def accumulate_in_float32(parameter: torch.Tensor, name: str) -> None:
    """Let autograd keep and sum the gradient of a 16-bit parameter in float32. Raises RuntimeError where torch cannot."""
    if parameter.dtype == torch.float32:
        return
    if not hasattr(torch.Tensor, "grad_dtype"):
        raise RuntimeError(
            f'OffloadPolicy(gradients="float32"): {name} is {str(parameter.dtype).removeprefix("torch.")}, and only torch 2.9 '
            f'and newer keep its gradient in float32; this is {torch.__version__}. Use gradients="parameter".'
        )
    if parameter.is_leaf and parameter.grad_dtype != torch.float32:
        present, parameter.grad = parameter.grad, None  # it would be of the wrong dtype
        parameter.grad_dtype = torch.float32
        parameter.grad = None if present is None else present.float()


_PIECE = 1 << 22  # elements that one thread checks at a time


def not_finite(views: Mapping[int, View], kernel: Kernel, threads: int) -> list[int]:
    """The keys of those whose gradient holds an infinity or a NaN. Reads each gradient once, in no more memory, where it is."""
    rows, keys = [], []
    linked: dict[Link, list[int]] = {}
    for key, view in views.items():
        gradient = view.gradient
        if gradient is not None and view.link is not None:
            linked.setdefault(view.link, []).append(key)
        elif gradient is not None:
            numel, size = gradient.numel(), gradient.element_size()
            for at in range(0, numel, _PIECE):
                rows.append((view.gradient_address + at * size, min(_PIECE, numel - at), size, _INFINITY[gradient.dtype]))
                keys.append(key)
    culprits = [
        key
        for link, there in linked.items()
        for key, good in zip(there, link.finite([views[key].gradient for key in there]), strict=True)
        if not good
    ]
    if not rows:
        return culprits
    table = np.array(rows, np.int64)
    found = np.zeros(len(rows), np.bool_)
    if threads > 1 and table[:, 1].sum() > _PIECE:
        # Each thread takes every so-manieth row. (A slice with gaps would be of another type, and compiled in this moment.)
        workers = [threading.Thread(target=kernel.not_finite, args=(table, found, i, threads)) for i in range(1, threads)]
        for worker in workers:
            worker.start()
        kernel.not_finite(table, found, 0, threads)
        for worker in workers:
            worker.join()
    else:
        kernel.not_finite(table, found, 0, 1)
    return culprits + list(dict.fromkeys(key for key, bad in zip(keys, found.tolist(), strict=True) if bad))


def all_finite(copies: Iterable[torch.Tensor], kernel: Kernel) -> bool:
    """Whether all elements of these contiguous host tensors are, looked at in this thread."""
    rows = [(copy.data_ptr(), copy.numel(), copy.element_size(), _INFINITY[copy.dtype]) for copy in copies]
    found = np.zeros(len(rows), np.bool_)
    if rows:
        kernel.not_finite(np.array(rows, np.int64), found, 0, 1)
    return not found.any()


_TILE = 1 << 17  # elements that are converted to float32 at a time, so that they are still in the cache when they are summed


def total_norm(gradients: Iterable[torch.Tensor], norm_type: float = 2.0) -> float:
    """The norm of all gradients as one vector, wherever they are and whatever their dtype, summed in float32 or better.

    `norm_type` is 2 or infinity. Infinite or NaN where an element is.
    """
    if norm_type not in (2.0, math.inf):
        raise ValueError(f"norm_type={norm_type!r}: 2 and inf are the norms that clip_grad_norm_ takes")
    if norm_type == math.inf:
        largest = [float(gradient.detach().abs().max()) for gradient in gradients if gradient.numel()]
        return math.nan if any(map(math.isnan, largest)) else max(largest, default=0.0)
    return math.sqrt(sum(map(_square_sum, gradients)))


def _square_sum(gradient: torch.Tensor) -> float:
    if is_sharded(gradient):  # a collective: the other shards' squares count, too
        return float(torch.linalg.vector_norm(gradient.detach(), dtype=torch.float32).full_tensor()) ** 2
    total = 0.0
    for tile in gradient.detach().reshape(-1).split(_TILE):
        values = tile.float()
        squares = float(torch.dot(values, values))
        if math.isinf(squares):  # elements of 1e19 and more are finite, their squares are not
            squares = float(torch.dot(values.double(), values.double()))
        total += squares
    return total
