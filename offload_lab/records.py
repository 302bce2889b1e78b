"""The RAM of an engine: records that stay, and the buffers through which all others stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from offload_lab.caching import Cache, furthest_next_use, least_recently_used
from offload_lab.partition import Partition
from offload_lab.policy import OffloadPolicy
from offload_lab.residency import Residency
from offload_lab.storage.memory import Slab


class Records:
    """`resident`: partition -> its record (uint8), for those that stay in RAM. `buffers`: one record's room each.

    Slabs are of the exact size, allocated when partitions are added and given back by `close`.
    """

    def __init__(self, policy: OffloadPolicy) -> None:
        self._policy = policy
        self.resident: dict[int, np.ndarray] = {}
        self.buffers: list[np.ndarray] = []
        self.cache = Cache(1, 1)
        self.residency: Residency | None = None
        self._slabs: list[Slab] = []

    def extend(self, added: Sequence[Partition], residency: Residency, reserve: Callable[[], None]) -> None:
        """Make room for `added`. `reserve` is called when the memory is there (it reserves the disk's); if it raises,
        nothing has changed."""
        staying = [part for part in added if part.index in residency.resident]
        sizes = [part.record_bytes(self._policy.keeps_weights) for part in staying]
        more = residency.buffers - len(self.buffers)
        slabs: list[Slab] = []
        try:
            for nbytes in (sum(sizes), more * residency.buffer_bytes):
                slabs.append(Slab(max(nbytes, 0)))
            reserve()
        except BaseException:
            for slab in slabs:
                slab.close()
            raise
        for slab in slabs:
            if slab.nbytes:
                self._slabs.append(slab)
            else:
                slab.close()
        at = 0
        for part, nbytes in zip(staying, sizes, strict=True):
            self.resident[part.index] = slabs[0].bytes[at : at + nbytes]
            at += nbytes
        if more > 0:
            self.buffers += list(slabs[1].bytes.reshape(more, residency.buffer_bytes))
            choose = furthest_next_use if self._policy.residency == "furthest" else least_recently_used
            held, debts = self.cache.held(), self.cache.debts()
            self.cache = Cache(len(self.buffers), self._policy.depth, choose)
            # What lies in the buffers stays there: some of it may be on no disk yet.
            self.cache.take_over(held, {partition: nbytes for partition, (_, nbytes) in debts.items()})
        self.residency = residency

    @property
    def nbytes(self) -> int:
        return sum(slab.nbytes for slab in self._slabs)

    def close(self) -> None:
        self.resident, self.buffers = {}, []
        for slab in self._slabs:
            slab.close()
        self._slabs = []
