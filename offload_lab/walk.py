"""Reads a crowd in one compiled loop, where that is known to be right; `why_not` says where it is not, and why.

What Python says of 2,000 tensors takes it six times as long as their update. The loop asks torch's libraries the same
questions. That it gets the same answers is known for the editions of torch it was tried with, and asked once more in each
process, of tensors of every sort, before it is used.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from offload_lab.kernels import announced
from offload_lab.pipeline import uninterrupted
from offload_lab.reading import Reading

EDITIONS = ((2, 13),)
_NUMBER = {torch.float16: 5, torch.float32: 6, torch.bfloat16: 15}  # torch's numbers of dtypes


@functools.cache
def why_not() -> str | None:
    """Why the loop is not used here; None where it is. Ctrl-C while the loop is made ready takes effect after it."""
    return uninterrupted(_found_out)


def _found_out() -> str | None:
    edition = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit())
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64") or sys.implementation.name != "cpython":
        return "the compiled reader is for CPython on Linux, on x86-64 or Arm"
    if edition not in EDITIONS:
        known = ", ".join(f"{major}.{minor}" for major, minor in EDITIONS)
        return f"the compiled reader was tried with torch {known}, not with {torch.__version__}"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "this Python has no lock that would hold other threads back while the compiled reader runs"
    try:
        with announced("the reader of small parameters", cached=True):
            _loops()
            return None if _handle_at() is not None and _agrees() else "the compiled reader and Python disagree here"
    except (ImportError, OSError) as error:  # no numba, a full disk under its cache, a torch that was built otherwise
        return f"the compiled reader cannot be had: {error}"


@functools.cache
def _loops() -> Any:
    from offload_lab import compiled_crowd

    return compiled_crowd


@functools.cache
def _handle_at() -> int | None:
    """Where in the Python object of a tensor its handle is: there lies the address that `_cdata` tells. None: nowhere."""
    tensors = [torch.nn.Parameter(torch.zeros(i)) if i % 2 else torch.zeros(i) for i in range(8)]
    places = set(range(object.__basicsize__, torch._C.TensorBase.__basicsize__, 8))
    for tensor in tensors:
        places &= {at for at in places if ctypes.c_int64.from_address(id(tensor) + at).value == tensor._cdata}
    return places.pop() if len(places) == 1 else None


class Walk:
    """The reader of a crowd. `parameters` are in host memory, contiguous, and have a version counter; `dtypes` are those of
    their gradients. Weights and gradients are packed, each dtype's in the order given, and `carry` brings weights back."""

    def __init__(self, parameters: Sequence[torch.Tensor], dtypes: Sequence[torch.dtype]) -> None:
        self._loops, at = _loops(), _handle_at()
        self._parameters = list(parameters)  # their Python objects must not go while we have their addresses
        versions = [parameter._version for parameter in parameters]  # raises where there is no counter
        count = len(versions)
        c = self._loops
        table = np.zeros((count, c.COLUMNS), np.int64)
        table[:, c.HANDLE] = [id(parameter) + at for parameter in parameters]
        table[:, c.BEHIND] = [parameter._cdata for parameter in parameters]
        table[:, c.NUMEL] = [parameter.numel() for parameter in parameters]
        own = [parameter.dtype for parameter in parameters]
        self._packed: list[torch.Tensor] = []
        for dtype_of, number, size, place in (
            (own, c.DTYPE, c.SIZE, c.WEIGHT_AT),
            (dtypes, c.GRADIENT_DTYPE, c.GRADIENT_SIZE, c.GRADIENT_AT),
        ):
            table[:, number] = [_NUMBER[dtype] for dtype in dtype_of]
            table[:, size] = [dtype.itemsize for dtype in dtype_of]
            for dtype in dict.fromkeys(dtype_of):
                rows = np.array([one is dtype for one in dtype_of])
                counts = table[rows, c.NUMEL]
                packed = torch.zeros(int(counts.sum()), dtype=dtype)
                table[rows, place] = packed.data_ptr() + dtype.itemsize * (np.cumsum(counts) - counts)
                self._packed.append(packed)
        self._copies = self._packed[len(set(own)) :]
        self._look = True
        bare = torch.zeros(1)
        self._undefined = c.undefined(bare._cdata)
        self._places = table[:, c.WEIGHT_AT].copy()
        self._table, self._answer = table, np.zeros(1, np.int64)
        self._weights, self._versions, self._gradients = (np.zeros(count, np.int64) for _ in range(3))

    def read(self) -> Reading | None:
        if not self._loops.read(
            self._table, self._weights, self._versions, self._gradients, self._undefined, self._answer.ctypes.data
        ):
            return None
        return Reading(self._weights, self._places, self._versions, self._gradients, self._copies)

    def bump(self, present: np.ndarray) -> np.ndarray:
        # Who shares a counter with whom never changes as long as the tensors behind the handles are the same.
        apart = self._loops.bump(self._table, present, self._versions, self._look)
        self._look = not apart or (self._look and not present.all())
        return self._versions

    def carry(self, present: np.ndarray) -> None:
        self._loops.write(self._table, present, self._weights)


def _agrees() -> bool:
    """Whether the loop says what Python says of tensors of every sort that it may meet."""
    parameters = [torch.nn.Parameter(torch.zeros(5, 3, dtype=dtype)) for dtype in _NUMBER for _ in range(2)]
    with torch.no_grad():
        for count, parameter in enumerate(parameters):
            for _ in range(count):
                parameter.add_(1)
    for parameter in parameters[::2]:
        parameter.grad = torch.full_like(parameter, 0.5)
    walk = Walk(parameters, [parameter.dtype for parameter in parameters])
    present = np.array([parameter.grad is not None for parameter in parameters])

    def right() -> bool:
        found = walk.read()
        return (
            found is not None
            and found.weights.tolist() == [parameter.data_ptr() for parameter in parameters]
            and found.versions.tolist() == [parameter._version for parameter in parameters]
            and ((found.gradients != 0) == present).all()
            and all(bool((copy == 0.5).sum() * 2 == copy.numel()) for copy in found.copies)
        )

    if not right():
        return False
    before = [parameter._version for parameter in parameters]
    after = walk.bump(present).tolist()
    counted = [version + one for version, one in zip(before, present.tolist(), strict=True)]
    if not after == counted == [parameter._version for parameter in parameters]:
        return False
    parameter, kept = parameters[0], parameters[0].data
    for wrong in (kept.t(), kept[:3], kept.view(torch.int16).view(torch.bfloat16), kept.view(-1)[::2]):
        parameter.grad, parameter.data = None, wrong
        if walk.read() is not None:
            return False
    parameter.data = kept
    for wrong in (torch._neg_view(kept.clone()), torch.zeros(3, 5, dtype=kept.dtype).t(), kept.to_sparse()):
        parameter.grad = wrong
        if walk.read() is not None:
            return False
    return True
