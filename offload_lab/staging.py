"""Pinned host memory through which the gradients and weights of a partition pass on their way to the update and back.

A partition whose parameters are on an accelerator is fetched (weights and gradients, span by span) into a slab, updated
there, and its weights are sent back. The weights come down, too: the model's own 16-bit weight is the high half of the master,
and nothing else remembers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from offload_lab.link import Copy, Link, host
from offload_lab.partition import Partition, Span, round_up
from offload_lab.residency import SLABS
from offload_lab.storage.memory import Slab

if TYPE_CHECKING:
    from offload_lab.job import Job

_SIZE = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Staged:
    """A partition in a slab: byte addresses of element 0 of its weights and gradients, and bytes a gradient element."""

    weights: int
    gradients: int
    gradient_size: int


class Staging:
    """`SLABS` slabs of one size, made when the first is needed and larger ones when one has to be; given back by `close`."""

    def __init__(self) -> None:
        self._slabs: list[Slab] = []
        self._pinned: list[tuple[Link, Slab]] = []
        self.why: str | None = None
        """Why the slabs are not pinned, where they could not be."""

    @property
    def nbytes(self) -> int:
        return sum(slab.nbytes for slab in self._slabs)

    def reserve(self, nbytes: int, links: set[Link]) -> None:
        """Make sure that a slab holds `nbytes` and is pinned for `links`. Between steps only."""
        if not self._slabs or self._slabs[0].nbytes < nbytes:
            self.close()
            self._slabs = [Slab(nbytes) for _ in range(SLABS)]
        for link in links - {link for link, _ in self._pinned}:
            for slab in self._slabs:
                refused = link.pin(slab)
                if refused is None:
                    self._pinned.append((link, slab))
                else:
                    self.why = refused

    def staged(self, slab: int, part: Partition, job: Job) -> Staged:
        address = self._slabs[slab].bytes.ctypes.data
        after_weights = round_up(_SIZE[part.dtype] * part.numel, 64)
        wide = any(job.wide[span.parameter] for span in part.spans)
        return Staged(address, address + after_weights, 4 if wide else _SIZE[part.dtype])

    def fetch(self, slab: int, part: Partition, job: Job) -> None:
        """Bring the weights and gradients of a partition into `slab`; returns when they are there."""
        staged, copies = self.staged(slab, part, job), []
        for span in part.spans:
            view = job.views.get(span.parameter)
            if view is None or view.link is None:  # in host memory, taken up by itself or in a crowd
                continue
            here = self._host(slab, span.offset * _SIZE[part.dtype], span, view.weight.dtype)
            copies.append(view.link.fetch(_device(view.weight, span), here, view.after))
            if view.gradient is not None:
                at = staged.gradients - staged.weights + span.offset * staged.gradient_size
                there = self._host(slab, at, span, view.gradient.dtype)
                copies.append(view.link.fetch(_device(view.gradient, span), there, view.after))
        _wait(copies)

    def send(self, slab: int, part: Partition, job: Job) -> None:
        """Carry the new weights of a partition to the device; returns when they are there."""
        copies = []
        for span in part.spans:
            view = job.views.get(span.parameter)
            if view is not None and view.link is not None and view.gradient is not None:
                here = self._host(slab, span.offset * _SIZE[part.dtype], span, view.weight.dtype)
                copies.append(view.link.send(here, _device(view.weight, span), view.after))
        _wait(copies)

    def _host(self, slab: int, at: int, span: Span, dtype: torch.dtype) -> torch.Tensor:
        return host(self._slabs[slab], at, span.length, dtype)

    def close(self) -> None:
        for link, slab in self._pinned:
            link.unpin(slab)
        for slab in self._slabs:
            slab.close()
        self._pinned, self._slabs = [], []


def _device(tensor: torch.Tensor, span: Span) -> torch.Tensor:
    return tensor[span.start : span.start + span.length]


def _wait(copies: list[Copy]) -> None:
    """All of them, even if one fails: the slab belongs to the next partition after this."""
    failed: list[BaseException] = []
    for copy in copies:
        try:
            copy.wait()
        except Exception as error:  # carried on, below
            failed.append(error)
    if failed:
        raise failed[0]
