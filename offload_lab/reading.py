"""What many small parameters are at one moment, read all together: the shape of it, and the way that Python has."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np
import torch

from offload_lab.devices import in_host_memory

_dtype, _is_cpu, _version, _grad = (attrgetter(name) for name in ("dtype", "is_cpu", "_version", "grad"))


class Reading(NamedTuple):
    """What the members are at one moment, in arrays of one number each, and copies of their gradients."""

    weights: np.ndarray
    """Addresses."""
    places: np.ndarray
    """Addresses of what is updated in their place: their own, or those of copies."""
    versions: np.ndarray
    gradients: np.ndarray
    """Addresses in `copies`; 0 where there is none."""
    copies: list[torch.Tensor]


class Reader(Protocol):
    def read(self) -> Reading | None:
        """None where something is not as it was."""

    def bump(self, present: np.ndarray) -> np.ndarray:
        """Count the version of those up that are `present` (bool); the versions of all after it."""

    def carry(self, present: np.ndarray) -> None:
        """Bring updated copies of the weights that are `present` back to the parameters."""


class Attributes:
    """Reads by Python, an attribute at a time. Gradients come together by `torch.cat`, which takes any stride, and whose
    result is of another dtype, or not there, as soon as one of them is not what it was."""

    def __init__(self, parameters: Sequence[torch.Tensor], dtypes: Sequence[torch.dtype]) -> None:
        self._parameters = list(parameters)
        self._dtypes = [parameter.dtype for parameter in parameters]
        self._numels = [parameter.numel() for parameter in parameters]
        batches: dict[tuple, list[int]] = {}  # cat wants the same shape behind the first dimension
        for i, (parameter, dtype) in enumerate(zip(parameters, dtypes, strict=True)):
            batches.setdefault((dtype, parameter.dim() == 0, parameter.shape[1:]), []).append(i)
        self._batches = [(key[0], torch.stack if key[1] else torch.cat, members) for key, members in batches.items()]

    def read(self) -> Reading | None:
        parameters = self._parameters
        if (
            list(map(_dtype, parameters)) != self._dtypes
            or list(map(torch.Tensor.numel, parameters)) != self._numels
            or not all(map(_is_cpu, parameters))
            or not all(map(torch.Tensor.is_contiguous, parameters))
        ):
            return None
        weights = np.array(list(map(torch.Tensor.data_ptr, parameters)), np.int64)
        versions = np.array(list(map(_version, parameters)), np.int64)
        present, addresses = list(map(_grad, parameters)), np.zeros(len(parameters), np.int64)
        copies = []
        for dtype, joined, members in self._batches:
            there = [i for i in members if present[i] is not None]
            if not there:
                continue
            try:
                copy = joined([present[i] for i in there])
            except (RuntimeError, TypeError):  # on several devices, sparse, of a class of its own: not for us
                return None
            counts = [self._numels[i] for i in there]
            if type(copy) is not torch.Tensor or copy.layout is not torch.strided or copy.dtype is not dtype:
                return None
            if not in_host_memory(copy) or copy.numel() != sum(counts):
                return None
            addresses[there] = copy.data_ptr() + copy.element_size() * (np.cumsum(counts) - counts)
            copies.append(copy)
        return Reading(weights, weights, versions, addresses, copies)

    def bump(self, present: np.ndarray) -> np.ndarray:
        parameters = self._parameters
        if not present.all():
            parameters = [parameters[i] for i in np.flatnonzero(present)]
        torch.autograd.graph.increment_version(parameters)
        return np.array(list(map(_version, self._parameters)), np.int64)

    def carry(self, present: np.ndarray) -> None:
        pass  # they were updated where they are
