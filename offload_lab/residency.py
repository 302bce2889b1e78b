"""What a RAM budget buys: how large a partition is, which partitions stay in RAM, how many buffers stream the rest. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from offload_lab.partition import BLOCK, Partition, round_up
from offload_lab.policy import OffloadPolicy

LARGEST = 4 << 20  # elements; beyond this a partition only costs memory (measured: 2 to 8 Mi are equally fast)
COMFORTABLE = 1 << 18  # elements; rather than fall below this, buffers may take more than half of the budget
SMALLEST = 1 << 8  # elements; below this a step is all overhead


SLABS = 3
"""Staging slabs for parameters on an accelerator: one is filled, one is updated, one is sent."""


def staged_bytes(dtype: str, numel: int, wide: bool) -> int:
    """Bytes of a slab through which the weights and gradients of a partition of `numel` elements pass; `wide` where a 16-bit
    parameter's gradients are float32."""
    size = 4 if dtype == "float32" else 2
    return round_up(size * numel, 64) + (4 if wide else size) * numel


def sizing(policy: OffloadPolicy, linked: bool) -> OffloadPolicy:
    """The policy by which partitions are sized: staging slabs take as much RAM as one or two more buffers."""
    return replace(policy, depth=policy.depth + 2) if linked else policy


def beside_staging(policy: OffloadPolicy, slab: int) -> OffloadPolicy:
    """The policy with the RAM that staging slabs of `slab` bytes leave. Raises ValueError where they leave none."""
    if not slab or policy.ram_budget is None:
        return policy
    left = int(policy.ram_budget) - SLABS * slab
    if left <= 0:
        raise ValueError(
            f"ram_budget={policy.ram_budget:,} bytes is too small: {SLABS} slabs through which the accelerator's "
            f"gradients and weights pass take {SLABS * slab:,}. Give a larger budget, or a smaller partition_size."
        )
    return replace(policy, ram_budget=left)


def buffer_bytes(size: int) -> int:
    """Bytes of a buffer that holds the record of any partition of `size` elements: 12 bytes an element, whatever the
    dtype, 64 for the alignment of each moment, and a block for the weights' own rounding."""
    return round_up(12 * size + 128) + BLOCK


def _elements(nbytes: int) -> int:
    """The largest partition whose buffer takes at most `nbytes`."""
    return (nbytes // BLOCK * BLOCK - BLOCK - 128) // 12


def partition_size(elements: int, policy: OffloadPolicy) -> int:
    """Elements a partition for a model of `elements` trainable parameters.

    Without a wish, a sixteenth of the model (so that reading, updating and writing overlap), at most 4 Mi, and small
    enough for `depth` buffers in half of the budget, because the other half saves more disk traffic by keeping
    partitions. Raises ValueError with the arithmetic when the budget can't hold them.
    """
    if policy.partition_size is not None:
        size = policy.partition_size
    else:
        # In RAM a partition costs nothing but the turn that threads take at it.
        largest = 4 * LARGEST if policy.tier == "ram" else LARGEST
        size = min(largest, max(64 * SMALLEST, -(-elements // 16)))
    if policy.tier == "ram" or policy.ram_budget is None:
        return size
    if buffer_bytes(elements) + BLOCK * (elements // size + 1) <= policy.ram_budget:
        return size  # everything stays in RAM, no buffer is needed
    if policy.partition_size is None:
        half, whole = (_elements(room // policy.depth) for room in (policy.ram_budget // 2, policy.ram_budget))
        size = min(size, whole, max(half, COMFORTABLE))
        if size < SMALLEST:
            least = policy.depth * buffer_bytes(SMALLEST)
            raise ValueError(
                f"ram_budget={policy.ram_budget:,} bytes is too small: {policy.depth} buffers for partitions of "
                f"{SMALLEST:,} elements at 12 bytes take {least:,} bytes. Give at least that."
            )
    elif policy.depth * buffer_bytes(size) > policy.ram_budget:
        raise ValueError(
            f"ram_budget={policy.ram_budget:,} bytes is too small for partition_size={size:,}: {policy.depth} buffers of "
            f"{buffer_bytes(size):,} bytes take {policy.depth * buffer_bytes(size):,}. Give a larger budget, a smaller "
            "partition_size, or leave partition_size out."
        )
    return size


@dataclass(frozen=True)
class Residency:
    """Partitions kept in RAM, and the buffers for all others."""

    resident: frozenset[int]
    buffers: int
    buffer_bytes: int
    ram_bytes: int


def place(
    partitions: Sequence[Partition],
    size: int,
    policy: OffloadPolicy,
    kept: Residency | None = None,
    stay: Set[int] = frozenset(),
    never: Set[int] = frozenset(),
) -> Residency:
    """Decide for each partition whether it stays in RAM; those of `kept` stay where they are, those in `stay` are in RAM and
    those in `never` are not, because their group says so.

    The RAM tier keeps all. The disk tier keeps the first that fit beside the buffers: a pinned set hits its share of every
    step, where the least recently used of a scan would hit nothing. The policies that move what they keep get the same RAM
    as more buffers. Raises ValueError when the budget can't hold it.
    """
    records = {part.index: part.record_bytes(policy.keeps_weights) for part in partitions}
    total = sum(records.values())
    budget = policy.ram_budget
    if policy.tier == "ram":
        if budget is not None and total > budget:
            raise ValueError(
                f"the state takes {total:,} bytes ({sum(p.numel for p in partitions):,} parameters, padding included) and "
                f'ram_budget is {budget:,}. Give more, or use tier="disk".'
            )
        return Residency(frozenset(records), 0, 0, total)
    already = (kept.resident if kept is not None else frozenset[int]()) | stay
    used = sum(records[index] for index in already)
    open_to_both = policy.residency == "pinned" and not never.issuperset(records.keys() - already)
    all_fits = budget is not None and total <= budget and not never
    if len(already) == len(records) or (open_to_both and all_fits and not (kept and kept.buffers)):
        if budget is not None and total > budget:
            raise ValueError(f"ram_budget={budget:,} bytes is too small: what is to stay in RAM takes {total:,}")
        return Residency(frozenset(records), kept.buffers if kept else 0, buffer_bytes(size), total)
    buffers = min(policy.depth, len(partitions) - len(already)) if budget is None else policy.depth
    if budget is not None and policy.residency in ("lru", "furthest"):
        buffers = max(buffers, min(len(partitions) - len(already), (budget - used) // buffer_bytes(size)))
    buffers = max(buffers, kept.buffers if kept is not None else 0)
    streaming = buffers * buffer_bytes(size)
    if budget is not None and used + streaming > budget:
        raise ValueError(
            f"ram_budget={budget:,} bytes is too small: partitions in RAM take {used:,} and {buffers} buffers take "
            f"{streaming:,}, together {used + streaming:,}. Give at least that."
        )
    resident = set(already)
    if budget is not None and open_to_both:
        for part in partitions:
            fits = used + streaming + records[part.index] <= budget
            if part.index not in resident and part.index not in never and fits:
                resident.add(part.index)
                used += records[part.index]
    return Residency(frozenset(resident), buffers, buffer_bytes(size), used + streaming)
