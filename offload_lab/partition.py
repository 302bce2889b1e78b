"""Parameters cut into partitions, and where each field of a partition's record lies. Pure: no torch, no files.

A partition is the unit that is read, updated and written as one. It holds elements of one dtype only; a large parameter is
cut over several partitions, small ones share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BLOCK = 4096  # direct I/O wants addresses, offsets and lengths in whole blocks; 4096 satisfies every disk sold today

# Bytes a parameter of optimizer state at rest, by the dtype of the model's own weight. Two fp32 moments (4 + 4) and
#   float32: nothing more, the weight is its own master;
#   bfloat16: the low 16 bits of the fp32 master, whose high half *is* the weight;
#   float16: the whole fp32 master, since no half of it is a float16.
STATE_BYTES: dict[str, int] = {"float32": 8, "bfloat16": 10, "float16": 12}
# What a record adds so that the directory alone can restore the model: float16 needs nothing, its master is in the state.
WEIGHT_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 0}
MASTER_BYTES: dict[str, int] = {dtype: STATE_BYTES[dtype] - 8 for dtype in STATE_BYTES}


def round_up(nbytes: int, multiple: int = BLOCK) -> int:
    """The smallest multiple of `multiple` that is at least `nbytes`."""
    return -(-nbytes // multiple) * multiple


@dataclass(frozen=True)
class Span:
    """`length` elements of one parameter, from flat element `start`, lying at element `offset` of its partition."""

    parameter: int
    start: int
    length: int
    offset: int


@dataclass(frozen=True)
class Partition:
    """One dtype's spans, read, updated and written together. Sizes are bytes, offsets in a record are bytes."""

    index: int
    dtype: str
    spans: tuple[Span, ...]

    @property
    def numel(self) -> int:
        last = self.spans[-1]
        return last.offset + last.length

    @property
    def exp_avg_at(self) -> int:
        return 0

    @property
    def exp_avg_sq_at(self) -> int:
        return round_up(4 * self.numel, 64)

    @property
    def master_at(self) -> int:
        """Where the master (float16) or its low half (bfloat16) lies; unused for float32."""
        return 2 * round_up(4 * self.numel, 64)

    @property
    def state_bytes(self) -> int:
        """What a step reads: both moments and the master, in whole blocks."""
        return round_up(self.master_at + MASTER_BYTES[self.dtype] * self.numel)

    @property
    def weight_at(self) -> int:
        return self.state_bytes

    def record_bytes(self, with_weights: bool) -> int:
        """What a step writes: the state and, where asked, the weight behind it, in whole blocks."""
        return self.state_bytes + (round_up(WEIGHT_BYTES[self.dtype] * self.numel) if with_weights else 0)


def cut(parameters: Sequence[tuple[int, int, str]], size: int, first_index: int = 0) -> list[Partition]:
    """Cut `(parameter number, elements, dtype)` into partitions of at most `size` elements, in the order given.

    Every element of every parameter is in exactly one span; empty parameters are in none. Partitions are numbered from
    `first_index`. Raises ValueError for a size below one or a dtype that has no record.
    """
    if size < 1:
        raise ValueError(f"a partition holds at least one element, not {size}")
    open_spans: dict[str, list[Span]] = {}
    filled: dict[str, int] = {}
    closed: list[tuple[str, tuple[Span, ...]]] = []
    for parameter, numel, dtype in parameters:
        if dtype not in STATE_BYTES:
            raise ValueError(f"parameter {parameter} is {dtype}; state can be kept for {', '.join(STATE_BYTES)}")
        start = 0
        while start < numel:
            offset = filled.get(dtype, 0)
            length = min(numel - start, size - offset)
            open_spans.setdefault(dtype, []).append(Span(parameter, start, length, offset))
            start += length
            filled[dtype] = offset + length
            if filled[dtype] == size:
                closed.append((dtype, tuple(open_spans.pop(dtype))))
                filled[dtype] = 0
    closed.extend((dtype, tuple(spans)) for dtype, spans in open_spans.items())
    return [Partition(first_index + number, dtype, spans) for number, (dtype, spans) in enumerate(closed)]
