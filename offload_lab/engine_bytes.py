"""What the engine's own records, buffers and files take for a model under a policy. Pure: no torch.

Nothing here is a formula of its own: partitions are cut, placed and laid out by the functions that the engine calls
(`partition.py`, `residency.py`, `schedule.py`), for a model that need not exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from offload_lab.models import ModelSpec, element_bytes
from offload_lab.partition import WEIGHT_BYTES, Kind, Partition, cut
from offload_lab.policy import OffloadPolicy
from offload_lab.residency import SLABS, beside_staging, partition_size, place, sizing, staged_bytes

HUGE_PAGE = 2 << 20  # of `storage/memory.py`, which needs more than this module may import


@dataclass(frozen=True)
class EngineBytes:
    """Bytes by kind of one engine. A step reads `read` bytes from disk, writes `written`, and moves `dram` in host memory; with
    a durability of N steps, on the average of N steps."""

    resident: dict[str, int]
    """Records that stay in RAM."""
    buffers: int
    """What of the streaming buffers is ever touched: memory that is not touched is not taken."""
    staging: int
    """Pinned slabs through which what is on an accelerator passes, from the first step on."""
    reserved: int
    """Address space of resident records and whole buffers: what `ram_budget` counts."""
    disk: dict[str, int]
    """The state file, all slots."""
    read: int
    written: int
    dram: int
    partitions: int
    resident_partitions: int
    partition_size: int
    largest_record: int
    first_read: int
    """Bytes of the largest partition that is read: nothing overlaps with the first read and the last write."""
    first_written: int
    resident_dram: int
    """Of `dram`, what belongs to partitions that stay in RAM: they come first, and reads go no further ahead than buffers."""
    resident_written: int
    read_ahead: int
    """Bytes of state that buffers hold when the first streamed partition is updated."""
    checked: int
    """Bytes of gradients that are looked through for what is not finite before anything else happens."""
    tensors: int
    published: float
    """Share of the steps that are made durable."""


@lru_cache(maxsize=32)  # a large model is cut into tens of thousands of partitions, and asked for with each way to place it
def engine_bytes(model: ModelSpec, dtype: str, policy: OffloadPolicy, linked: bool = False) -> EngineBytes:
    """For the trainable parameters of `model`; `dtype` is that of weights which have none of their own. `linked`: they are on
    an accelerator.

    Raises ValueError with the arithmetic where the policy's RAM budget cannot hold what it must.
    """
    shapes = [
        (number, weight.numel, Kind(weight.dtype or dtype, policy.state_dtype))
        for number, weight in enumerate(weight for weight in model.each() if weight.trainable and weight.numel)
    ]
    size = partition_size(sum(numel for _, numel, _ in shapes), sizing(policy, linked))
    partitions = cut(shapes, size)
    wide = policy.gradients == "float32"
    slab = max((staged_bytes(part.dtype, part.numel, wide) for part in partitions), default=0) if linked else 0
    residency = place(partitions, size, beside_staging(policy, slab))
    staying = [part for part in partitions if part.index in residency.resident]
    streamed = [part for part in partitions if part.index not in residency.resident]
    keeps, on_disk = policy.keeps_weights, policy.tier == "disk"
    published = _published(policy)
    read = sum(part.state_bytes for part in streamed)
    durable = sum(part.record_bytes(keeps) for part in partitions)  # publishing brings what stays in RAM to disk too
    written = round(published * durable + (1 - published) * read) if on_disk else 0
    disk: Counter[str] = Counter()
    if on_disk:
        disk += _kinds(partitions, keeps)
        if keeps:  # two slots a partition
            disk["second generation"] = disk.total()
    touched = max((part.record_bytes(keeps) for part in streamed), default=0)
    return EngineBytes(
        dict(_kinds(staying, keeps)),
        _pages(min(residency.buffers, len(streamed)), residency.buffer_bytes, touched),
        SLABS * slab,
        residency.ram_bytes + SLABS * slab,
        dict(disk),
        read,
        written,
        sum(_traffic(part, policy) for part in partitions),
        len(partitions),
        len(staying),
        size,
        max((part.record_bytes(keeps) for part in partitions), default=0),
        max((part.state_bytes for part in streamed), default=0),
        touched if published == 1 else max((part.state_bytes for part in streamed), default=0),
        sum(_traffic(part, policy) for part in staying),
        round(published * sum(part.record_bytes(keeps) for part in staying)),
        sum(part.state_bytes for part in streamed[: residency.buffers]),
        sum(part.numel * _gradient_bytes(part, policy) for part in partitions),
        len(shapes),
        published,
    )


def _published(policy: OffloadPolicy) -> float:
    """Share of the steps that are made durable."""
    return 1 / policy.publish_every if policy.keeps_weights and policy.publish_every else 0.0


def _kinds(partitions: Sequence[Partition], with_weights: bool) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in partitions:
        laid = part.fields()
        for name, field in laid.items():
            found["master" if name == "master" else "moments"] += int(field.dtype[1]) * field.numel
        mirror = WEIGHT_BYTES[part.dtype] * part.numel if with_weights else 0
        found["weights"] += mirror
        inside = sum(int(field.dtype[1]) * field.numel for field in laid.values()) + mirror
        found["record padding"] += part.record_bytes(with_weights) - inside
    return +found


def _gradient_bytes(part: Partition, policy: OffloadPolicy) -> int:
    return 4 if policy.gradients == "float32" else element_bytes(part.dtype)


def _traffic(part: Partition, policy: OffloadPolicy) -> int:
    """Bytes that one update moves through host memory: state, weight and gradient read, state and weight written, and the
    gradient once before that, when it is checked for what is not finite."""
    mirror = WEIGHT_BYTES[part.dtype] * _published(policy)
    each = 2 * element_bytes(part.dtype) + 2 * _gradient_bytes(part, policy) + mirror
    return 2 * part.state_bytes + round(part.numel * each)


def _pages(buffers: int, apart: int, touched: int) -> int:
    """Bytes of the 2 MiB pages in which `touched` bytes from the start of each buffer lie, the buffers being `apart`."""
    pages = last = 0  # `last` is the end of the pages that are counted: two buffers may share one
    for number in range(buffers if touched else 0):
        first, end = number * apart // HUGE_PAGE, -(-(number * apart + touched) // HUGE_PAGE)
        pages += end - min(end, max(first, last))
        last = max(last, end)
    return min(pages * HUGE_PAGE, buffers * apart)
