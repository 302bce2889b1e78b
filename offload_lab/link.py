"""The link between an accelerator and host memory: copies that run beside the computation, each with a moment to wait for.

A copy here starts after everything that the device had been told to do when `now()` was called, runs on a stream of its own,
and is over when its `Copy.wait()` returns. Nobody may touch the host side of a copy, or start the next one on it, before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch

from offload_lab.storage.memory import Slab

_FINITE_AT_A_TIME = 1 << 24  # elements; a check makes a tensor of flags, which must not be as large as an embedding


class Copy(Protocol):
    def wait(self) -> None:
        """Return when the copy is over."""


class Link(Protocol):
    """One device's link. `source` and `into` are flat and contiguous, of one dtype and length."""

    def now(self) -> Any:
        """A mark behind all that the device has been told to do so far."""

    def fetch(self, source: torch.Tensor, into: torch.Tensor, after: Any) -> Copy:
        """Begin to copy from the device, once it has passed the mark `after`."""

    def send(self, source: torch.Tensor, into: torch.Tensor, after: Any) -> Copy:
        """Begin to copy to the device, once it has passed the mark `after`: until then it may still read what is there."""

    def finite(self, gradients: Sequence[torch.Tensor]) -> list[bool]:
        """Whether all elements are, of each; looked at on the device."""

    def pin(self, slab: Slab) -> str | None:
        """Let the device reach a slab without a copy in between. Returns None, or why not: then it is slower, not wrong."""

    def unpin(self, slab: Slab) -> None:
        """Before the slab is given back."""


class _DeviceCopy:
    def __init__(self, event: torch.Event, kept: torch.Tensor) -> None:
        self._event, self._kept = event, kept  # the allocator must not hand the device's side to somebody else meanwhile

    def wait(self) -> None:
        self._event.synchronize()


class AcceleratorLink:
    """The link of `device`, with a stream for each direction."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._down, self._up = torch.Stream(device), torch.Stream(device)

    def now(self) -> torch.Event:
        event = torch.Event(self.device)
        event.record(torch.accelerator.current_stream(self.device))
        return event

    def fetch(self, source: torch.Tensor, into: torch.Tensor, after: torch.Event) -> Copy:
        return self._copy(self._down, source, into, after, kept=source)

    def send(self, source: torch.Tensor, into: torch.Tensor, after: torch.Event) -> Copy:
        return self._copy(self._up, source, into, after, kept=into)

    def _copy(self, stream: torch.Stream, source, into, after: torch.Event, kept: torch.Tensor) -> Copy:
        stream.wait_event(after)
        done = torch.Event(self.device)
        with _current(stream), torch.no_grad():
            into.copy_(source, non_blocking=True)
            done.record(stream)
        return _DeviceCopy(done, kept)

    def finite(self, gradients: Sequence[torch.Tensor]) -> list[bool]:
        flags = [
            torch.stack([torch.isfinite(tile).all() for tile in gradient.reshape(-1).split(_FINITE_AT_A_TIME)]).all()
            for gradient in gradients
        ]
        return torch.stack(flags).tolist() if flags else []  # one wait for all of them

    def pin(self, slab: Slab) -> str | None:
        # Registered, not asked of torch: its allocator of pinned memory rounds up to a power of two.
        if self.device.type != "cuda":
            return f"memory for {self.device.type} is not pinned here"
        error = torch.cuda.cudart().cudaHostRegister(slab.bytes.ctypes.data, slab.nbytes, 0)
        return None if int(error) == 0 else f"pinning {slab.nbytes:,} bytes was refused (cudaHostRegister: {error})"

    def unpin(self, slab: Slab) -> None:
        if self.device.type == "cuda":
            torch.cuda.cudart().cudaHostUnregister(slab.bytes.ctypes.data)


@contextmanager
def _current(stream: torch.Stream) -> Iterator[None]:
    """Let this thread's work on the stream's device go to `stream`."""
    before = torch.accelerator.current_stream(stream.device)
    torch.accelerator.set_stream(stream)
    try:
        yield
    finally:
        torch.accelerator.set_stream(before)


_links: dict[torch.device, Link] = {}
_pretended: list[Link] = []


@contextmanager
def pretended(link: Link) -> Iterator[None]:
    """Within it, what is in host memory is taken to be on a device behind `link`: for a machine that has none. An optimizer
    is built, used and closed within one such block."""
    _pretended.append(link)
    try:
        yield
    finally:
        _pretended.remove(link)


def link_of(tensor: torch.Tensor) -> Link | None:
    """The link of the device that `tensor` is on; None where it is in host memory, or on a device without streams."""
    if _pretended:
        return _pretended[-1]
    if tensor.is_cpu:
        return None
    device = tensor.device
    if device not in _links:
        here = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        if here is None or here.type != device.type or device.type == "mps":
            return None
        _links[device] = AcceleratorLink(device)
    return _links[device]


def host(slab: Slab, at: int, numel: int, dtype: torch.dtype) -> torch.Tensor:
    """`numel` elements of a slab from byte `at`, as a tensor without a copy."""
    buffer = (ctypes.c_uint8 * (numel * dtype.itemsize)).from_address(slab.bytes.ctypes.data + at)
    return torch.frombuffer(buffer, dtype=dtype, count=numel)
