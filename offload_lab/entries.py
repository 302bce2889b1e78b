"""A parameter's moments between a record and torch's state format, whatever they are kept in.

An entry has `exp_avg`, `exp_avg_sq` and, with amsgrad, `max_exp_avg_sq`, each of the parameter's shape: float32 as
`torch.optim.AdamW` has them, or torch.bfloat16. Moments in 8 bits have names of their own, so that an optimizer which does
not know them fails instead of taking codes for values: `exp_avg_8bit` (torch.int8), `exp_avg_sq_8bit` (torch.uint8), and
`exp_avg_scale`, `exp_avg_sq_scale`, a float32 for each 256 elements in flat order; `compiled_moments.py` says what they mean.
An entry of another format than the record's is converted, each value to the nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import torch

from offload_lab.halves import flat
from offload_lab.moments import closed, opened
from offload_lab.partition import QUANTUM, Kind, Span
from offload_lab.update import Fields


def moments_of(kind: Kind) -> tuple[str, ...]:
    """The names of the moments that a parameter of `kind` has."""
    return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if kind.amsgrad else ("exp_avg", "exp_avg_sq")


Zeros = Callable[[torch.Size, torch.dtype], torch.Tensor]


def in_memory(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def empty(kind: Kind, shape: torch.Size, zeros: Zeros = in_memory) -> dict[str, torch.Tensor]:
    """The moments of a parameter that was never stepped, in the record's own format: zeros on the host, made by `zeros`."""
    if kind.state_dtype != "int8":
        dtype = torch.float32 if kind.state_dtype == "float32" else torch.bfloat16
        return {name: zeros(shape, dtype) for name in moments_of(kind)}
    made = {}
    for name in moments_of(kind):
        made[f"{name}_8bit"] = zeros(shape, torch.int8 if name == "exp_avg" else torch.uint8)
        made[f"{name}_scale"] = zeros(torch.Size([-(-prod(shape) // QUANTUM)]), torch.float32)
    return made


def check(kind: Kind, entry: Mapping[str, Any], shape: torch.Size, name: str) -> None:
    """Raises ValueError naming the parameter where `entry` does not fit one of `kind` and `shape`."""
    if "max_exp_avg_sq" in entry and not kind.amsgrad:
        raise ValueError(
            f"the checkpoint of {name} has max_exp_avg_sq, so it is of amsgrad=True; this optimizer was built with "
            "amsgrad=False. Build it with amsgrad=True."
        )
    for moment in moments_of(kind):
        coded = f"{moment}_8bit" in entry
        found = f"{moment}_8bit" if coded else moment
        if found not in entry:
            hint = "it is of amsgrad=False" if moment == "max_exp_avg_sq" else "is it of an Adam or AdamW optimizer?"
            raise ValueError(f"the checkpoint of {name} has no {moment!r}; {hint}")
        if tuple(entry[found].shape) != tuple(shape):
            raise ValueError(
                f"the checkpoint's {found} of {name} has shape {tuple(entry[found].shape)}, the parameter has {tuple(shape)}"
            )
        if not coded:
            continue
        dtype = torch.int8 if moment == "exp_avg" else torch.uint8
        scale, blocks = entry.get(f"{moment}_scale"), -(-prod(shape) // QUANTUM)
        if entry[found].dtype != dtype or scale is None or scale.numel() != blocks:
            raise ValueError(
                f"the checkpoint's {found} of {name} is not what this edition writes: {dtype} with {blocks} float32 numbers "
                f"as {moment}_scale"
            )


def export(kind: Kind, fields: Fields, span: Span, block: int, entry: dict[str, torch.Tensor]) -> None:
    """Copy a span's moments, unchanged, from its record into `entry` (made by `empty`). `block` is the index of the span's
    first scale."""
    here, there = slice(span.offset, span.offset + span.length), slice(span.start, span.start + span.length)
    for name in moments_of(kind):
        stored = getattr(fields, name)
        if kind.state_dtype == "int8":
            entry[f"{name}_8bit"].view(-1).numpy()[there] = stored[here]
            blocks = _blocks(span)
            scale = getattr(fields, f"{name}_scale")[block : block + blocks.stop - blocks.start]
            entry[f"{name}_scale"].numpy()[blocks] = scale
        elif kind.state_dtype == "bfloat16":
            entry[name].view(-1).view(torch.int16).numpy()[there] = stored[here].view(np.int16)
        else:
            entry[name].view(-1).numpy()[there] = stored[here]


def restore(kind: Kind, fields: Fields, span: Span, block: int, entry: Mapping[str, Any]) -> None:
    """Set a span's moments in its record from `entry`, which `check` has passed: unchanged where it is of the record's
    format, else each value to the nearest."""
    here = slice(span.offset, span.offset + span.length)
    for name in moments_of(kind):
        stored = getattr(fields, name)
        if f"{name}_8bit" in entry:
            codes = _part(entry[f"{name}_8bit"], span).numpy()
            scale = flat(entry[f"{name}_scale"])[_blocks(span)]
            if stored.dtype != codes.dtype:
                codes, scale = closed(opened(codes, scale, span.start), stored.dtype)
            stored[here] = codes
        else:  # a bfloat16 value is its own nearest
            stored[here], scale = closed(flat(_part(entry[name], span)), stored.dtype)
        if kind.state_dtype == "int8":
            getattr(fields, f"{name}_scale")[block : block + scale.size] = scale


def _part(tensor: torch.Tensor, span: Span) -> torch.Tensor:
    """A span's elements, in host memory."""
    return tensor.detach().contiguous().view(-1)[span.start : span.start + span.length].to("cpu")


def _blocks(span: Span) -> slice:
    """A span's scales among those of its parameter."""
    return slice(span.start // QUANTUM, -(-(span.start + span.length) // QUANTUM))


def as_float32(entry: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The moments of an entry of any format, as float32 host tensors of the parameter's shape."""
    values = {}
    for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"):
        if f"{name}_8bit" in entry:
            codes = entry[f"{name}_8bit"].detach().to("cpu").contiguous()
            opened_codes = opened(codes.view(-1).numpy(), flat(entry[f"{name}_scale"]))
            values[name] = torch.from_numpy(opened_codes).view(codes.shape)
        elif name in entry:
            values[name] = entry[name].detach().to("cpu", torch.float32)
    return values
