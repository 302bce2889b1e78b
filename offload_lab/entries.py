"""A parameter's moments between a record and torch's state format, whatever they are kept in.

An entry has `exp_avg`, `exp_avg_sq` and, with amsgrad, `max_exp_avg_sq`, each of the parameter's shape: float32 as
`torch.optim.AdamW` has them, or torch.bfloat16; or, for "int8", torch.int8 (`exp_avg`) and torch.uint8 (`exp_avg_sq`), with
`exp_avg_scale` and `exp_avg_sq_scale` beside them, a float32 for each 256 elements in flat order. What `compiled_moments.py`
says of the formats holds here too. An entry of another format than the record's is converted, each value to the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch

from offload_lab.halves import flat
from offload_lab.moments import closed, opened
from offload_lab.partition import QUANTUM, Kind, Span
from offload_lab.update import Fields

_TORCH = {
    "float32": (torch.float32, torch.float32),
    "bfloat16": (torch.bfloat16, torch.bfloat16),
    "int8": (torch.int8, torch.uint8),
}
_SCALED = {torch.int8: np.int8, torch.uint8: np.uint8}


def moments_of(kind: Kind) -> tuple[str, ...]:
    """The names of the moments that a parameter of `kind` has."""
    return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if kind.amsgrad else ("exp_avg", "exp_avg_sq")


def empty(kind: Kind, shape: torch.Size) -> dict[str, torch.Tensor]:
    """The moments of a parameter that was never stepped, in the record's own format: zeros in host memory."""
    signed, unsigned = _TORCH[kind.state_dtype]
    made = {name: torch.zeros(shape, dtype=signed if name == "exp_avg" else unsigned) for name in moments_of(kind)}
    if kind.state_dtype == "int8":
        made |= {f"{name}_scale": torch.zeros(-(-prod(shape) // QUANTUM)) for name in moments_of(kind)}
    return made


def check(kind: Kind, entry: Mapping[str, Any], shape: torch.Size, name: str) -> None:
    """Raises ValueError naming the parameter where `entry` does not fit one of `kind` and `shape`."""
    if "max_exp_avg_sq" in entry and not kind.amsgrad:
        raise ValueError(
            f"the checkpoint of {name} has max_exp_avg_sq, so it is of amsgrad=True; this optimizer was built with "
            "amsgrad=False. Build it with amsgrad=True."
        )
    for moment in moments_of(kind):
        if moment not in entry:
            hint = "it is of amsgrad=False" if moment == "max_exp_avg_sq" else "is it of an Adam or AdamW optimizer?"
            raise ValueError(f"the checkpoint of {name} has no {moment!r}; {hint}")
        if tuple(entry[moment].shape) != tuple(shape):
            raise ValueError(
                f"the checkpoint's {moment} of {name} has shape {tuple(entry[moment].shape)}, the parameter has {tuple(shape)}"
            )
        if entry[moment].dtype in _SCALED:
            scale, blocks = entry.get(f"{moment}_scale"), -(-prod(shape) // QUANTUM)
            if scale is None or scale.numel() != blocks:
                raise ValueError(f"the checkpoint's {moment} of {name} is in 8 bits and lacks its {blocks} scales")


def export(kind: Kind, fields: Fields, span: Span, block: int, entry: dict[str, torch.Tensor]) -> None:
    """Copy a span's moments, unchanged, from its record into `entry` (made by `empty`). `block` is the index of the span's
    first scale."""
    here, there = slice(span.offset, span.offset + span.length), slice(span.start, span.start + span.length)
    for name in moments_of(kind):
        stored = getattr(fields, name)
        _raw(entry[name], stored.dtype)[there] = stored[here]
        if kind.state_dtype == "int8":
            count, first = -(-span.length // QUANTUM), span.start // QUANTUM
            entry[f"{name}_scale"].numpy()[first : first + count] = getattr(fields, f"{name}_scale")[block : block + count]


def restore(kind: Kind, fields: Fields, span: Span, block: int, entry: Mapping[str, Any]) -> None:
    """Set a span's moments in its record from `entry`, which `check` has passed: unchanged where it is of the record's
    format, else each value to the nearest."""
    here, there = slice(span.offset, span.offset + span.length), slice(span.start, span.start + span.length)
    blocks = slice(span.start // QUANTUM, -(-there.stop // QUANTUM))
    for name in moments_of(kind):
        stored, tensor = getattr(fields, name), entry[name].detach()
        scaled = _SCALED.get(tensor.dtype)
        scale = flat(entry[f"{name}_scale"])[blocks] if scaled else None
        if scaled == stored.dtype:
            values = tensor.to("cpu").contiguous().view(-1).numpy()[there]
        else:
            part = tensor.contiguous().view(-1)[there].to("cpu")
            values = opened(part.numpy(), scale) if scaled else flat(part)
            values, scale = closed(values, stored.dtype)
        stored[here] = values
        if kind.state_dtype == "int8":
            getattr(fields, f"{name}_scale")[block : block + scale.size] = scale


def _raw(tensor: torch.Tensor, dtype: np.dtype) -> np.ndarray:
    """A contiguous host tensor's elements as the record has them, flat."""
    flattened = tensor.view(-1)
    return flattened.view(torch.int16).numpy().view(np.uint16) if dtype == np.uint16 else flattened.numpy()
