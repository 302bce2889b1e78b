"""The Adam and AdamW update of one partition in one pass over memory, as compiled loops that read like the formula.

Operation order is that of `torch.optim.AdamW` on one tensor (Loshchilov & Hutter 2019, Algorithm 2; Kingma & Ba 2015,
Algorithm 1 for Adam): decay, first moment, second moment, then the step, all in float32.
Elements are independent, so results are the same bits however a partition is cut or shared between threads.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit

from offload_lab.bits import (
    bits_of_float,
    float_of_bfloat16,
    float_of_bits,
    float_of_half,
    float_pointer,
    half_of_float,
    uint16_pointer,
)

# A row of the table: what the loops need to know of one span. Addresses are those of the span's first element; a gradient
# address of 0 means that the parameter has no gradient in this step: its state stays, its weight is still mirrored.
# GRADIENT_FLOAT32 is 1 where a 16-bit parameter's gradient is float32 (accumulated over several backwards), else 0.
WEIGHT_ADDRESS, GRADIENT_ADDRESS, OFFSET, LENGTH, EDITED, GRADIENT_FLOAT32 = range(6)
ROW_FIELDS = 6
# A row of the float32 scalars that go with it. SCALE is what each gradient element is multiplied by, in float32, before
# anything else (clipping, unscaling); 1 changes no bit.
SIGN, L2, DECAY, ONE_MINUS_BETA1, BETA2, ONE_MINUS_BETA2, ROOT_CORRECTION2, EPS, STEP_SIZE, SCALE = range(10)
SCALAR_FIELDS = 10

_TILE = 2048  # elements between two copies to the mirror, so that what is copied is still in the cache

_compiled = njit(nogil=True, cache=True, error_model="numpy")


def scalars(group: dict, step: int, *, decoupled: bool, scale: float = 1.0) -> list[float]:
    """The scalars of one parameter's update at `step` (1 for the first), from its group's settings.

    `scale` is multiplied onto each gradient element in float32 first; for `maximize` the sign comes after it.
    bias corrections: 1 - beta ** step, taken in float64 as torch does.
    """
    lr, (beta1, beta2) = float(group["lr"]), map(float, group["betas"])
    decay = float(group["weight_decay"])
    return [
        -1.0 if group["maximize"] else 1.0,
        0.0 if decoupled else decay,
        1.0 - lr * decay if decoupled else 1.0,
        1.0 - beta1,
        beta2,
        1.0 - beta2,
        math.sqrt(1.0 - beta2**step),
        float(group["eps"]),
        lr / (1.0 - beta1**step),
        scale,
    ]


@_compiled
def _adam(w, g, m, v, scale, l2, decay, one_minus_beta1, beta2, one_minus_beta2, root_correction2, eps, step_size):
    g = scale * g  # the sign of `maximize` is in it: a sign changes no rounding
    if l2 != np.float32(0):
        g = g + l2 * w
    w = w * decay
    m = m + one_minus_beta1 * (g - m)
    v = v * beta2 + one_minus_beta2 * g * g
    denominator = np.float32(math.sqrt(v)) / root_correction2 + eps
    return w - step_size * (m / denominator), m, v


@_compiled
def _span_float32(w, g, m, v, s):
    a, b, c, d, e, f, h, k, t = s[SCALE] * s[SIGN], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8]
    for i in range(w.shape[0]):
        w[i], m[i], v[i] = _adam(w[i], g[i], m[i], v[i], a, b, c, d, e, f, h, k, t)


@_compiled
def join(word, rest):
    """The master's bit pattern from the bfloat16 weight and the 16 low bits. Inverse of `split`; all are uint32.

    The weight was rounded, half away from zero: where the low half is 0x8000 or more it lies one above the high half.
    A zero weight cannot have come from rounding up, so there such a low half is stale (somebody zeroed the weight).
    """
    if (word & np.uint32(0x7FFF)) == np.uint32(0) and rest >= np.uint32(0x8000):
        rest = np.uint32(0)
    high = np.uint32(word - np.uint32(rest >> np.uint32(15)))
    return np.uint32(np.uint32(high << np.uint32(16)) | rest)


@_compiled
def split(bits):
    """The bfloat16 weight nearest to a float32 bit pattern, and its 16 low bits: (word, rest), both uint32.

    Ties go away from zero, the one rule which the low half can undo: to-even would need a seventeenth bit to tell
    whether a low half of 0x8000 went up or down. A NaN becomes the quiet NaN of its sign, or rounding could make it zero.
    """
    if (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
        bits = np.uint32((bits & np.uint32(0x80000000)) | np.uint32(0x7FC00000))
    return np.uint32(np.uint32(bits + np.uint32(0x8000)) >> np.uint32(16)), np.uint32(bits & np.uint32(0xFFFF))


@_compiled
def _span_bfloat16(w, g, m, v, low, keep, s):
    a, b, c, d, e, f, h, k, t = s[SCALE] * s[SIGN], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8]
    for i in range(w.shape[0]):
        bits = join(np.uint32(w[i]), np.uint32(np.uint32(low[i]) & keep))
        new, m[i], v[i] = _adam(float_of_bits(bits), float_of_bfloat16(g[i]), m[i], v[i], a, b, c, d, e, f, h, k, t)
        word, rest = split(bits_of_float(new))
        w[i] = np.uint16(word)
        low[i] = np.uint16(rest)


@_compiled
def _span_float16(w, g, m, v, master, s):
    a, b, c, d, e, f, h, k, t = s[SCALE] * s[SIGN], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8]
    for i in range(w.shape[0]):
        # A weight that is not the master's rounding was set by somebody else (or never met this master): it is the truth.
        current = master[i]
        if half_of_float(current) != w[i]:
            current = float_of_half(w[i])
        new, m[i], v[i] = _adam(current, float_of_half(g[i]), m[i], v[i], a, b, c, d, e, f, h, k, t)
        master[i] = new
        w[i] = half_of_float(new)


@_compiled
def _mirror(target, source):
    for i in range(target.shape[0]):
        target[i] = source[i]


@_compiled
def update_float32(rows, scalars, exp_avg, exp_avg_sq, mirror, begin, end):
    """Update elements [begin, end) of a float32 partition. `mirror` receives the new weights, or is empty."""
    for r in range(rows.shape[0]):
        first, last = max(rows[r, OFFSET], begin), min(rows[r, OFFSET] + rows[r, LENGTH], end)
        for low in range(first, last, _TILE):
            high = min(low + _TILE, last)
            at = 4 * (low - rows[r, OFFSET])
            w = carray(float_pointer(rows[r, WEIGHT_ADDRESS] + at), (high - low,))
            if rows[r, GRADIENT_ADDRESS] != 0:
                g = carray(float_pointer(rows[r, GRADIENT_ADDRESS] + at), (high - low,))
                _span_float32(w, g, exp_avg[low:high], exp_avg_sq[low:high], scalars[r])
            if mirror.shape[0] > 0:
                _mirror(mirror[low:high], w)


@_compiled
def update_bfloat16(rows, scalars, exp_avg, exp_avg_sq, low_half, mirror, begin, end):
    """Update elements [begin, end) of a bfloat16 partition; weights are uint16 bit patterns, gradients
    likewise or float32, by the row."""
    for r in range(rows.shape[0]):
        first, last = max(rows[r, OFFSET], begin), min(rows[r, OFFSET] + rows[r, LENGTH], end)
        keep = np.uint32(0) if rows[r, EDITED] else np.uint32(0xFFFF)  # an edited weight is the master, its low half stale
        for low in range(first, last, _TILE):
            high = min(low + _TILE, last)
            at = 2 * (low - rows[r, OFFSET])
            w = carray(uint16_pointer(rows[r, WEIGHT_ADDRESS] + at), (high - low,))
            if rows[r, GRADIENT_ADDRESS] != 0:
                m, v, rest = exp_avg[low:high], exp_avg_sq[low:high], low_half[low:high]
                if rows[r, GRADIENT_FLOAT32]:
                    wide = carray(float_pointer(rows[r, GRADIENT_ADDRESS] + 2 * at), (high - low,))
                    _span_bfloat16(w, wide, m, v, rest, keep, scalars[r])
                else:
                    g = carray(uint16_pointer(rows[r, GRADIENT_ADDRESS] + at), (high - low,))
                    _span_bfloat16(w, g, m, v, rest, keep, scalars[r])
            if mirror.shape[0] > 0:
                _mirror(mirror[low:high], w)


@_compiled
def update_float16(rows, scalars, exp_avg, exp_avg_sq, master, begin, end):
    """Update elements [begin, end) of a float16 partition; weights are uint16 bit patterns, gradients
    likewise or float32, by the row."""
    for r in range(rows.shape[0]):
        first, last = max(rows[r, OFFSET], begin), min(rows[r, OFFSET] + rows[r, LENGTH], end)
        if first < last and rows[r, GRADIENT_ADDRESS] != 0:
            at = 2 * (first - rows[r, OFFSET])
            w = carray(uint16_pointer(rows[r, WEIGHT_ADDRESS] + at), (last - first,))
            m, v, whole = exp_avg[first:last], exp_avg_sq[first:last], master[first:last]
            if rows[r, GRADIENT_FLOAT32]:
                wide = carray(float_pointer(rows[r, GRADIENT_ADDRESS] + 2 * at), (last - first,))
                _span_float16(w, wide, m, v, whole, scalars[r])
            else:
                g = carray(uint16_pointer(rows[r, GRADIENT_ADDRESS] + at), (last - first,))
                _span_float16(w, g, m, v, whole, scalars[r])


@_compiled
def _all_finite_float32(values):
    largest = np.uint32(0)
    for i in range(values.shape[0]):
        largest = max(largest, np.uint32(bits_of_float(values[i]) & np.uint32(0x7FFFFFFF)))
    return largest < np.uint32(0x7F800000)


@_compiled
def _all_finite_16(values, infinity):
    largest = np.uint16(0)
    for i in range(values.shape[0]):
        largest = max(largest, np.uint16(values[i] & np.uint16(0x7FFF)))
    return largest < infinity


@_compiled
def all_finite(address, numel, itemsize, infinity):
    """Whether no element at `address` is infinite or NaN. `infinity` is the bit pattern of a 16-bit dtype's infinity."""
    if itemsize == 4:
        return _all_finite_float32(carray(float_pointer(address), (numel,)))
    return _all_finite_16(carray(uint16_pointer(address), (numel,)), np.uint16(infinity))
