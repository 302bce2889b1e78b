"""A link for machines without an accelerator: the engine's copies over it are real and counted, their seconds are made up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

from offload_lab.link import pretended
from offload_lab.storage.memory import Slab
from offload_lab.trace import Event

LANES = {"down": "device-to-host", "up": "host-to-device"}


class _LateCopy:
    def __init__(self, future: Future[None]) -> None:
        self._future = future

    def wait(self) -> None:
        self._future.result()


class PretendLink:
    """A full-duplex link of `down` and `up` bytes a second; None: as fast as the copy itself.

    Each way does one copy after the other. A copy is made when its turn comes and ends when its bytes would have crossed a
    link of that rate. `crossed` counts them. Raises ValueError for a rate that is not above 0.

        with PretendLink(down=2e9).in_place() as link: ...    # in it the engine takes every tensor for one on the device
    """

    def __init__(self, down: float | None = None, up: float | None = None) -> None:
        for name, rate in (("down", down), ("up", up)):
            if rate is not None and not rate > 0:
                raise ValueError(f"PretendLink({name}={rate!r}): bytes a second above 0, or None, are needed")
        self._rates = {"down": down, "up": up}
        self._lock = threading.Lock()
        self._lanes: dict[str, ThreadPoolExecutor] = {}
        self.crossed = {"down": 0, "up": 0}
        """Bytes by direction."""
        self.events: list[Event] = []

    @contextmanager
    def in_place(self) -> Iterator[PretendLink]:
        """The engine uses this link within; at the end its two threads are gone."""
        self._lanes = {way: ThreadPoolExecutor(1, f"pretend {way}") for way in LANES}
        try:
            with pretended(self):
                yield self
        finally:
            for lane in self._lanes.values():
                lane.shutdown(wait=True)
            self._lanes = {}

    def now(self) -> None:
        """The pretended device is this processor, which has done by now what it was told."""

    def fetch(self, source: torch.Tensor, into: torch.Tensor, after: Any) -> _LateCopy:
        return self._copy("down", source, into)

    def send(self, source: torch.Tensor, into: torch.Tensor, after: Any) -> _LateCopy:
        return self._copy("up", source, into)

    def _copy(self, way: str, source: torch.Tensor, into: torch.Tensor) -> _LateCopy:
        nbytes = source.numel() * source.element_size()
        rate = self._rates[way]

        def run() -> None:
            start = time.perf_counter()
            with torch.no_grad():
                into.copy_(source)
            if rate is not None:
                time.sleep(max(0.0, start + nbytes / rate - time.perf_counter()))
            with self._lock:
                self.crossed[way] += nbytes
                number = len(self.events)
                self.events.append(Event("copy", LANES[way], number, start, time.perf_counter(), nbytes))

        return _LateCopy(self._lanes[way].submit(run))

    def finite(self, gradients: Sequence[torch.Tensor]) -> list[bool]:
        return [bool(torch.isfinite(gradient).all()) for gradient in gradients]

    def pin(self, slab: Slab) -> str | None:
        return None

    def unpin(self, slab: Slab) -> None:
        pass


class Wire:
    """A link that only counts: `down(tensor)` gives a copy in host memory, `up(host, weight)` puts `host` into a weight on the
    device (which rounds it to the weight's dtype). A tensor crosses in the dtype that it has."""

    def __init__(self) -> None:
        self.crossings: list[tuple[str, torch.dtype, int]] = []
        """Of each copy: the way ("down" or "up"), the dtype, and the elements."""

    def down(self, tensor: torch.Tensor) -> torch.Tensor:
        self.crossings.append(("down", tensor.dtype, tensor.numel()))
        return tensor.detach().clone()

    def up(self, host: torch.Tensor, weight: torch.Tensor) -> None:
        self.crossings.append(("up", host.dtype, host.numel()))
        with torch.no_grad():
            weight.copy_(host)

    def crossed(self, way: str) -> int:
        """Bytes."""
        return sum(count * dtype.itemsize for there, dtype, count in self.crossings if there == way)
