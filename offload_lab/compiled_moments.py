"""Moments that are kept in fewer than 32 bits, for the compiled loops: opened into float32 before a tile, closed after it.

"bfloat16": the high half of the float32. "int8": a byte and, for each QUANTUM elements, a float32 scale, the largest
magnitude among them (block-wise optimizer state: Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization"; the
two maps here are our own and simpler). exp_avg is scale · sign · (c / 127)², c in -127 … 127; exp_avg_sq is
scale · (c / 255)⁴, c in 0 … 255, and never 0 for a value that is not: a denominator may come out large, not zero.

All are rounded at random, with the probabilities that make the expected value exact. To nearest would not do: exp_avg_sq
falls by a thousandth a step, which is less than half the distance of two bfloat16 (1/256), so that it would never fall.
The random bits are a hash of parameter, step and element: nothing about partitions or threads is in them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

from offload_lab.bits import bits_of_float, float_of_bfloat16, float_of_bits
from offload_lab.partition import QUANTUM

inner = njit(nogil=True, error_model="numpy")

# numba keeps a product of two float32 as float32, but not one with a Python float.
_STEP_SIGNED, _STEP_UNSIGNED = np.float32(1 / 127), np.float32(1 / 255)
_127, _255, _ONE, _ZERO = np.float32(127), np.float32(255), np.float32(1), np.float32(0)
_16_BITS = np.float32(2**-16)
_LARGEST = np.uint32(0x7F7FFFFF)  # the bit pattern of the largest number


@inner
def hashed(seed, element):
    """32 bits (uint32) that look random, from two uint32: the finalizer of MurmurHash3 (Appleby, public domain)."""
    x = np.uint32(seed + element)
    x = np.uint32(np.uint32(x ^ np.uint32(x >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    x = np.uint32(np.uint32(x ^ np.uint32(x >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(x ^ np.uint32(x >> np.uint32(16)))


@inner
def _chance(seed, element, i, shift):
    """16 random-looking bits (uint32) of element `element` + `i` of a parameter. All are uint32 but `i`, which is narrowed
    before anything is done with it: one 64-bit operation in the loop, and it takes twice the time."""
    bits = hashed(seed, np.uint32(element + np.uint32(i)))
    return np.uint32(np.uint32(bits >> shift) & np.uint32(0xFFFF))


@inner
def bfloat16_of(value, chance):
    """The uint16 of one of the two bfloat16 around the float32 `value`; `chance` is uint32, below 2 ** 16.

    A value that bfloat16 has stays: its low half is zero, so that nothing can carry."""
    bits = bits_of_float(value)
    if (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
        bits, chance = np.uint32(0x7FC00000), np.uint32(0)
    return np.uint16(np.uint32(bits + chance) >> np.uint32(16))


@inner
def _nearest_bfloat16(value):
    """Ties away from zero."""
    return bfloat16_of(value, np.uint32(0x8000))


@inner
def _squared(code):
    value = np.float32(code) * _STEP_SIGNED
    return value * value


@inner
def _fourth(code):
    value = np.float32(code) * _STEP_UNSIGNED
    value = value * value
    return value * value


@inner
def _scale_of(values):
    """The largest magnitude, as an integer maximum (bit patterns of one sign are in order), which is vectorised; a maximum of
    floats is not, because of NaN. What is infinite or NaN counts as the largest number."""
    largest = np.uint32(0)
    for i in range(values.shape[0]):
        largest = max(largest, np.uint32(bits_of_float(values[i]) & np.uint32(0x7FFFFFFF)))
    return float_of_bits(min(largest, _LARGEST))


def opened(stored, scale, block, low, high, room):
    """Elements [low, high) of a stored moment as float32: the array itself, or `room` filled; None of None.

    `block` is the index in `scale` of the block that begins at `low`."""
    raise TypeError("only compiled code can call this")


def closed(values, stored, scale, block, low, seed, element, shift):
    """Store float32 `values` as the elements from `low`.

    `element` is the first one's place in its parameter, `seed` hashes with it; `shift` (0 or 16) says which half of the hash
    is this moment's."""
    raise TypeError("only compiled code can call this")


@overload(opened)
def _opened(stored, scale, block, low, high, room):
    if isinstance(stored, types.NoneType):
        return lambda stored, scale, block, low, high, room: None
    if stored.dtype == types.float32:
        return lambda stored, scale, block, low, high, room: stored[low:high]
    if stored.dtype == types.uint16:
        return _open_bfloat16
    return _open_int8 if stored.dtype == types.int8 else _open_uint8


# The loops below run over slices, from 0: an index that is a sum might be negative for all that numba knows, and what it
# adds for that case costs four times the loop itself.


def _open_bfloat16(stored, scale, block, low, high, room):
    words = stored[low:high]
    for i in range(words.shape[0]):
        room[i] = float_of_bfloat16(words[i])
    return room[: high - low]


@inner
def _open_signed(codes, unit, values):
    for i in range(codes.shape[0]):
        code = np.int32(codes[i])
        magnitude = unit * _squared(abs(code))
        values[i] = -magnitude if code < 0 else magnitude


@inner
def _open_unsigned(codes, unit, values):
    for i in range(codes.shape[0]):
        values[i] = unit * _fourth(np.int32(codes[i]))


def _open_int8(stored, scale, block, low, high, room):
    for start in range(0, high - low, QUANTUM):
        end = min(start + QUANTUM, high - low)
        _open_signed(stored[low + start : low + end], scale[block + start // QUANTUM], room[start:end])
    return room[: high - low]


def _open_uint8(stored, scale, block, low, high, room):
    for start in range(0, high - low, QUANTUM):
        end = min(start + QUANTUM, high - low)
        _open_unsigned(stored[low + start : low + end], scale[block + start // QUANTUM], room[start:end])
    return room[: high - low]


@overload(closed)
def _closed(values, stored, scale, block, low, seed, element, shift):
    if stored.dtype == types.float32:
        return lambda values, stored, scale, block, low, seed, element, shift: None
    if stored.dtype == types.uint16:
        return _close_bfloat16
    return _close_int8 if stored.dtype == types.int8 else _close_uint8


def _close_bfloat16(values, stored, scale, block, low, seed, element, shift):
    words = stored[low : low + values.shape[0]]
    for i in range(words.shape[0]):
        words[i] = bfloat16_of(values[i], _chance(seed, element, i, shift))


@inner
def _close_signed(values, unit, codes, seed, element, shift):
    divisor = unit if unit > _ZERO else _ONE
    for i in range(codes.shape[0]):
        share = min(abs(values[i]) / divisor, _ONE)
        code = np.int32(np.float32(math.sqrt(share)) * _127)
        below, above = _squared(code), _squared(code + np.int32(1))
        rises = np.float32(_chance(seed, element, i, shift)) * _16_BITS * (above - below) < share - below
        code = min(code + np.int32(rises), np.int32(127))
        codes[i] = np.int8(-code if values[i] < _ZERO else code)


@inner
def _close_unsigned(values, unit, codes, seed, element, shift):
    divisor = unit if unit > _ZERO else _ONE
    for i in range(codes.shape[0]):
        share = min(values[i] / divisor, _ONE)
        code = np.int32(np.float32(math.sqrt(np.float32(math.sqrt(share)))) * _255)
        below, above = _fourth(code), _fourth(code + np.int32(1))
        rises = np.float32(_chance(seed, element, i, shift)) * _16_BITS * (above - below) < share - below
        code = min(code + np.int32(rises), np.int32(255))
        codes[i] = np.uint8(max(code, np.int32(values[i] > _ZERO)))


def _close_int8(values, stored, scale, block, low, seed, element, shift):
    for start in range(0, values.shape[0], QUANTUM):
        part = values[start : start + QUANTUM]
        unit = _scale_of(part)
        scale[block + start // QUANTUM] = unit
        codes = stored[low + start : low + start + part.shape[0]]
        _close_signed(part, unit, codes, seed, np.uint32(element + np.uint32(start)), shift)


def _close_uint8(values, stored, scale, block, low, seed, element, shift):
    for start in range(0, values.shape[0], QUANTUM):
        part = values[start : start + QUANTUM]
        unit = _scale_of(part)
        scale[block + start // QUANTUM] = unit
        codes = stored[low + start : low + start + part.shape[0]]
        _close_unsigned(part, unit, codes, seed, np.uint32(element + np.uint32(start)), shift)


def closed_maximum(values, stored, low):
    """Store max_exp_avg_sq, to nearest: it only grows, and what is rounded at random would creep upwards."""
    raise TypeError("only compiled code can call this")


@overload(closed_maximum)
def _closed_maximum(values, stored, low):
    if isinstance(stored, types.NoneType) or stored.dtype == types.float32:
        return lambda values, stored, low: None
    return _close_maximum_bfloat16


def _close_maximum_bfloat16(values, stored, low):
    words = stored[low : low + values.shape[0]]
    for i in range(words.shape[0]):
        words[i] = _nearest_bfloat16(values[i])
