"""Moments in fewer than 32 bits, as whole arrays: what checkpoints, the uncompiled loops and `verify` need of them.

The same numbers, bit for bit, as `compiled_moments.py`, which says what the formats are and why rounding is random.
Arrays are those of one span. In a record of 8-bit moments it begins with a whole block.
"""

from __future__ import annotations

import numpy as np

from offload_lab.partition import QUANTUM

_ONE = np.float32(1)
_NEAREST = np.uint32(0x8000)
_LARGEST = np.uint32(0x7F7FFFFF)  # the bit pattern of the largest float32


def hashed(seed: int, start: int, count: int) -> np.ndarray:
    """32 random-looking bits (uint32) for each of `count` elements from a parameter's element `start`."""
    x = np.uint32(seed & 0xFFFFFFFF) + (np.arange(start, start + count, dtype=np.int64) & 0xFFFFFFFF).astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def opened(stored: np.ndarray, scale: np.ndarray | None, start: int = 0) -> np.ndarray:
    """A stored moment as float32. uint16 holds bfloat16; int8 and uint8 have a `scale` for each QUANTUM elements.

    `start` is the first element's place in its parameter: the first block is the one that it lies in."""
    if stored.dtype == np.float32:
        return stored.copy()
    if stored.dtype == np.uint16:
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    skipped = start % QUANTUM
    units = np.repeat(scale, QUANTUM)[skipped : skipped + stored.size]
    if stored.dtype == np.uint8:
        return units * _fourth(stored)
    return np.where(stored < 0, -(units * _squared(stored)), units * _squared(stored))


def closed(values: np.ndarray, dtype: np.dtype, chances: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """float32 `values` as a stored moment of NumPy dtype `dtype`, and its scales (None where it has none).

    `chances`, 16 random bits for each element, choose between the two neighbours; None: to the nearer one.
    """
    if dtype == np.float32:
        return values, None
    if chances is None:
        chances = np.full(values.shape, _NEAREST, np.uint32)
    if dtype == np.uint16:
        bits = values.view(np.uint32)
        nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
        return np.where(nan, 0x7FC0, (bits + chances) >> np.uint32(16)).astype(np.uint16), None
    return _closed_blocks(values, np.dtype(dtype) == np.int8, chances)


def _squared(code: np.ndarray) -> np.ndarray:
    value = code.astype(np.float32) * np.float32(1 / 127)
    return value * value


def _fourth(code: np.ndarray) -> np.ndarray:
    value = code.astype(np.float32) * np.float32(1 / 255)
    value = value * value
    return value * value


def _closed_blocks(values: np.ndarray, signed: bool, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    blocks = -(-values.size // QUANTUM)
    magnitudes = np.zeros(blocks * QUANTUM, np.float32)
    magnitudes[: values.size] = np.abs(values)
    # As bit patterns, so that what is infinite or NaN counts as the largest number.
    scale = np.minimum(magnitudes.view(np.uint32).reshape(blocks, QUANTUM).max(axis=1, initial=0), _LARGEST).view(np.float32)
    divisor = np.repeat(np.where(scale > 0, scale, _ONE), QUANTUM)[: values.size]
    share = np.minimum(magnitudes[: values.size] / divisor, _ONE)
    most, value_of = (127, _squared) if signed else (255, _fourth)
    code = (np.sqrt(share if signed else np.sqrt(share)) * np.float32(most)).astype(np.int32)
    below, above = value_of(code), value_of(code + 1)
    code += chances.astype(np.float32) * np.float32(2**-16) * (above - below) < share - below
    code = np.minimum(code, most)
    if signed:
        return np.where(values < 0, -code, code).astype(np.int8), scale
    return np.where(values > 0, np.maximum(code, 1), code).astype(np.uint8), scale
