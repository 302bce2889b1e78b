"""Parameters cut into partitions, and where each field of a partition's record lies. Pure: no torch, no files.

A partition is the unit that is read, updated and written as one. It holds elements of one kind only (the weight's dtype, the
moments' dtype, amsgrad or not); a large parameter is cut over several partitions, small ones share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

BLOCK = 4096  # direct I/O wants addresses, offsets and lengths in whole blocks; 4096 satisfies every disk sold today

# Bytes a parameter of optimizer state at rest, by the dtype of the model's own weight. Two fp32 moments (4 + 4) and
#   float32: nothing more, the weight is its own master;
#   bfloat16: the low 16 bits of the fp32 master, whose high half *is* the weight;
#   float16: the whole fp32 master, since no half of it is a float16.
STATE_BYTES: dict[str, int] = {"float32": 8, "bfloat16": 10, "float16": 12}
# What a record adds so that the directory alone can restore the model: float16 needs nothing, its master is in the state.
WEIGHT_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 0}
MASTER_BYTES: dict[str, int] = {dtype: STATE_BYTES[dtype] - 8 for dtype in STATE_BYTES}

# Bytes of one element of a moment, by `state_dtype`; "int8" has a float32 scale for each QUANTUM elements beside it.
MOMENT_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "int8": 1}
QUANTUM = 256  # elements that share a scale, counted from the parameter's first: no cut of ours can change a bit


def state_bytes(dtype: str, state_dtype: str = "float32", amsgrad: bool = False) -> float:
    """Bytes of state a parameter takes at rest: of its moments (three with `amsgrad`, else two), their scales, and its
    master. Padding is left out. Raises KeyError for a dtype that has no record."""
    moments = 3 if amsgrad else 2
    scales = moments * 4 / QUANTUM if state_dtype == "int8" else 0
    return moments * MOMENT_BYTES[state_dtype] + scales + MASTER_BYTES[dtype]


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
class Kind:
    """What a record holds of each element. `dtype` is the weight's, `state_dtype` the moments'."""

    dtype: str
    state_dtype: str = "float32"
    amsgrad: bool = False


@dataclass(frozen=True)
class Field:
    """`numel` elements of NumPy dtype `dtype` at byte `at` of a record."""

    at: int
    numel: int
    dtype: str


@dataclass(frozen=True)
class Partition:
    """One kind's spans, read, updated and written together. Sizes are bytes, offsets in a record are bytes."""

    index: int
    dtype: str
    spans: tuple[Span, ...]
    state_dtype: str = "float32"
    amsgrad: bool = False

    @property
    def kind(self) -> Kind:
        return Kind(self.dtype, self.state_dtype, self.amsgrad)

    @cached_property
    def numel(self) -> int:
        last = self.spans[-1]
        return last.offset + last.length

    def first_blocks(self) -> list[int]:
        """For each span, which scale of the record is that of its first block; one more number is how many there are."""
        counts = [-(-span.length // QUANTUM) for span in self.spans]
        return list(accumulate(counts, initial=0))

    def fields(self) -> dict[str, Field]:
        """Where everything but the weight lies, by name: each field begins at a multiple of 64 bytes.

        "exp_avg", "exp_avg_sq"; "master" (float16: float32; bfloat16: the low halves, uint16); with amsgrad
        "max_exp_avg_sq"; with int8 "exp_avg_scale" and "exp_avg_sq_scale", one for each QUANTUM elements of each span.
        """
        signed, unsigned = {"float32": ("f4", "f4"), "bfloat16": ("u2", "u2"), "int8": ("i1", "u1")}[self.state_dtype]
        wanted = [("exp_avg", signed, self.numel), ("exp_avg_sq", unsigned, self.numel)]
        if self.dtype != "float32":
            wanted.append(("master", "u2" if self.dtype == "bfloat16" else "f4", self.numel))
        if self.amsgrad:
            wanted.append(("max_exp_avg_sq", unsigned, self.numel))
        if self.state_dtype == "int8":
            blocks = self.first_blocks()[-1]
            wanted += [("exp_avg_scale", "f4", blocks), ("exp_avg_sq_scale", "f4", blocks)]
        laid: dict[str, Field] = {}
        at = 0
        for name, dtype, numel in wanted:
            laid[name] = Field(at, numel, dtype)
            at = round_up(at + int(dtype[1]) * numel, 64)
        return laid

    @property
    def exp_avg_at(self) -> int:
        return 0

    @property
    def exp_avg_sq_at(self) -> int:
        return self.fields()["exp_avg_sq"].at

    @property
    def master_at(self) -> int:
        """Where the master (float16) or its low half (bfloat16) lies; for float32 the end of the moments."""
        there = self.fields()
        if "master" in there:
            return there["master"].at
        return round_up(there["exp_avg_sq"].at + MOMENT_BYTES[self.state_dtype] * self.numel, 64)

    @cached_property  # a plan of a large model asks it of tens of thousands of partitions, and again and again
    def state_bytes(self) -> int:
        """What a step reads: moments and master, in whole blocks."""
        last = list(self.fields().values())[-1]
        return round_up(last.at + int(last.dtype[1]) * last.numel)

    def update_bytes(self, with_weights: bool) -> int:
        """What the one-pass update of all its elements moves through memory: state read and written, gradient read, weight
        read and written (a float16 weight is only written, from its master), and, `with_weights`, written into the record."""
        weight = 4 if self.dtype == "float32" else 2
        moved = 2 * state_bytes(self.dtype, self.state_dtype, self.amsgrad) + weight
        moved += weight if self.dtype == "float16" else 2 * weight
        return round((moved + (WEIGHT_BYTES[self.dtype] if with_weights else 0)) * self.numel)

    @property
    def weight_at(self) -> int:
        return self.state_bytes

    def record_bytes(self, with_weights: bool) -> int:
        """What a step writes: the state and, where asked, the weight behind it, in whole blocks."""
        return self.state_bytes + (round_up(WEIGHT_BYTES[self.dtype] * self.numel) if with_weights else 0)


def chunks(part: Partition, with_weights: bool, size: int) -> list[tuple[int, int]]:
    """A record in pieces of at most `size` bytes (offset, length), for transfers and checksums. No piece has both state and
    weights: a step reads the state alone."""
    state, record = part.state_bytes, part.record_bytes(with_weights)
    return [(at, min(size, end - at)) for start, end in ((0, state), (state, record)) for at in range(start, end, size)]


def most_elements(kind: Kind, size: int) -> int:
    """Elements that a partition of `kind` may have where one of two float32 moments has `size`.

    Buffers are made for 12 bytes an element. With a third moment, or with a scale for every parameter of one element, it can
    be 16: such partitions are cut smaller, so that each fits a buffer that exists already.
    """
    if not kind.amsgrad and kind.state_dtype != "int8":
        return size
    fitting = max(1, (size * 12 - 64) // 16)  # 64: these have one more field, whose start is rounded up
    return fitting if kind.state_dtype != "int8" else max(QUANTUM, fitting)


def size_of(part: Partition) -> int:
    """The size for which `most_elements` allows `part`: what buffers must be made for when partitions are given."""
    if not part.amsgrad and part.state_dtype != "int8":
        return part.numel
    return -(-(16 * part.numel + 64) // 12)


def cut(parameters: Sequence[tuple[int, int, str | Kind]], size: int, first_index: int = 0) -> list[Partition]:
    """Cut `(parameter number, elements, kind or dtype)` into partitions of at most `size` elements, in the order given.

    Every element of every parameter is in exactly one span; empty parameters are in none. Partitions are numbered from
    `first_index`. int8 moments are cut between blocks of QUANTUM elements only, so there a partition has at least that many.
    Raises ValueError for a size below one or a dtype that has no record.
    """
    if size < 1:
        raise ValueError(f"a partition holds at least one element, not {size}")
    open_spans: dict[Kind, list[Span]] = {}
    closed: list[tuple[Kind, tuple[Span, ...]]] = []
    for parameter, numel, named in parameters:
        kind = named if isinstance(named, Kind) else Kind(named)
        if kind.dtype not in STATE_BYTES:
            raise ValueError(f"parameter {parameter} is {kind.dtype}; state can be kept for {', '.join(STATE_BYTES)}")
        most = most_elements(kind, size)
        start = 0
        while start < numel:
            spans = open_spans.setdefault(kind, [])
            offset = spans[-1].offset + spans[-1].length if spans else 0
            length = min(numel - start, most - offset)
            if kind.state_dtype == "int8" and start + length < numel:
                length -= length % QUANTUM
            if length:
                spans.append(Span(parameter, start, length, offset))
                start += length
            if not length or offset + length == most:
                closed.append((kind, tuple(open_spans.pop(kind))))
    closed.extend((kind, tuple(spans)) for kind, spans in open_spans.items())
    return [
        Partition(first_index + number, kind.dtype, spans, kind.state_dtype, kind.amsgrad)
        for number, (kind, spans) in enumerate(closed)
    ]
