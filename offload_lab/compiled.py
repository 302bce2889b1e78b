"""The update of one partition in one pass over memory, as loops compiled by numba that read like the formula.

Elements are independent, so results are the same bits however a partition is cut or shared between threads. Only
`update` and `all_finite` are kept in numba's cache; all others are compiled into them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import sha256
from pkgutil import get_data
from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import overload

from offload_lab.bits import (
    bits_of_float,
    float_of_bfloat16,
    float_of_bits,
    float_of_half,
    float_pointer,
    half_of_float,
    uint16_pointer,
)
from offload_lab.compiled_moments import closed, closed_maximum, inner, opened
from offload_lab.partition import QUANTUM
from offload_lab.update import (
    BETA2,
    BLOCK,
    DECAY,
    EDITED,
    EPS,
    GRADIENT_ADDRESS,
    GRADIENT_FLOAT32,
    L2,
    LENGTH,
    OFFSET,
    ONE_MINUS_BETA1,
    ONE_MINUS_BETA2,
    ROOT_CORRECTION2,
    SCALE,
    SEED,
    SIGN,
    START,
    STEP_SIZE,
    WEIGHT_ADDRESS,
)

TILE = 2048  # elements at a time: what is copied to the mirror, or was opened, is still in the cache; a multiple of QUANTUM


@inner
def _constants(s):
    """A row of scalars in registers: read from the array in the loop, every store could have changed them."""
    sign_and_scale = s[SCALE] * s[SIGN]  # a sign changes no rounding
    return (
        sign_and_scale,
        s[L2],
        s[DECAY],
        s[ONE_MINUS_BETA1],
        s[BETA2],
        s[ONE_MINUS_BETA2],
        s[ROOT_CORRECTION2],
        s[EPS],
        s[STEP_SIZE],
    )


@inner
def _moments(w, g, m, v, constants):
    """The decayed weight and the new moments."""
    scale, l2, decay, one_minus_beta1, beta2, one_minus_beta2, _, _, _ = constants
    g = scale * g
    if l2 != np.float32(0):
        g = g + l2 * w
    m = m + one_minus_beta1 * (g - m)
    v = v * beta2 + one_minus_beta2 * g * g
    return w * decay, m, v


@inner
def _stepped(w, m, v, constants):
    """The new weight, from the decayed one and the new moments."""
    _, _, _, _, _, _, root_correction2, eps, step_size = constants
    denominator = np.float32(math.sqrt(v)) / root_correction2 + eps
    return w - step_size * (m / denominator)


@inner
def _largest(x, i, v):
    """amsgrad: the largest second moment so far, which takes the place of the second moment in the step."""
    if x is None:
        return v
    x[i] = max(x[i], v)
    return x[i]


@inner
def _span_float32(w, g, m, v, x, s):
    constants = _constants(s)
    for i in range(w.shape[0]):
        decayed, m[i], new_v = _moments(w[i], g[i], m[i], v[i], constants)
        v[i] = new_v
        w[i] = _stepped(decayed, m[i], _largest(x, i, new_v), constants)


@inner
def join(word, rest):
    """The master's bit pattern from the bfloat16 weight and the 16 low bits. Inverse of `split`; all are uint32.

    The weight was rounded, half away from zero: where the low half is 0x8000 or more it lies one above the high half.
    A zero weight cannot have come from rounding up, so there such a low half is stale (somebody zeroed the weight).
    """
    if (word & np.uint32(0x7FFF)) == np.uint32(0) and rest >= np.uint32(0x8000):
        rest = np.uint32(0)
    high = np.uint32(word - np.uint32(rest >> np.uint32(15)))
    return np.uint32(np.uint32(high << np.uint32(16)) | rest)


@inner
def split(bits):
    """The bfloat16 weight nearest to a float32 bit pattern, and its 16 low bits: (word, rest), both uint32.

    Ties go away from zero, the one rule which the low half can undo: to-even would need a seventeenth bit to tell
    whether a low half of 0x8000 went up or down. A NaN becomes the quiet NaN of its sign, or rounding could make it zero.
    """
    if (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
        bits = np.uint32((bits & np.uint32(0x80000000)) | np.uint32(0x7FC00000))
    return np.uint32(np.uint32(bits + np.uint32(0x8000)) >> np.uint32(16)), np.uint32(bits & np.uint32(0xFFFF))


@inner
def _span_bfloat16(w, g, m, v, x, low, keep, s):
    constants = _constants(s)
    for i in range(w.shape[0]):
        bits = join(np.uint32(w[i]), np.uint32(np.uint32(low[i]) & keep))
        decayed, m[i], new_v = _moments(float_of_bits(bits), float_of_bfloat16(g[i]), m[i], v[i], constants)
        v[i] = new_v
        word, rest = split(bits_of_float(_stepped(decayed, m[i], _largest(x, i, new_v), constants)))
        w[i] = np.uint16(word)
        low[i] = np.uint16(rest)


@inner
def _span_float16(w, g, m, v, x, master, s):
    constants = _constants(s)
    for i in range(w.shape[0]):
        # A weight that is not the master's rounding was set by somebody else (or never met this master): it is the truth.
        current = master[i]
        if half_of_float(current) != w[i]:
            current = float_of_half(w[i])
        decayed, m[i], new_v = _moments(current, float_of_half(g[i]), m[i], v[i], constants)
        v[i] = new_v
        master[i] = _stepped(decayed, m[i], _largest(x, i, new_v), constants)
        w[i] = half_of_float(master[i])


def _weights(row, at, size, master):
    """The weights of a tile, from the span's element `at`: float32, or the uint16 bit patterns of a 16-bit weight."""
    raise TypeError("only compiled code can call this")


def _tile(w, row, at, m, v, x, master, low, s):
    """Update a tile: the span's elements from `at`, the record's from `low`."""
    raise TypeError("only compiled code can call this")


@overload(_weights)
def _weights_of(row, at, size, master):
    if isinstance(master, types.NoneType):
        return lambda row, at, size, master: carray(float_pointer(row[WEIGHT_ADDRESS] + 4 * at), (size,))
    return lambda row, at, size, master: carray(uint16_pointer(row[WEIGHT_ADDRESS] + 2 * at), (size,))


@overload(_tile)
def _tile_of(w, row, at, m, v, x, master, low, s):
    if isinstance(master, types.NoneType):
        return _tile_float32
    return _tile_bfloat16 if master.dtype == types.uint16 else _tile_float16


def _tile_float32(w, row, at, m, v, x, master, low, s):
    g = carray(float_pointer(row[GRADIENT_ADDRESS] + 4 * at), w.shape)
    _span_float32(w, g, m, v, x, s)


def _tile_bfloat16(w, row, at, m, v, x, master, low, s):
    keep = np.uint32(0) if row[EDITED] else np.uint32(0xFFFF)  # an edited weight is the master, its low half stale
    rest = master[low : low + w.shape[0]]
    if row[GRADIENT_FLOAT32]:
        _span_bfloat16(w, carray(float_pointer(row[GRADIENT_ADDRESS] + 4 * at), w.shape), m, v, x, rest, keep, s)
    else:
        _span_bfloat16(w, carray(uint16_pointer(row[GRADIENT_ADDRESS] + 2 * at), w.shape), m, v, x, rest, keep, s)


def _tile_float16(w, row, at, m, v, x, master, low, s):
    whole = master[low : low + w.shape[0]]
    if row[GRADIENT_FLOAT32]:
        _span_float16(w, carray(float_pointer(row[GRADIENT_ADDRESS] + 4 * at), w.shape), m, v, x, whole, s)
    else:
        _span_float16(w, carray(uint16_pointer(row[GRADIENT_ADDRESS] + 2 * at), w.shape), m, v, x, whole, s)


@inner
def _mirror(target, source):
    for i in range(target.shape[0]):
        target[i] = source[i]


@inner
def _whole_blocks(at, length):
    """Where a piece that was to begin (or end) at element `at` of a span does so instead: blocks stay whole."""
    return min(-(-at // QUANTUM) * QUANTUM, length)


@inner
def _run_of(rows, scalars, first, size):
    """The row behind those from `first` on of which each goes on where the one before it ends, in weights (of `size` bytes)
    and in gradients, and is updated alike."""
    wide, edited = rows[first, GRADIENT_FLOAT32], rows[first, EDITED]
    width = 4 if wide else size
    for r in range(first + 1, rows.shape[0]):
        length, gradient = rows[r - 1, LENGTH], rows[r - 1, GRADIENT_ADDRESS]
        if rows[r - 1, WEIGHT_ADDRESS] + size * length != rows[r, WEIGHT_ADDRESS] or gradient == 0:
            return r
        if gradient + width * length != rows[r, GRADIENT_ADDRESS] or rows[r - 1, OFFSET] + length != rows[r, OFFSET]:
            return r
        if wide != rows[r, GRADIENT_FLOAT32] or edited != rows[r, EDITED]:
            return r
        alike = True
        for i in range(scalars.shape[1]):
            alike &= scalars[first, i] == scalars[r, i]
        if not alike:
            return r
    return rows.shape[0]


@inner
def _update(rows, scalars, exp_avg, exp_avg_sq, master, max_exp_avg_sq, scale, scale_sq, mirror, begin, end):
    room, room_sq, room_max = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    following = 0
    while following < rows.shape[0]:
        r = following
        following = r + 1
        if exp_avg.itemsize == 4:  # random bits depend on where a span begins, so rows with rounded moments stay apart
            following = _run_of(rows, scalars, r, 4 if master is None else 2)  # 16 elements take as long as 100
        row, offset = rows[r], rows[r, OFFSET]
        length = rows[following - 1, OFFSET] + rows[following - 1, LENGTH] - offset
        first, last = max(offset, begin), min(offset + length, end)
        if first >= last:
            continue
        if scale is not None:
            first, last = offset + _whole_blocks(first - offset, length), offset + _whole_blocks(last - offset, length)
        for low in range(first, last, TILE):
            high = min(low + TILE, last)
            at = low - offset
            w = _weights(row, at, high - low, master)
            if row[GRADIENT_ADDRESS] != 0:
                block, element, seed = row[BLOCK] + at // QUANTUM, np.uint32(row[START] + at), np.uint32(row[SEED])
                m = opened(exp_avg, scale, block, low, high, room)
                v = opened(exp_avg_sq, scale_sq, block, low, high, room_sq)
                x = opened(max_exp_avg_sq, None, block, low, high, room_max)
                _tile(w, row, at, m, v, x, master, low, scalars[r])
                closed(m, exp_avg, scale, block, low, seed, element, np.uint32(0))
                closed(v, exp_avg_sq, scale_sq, block, low, seed, element, np.uint32(16))
                closed_maximum(x, max_exp_avg_sq, low)
            if mirror.shape[0] > 0:
                _mirror(mirror[low:high], w)


@inner
def _all_finite_float32(values):
    largest = np.uint32(0)
    for i in range(values.shape[0]):
        largest = max(largest, np.uint32(bits_of_float(values[i]) & np.uint32(0x7FFFFFFF)))
    return largest < np.uint32(0x7F800000)


@inner
def _all_finite_16(values, infinity):
    largest = np.uint16(0)
    for i in range(values.shape[0]):
        largest = max(largest, np.uint16(values[i] & np.uint16(0x7FFF)))
    return largest < infinity


@inner
def _all_finite(address, numel, itemsize, infinity):
    if itemsize == 4:
        return _all_finite_float32(carray(float_pointer(address), (numel,)))
    return _all_finite_16(carray(uint16_pointer(address), (numel,)), np.uint16(infinity))


def _kept(function: Callable[..., Any]) -> tuple[Callable[..., Any], bool]:
    """`function` compiled, and whether numba found a folder for its cache: beside this file, or else the user's own."""
    try:
        return njit(nogil=True, error_model="numpy", cache=True)(function), True
    except RuntimeError:  # numba's way to say that neither can be written
        return inner(function), False


def _entries(digest: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions that go into the cache. numba throws an entry away when this file changes; the loops live in others
    too, so the key holds a digest of them all: it is what a function closes over that gets into the key."""

    def update(rows, scalars, exp_avg, exp_avg_sq, master, max_exp_avg_sq, scale, scale_sq, mirror, begin, end):
        """Update elements [begin, end) of a partition.

        `rows` is `update.table` filled in, `scalars` float32 with an `update.scalars` for each row, and then come the
        `update.Fields` of the record. Pieces of one partition may run at the same time."""
        if digest:
            _update(rows, scalars, exp_avg, exp_avg_sq, master, max_exp_avg_sq, scale, scale_sq, mirror, begin, end)

    def not_finite(rows, found, first, stride):
        """Set `found[r]` (bool) for rows r = first, first + stride, …: whether an element is infinite or NaN.

        `rows` is int64 (n, 4): address, elements, bytes an element (4 or 2), and the bit pattern of infinity in a 16-bit
        dtype."""
        if digest:
            for r in range(first, rows.shape[0], stride):
                found[r] = not _all_finite(rows[r, 0], rows[r, 1], rows[r, 2], rows[r, 3])

    return update, not_finite


_SOURCES = ("bits.py", "compiled.py", "compiled_moments.py", "partition.py", "update.py")
_text = b"".join(get_data("offload_lab", name) or b"" for name in _SOURCES)
(update, CACHED), (not_finite, _) = map(_kept, _entries(int(sha256(_text).hexdigest()[:15], 16)))
