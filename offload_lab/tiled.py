"""The update of one partition with torch's own operations, for where numba is not to be had.

A tile at a time, so that the dozen passes stay in the cache; each operation rounds once and in the order of `compiled.py`,
so that both give the same bits. Five to twenty times slower than compiled loops.
"""

from __future__ import annotations

import ctypes

import numpy as np
import torch

from offload_lab import update as told
from offload_lab.halves import join_words, split_words
from offload_lab.moments import closed, hashed, opened
from offload_lab.partition import QUANTUM

# Elements at a time: the most that torch does not share between threads of its own. A multiple of QUANTUM.
TILE = 1 << 15


def _at(address: int, numel: int, dtype: np.dtype) -> np.ndarray:
    """`numel` elements (at least one) at an address, in memory that somebody else keeps alive."""
    return np.frombuffer((ctypes.c_uint8 * (numel * dtype.itemsize)).from_address(address), dtype)


def _gradient(row: list[int], at: int, numel: int, master: np.ndarray | None) -> torch.Tensor:
    """A tile's gradient as float32: of the weight's dtype, or float32 already."""
    if master is None or row[told.GRADIENT_FLOAT32]:
        return torch.from_numpy(_at(row[told.GRADIENT_ADDRESS] + 4 * at, numel, np.dtype(np.float32)))
    words = torch.from_numpy(_at(row[told.GRADIENT_ADDRESS] + 2 * at, numel, np.dtype(np.int16)))
    return words.view(torch.bfloat16 if master.dtype == np.uint16 else torch.float16).float()


def _step(w: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor, x: torch.Tensor | None, s: list[float]) -> None:
    """The formula, on float32 tensors: changes w, m, v and x (amsgrad's maximum) in place."""
    g = g * (s[told.SCALE] * s[told.SIGN])
    if s[told.L2]:
        g += w * s[told.L2]
    w *= s[told.DECAY]
    m += (g - m).mul_(s[told.ONE_MINUS_BETA1])
    v.mul_(s[told.BETA2]).add_((g * s[told.ONE_MINUS_BETA2]).mul_(g))
    if x is not None:
        torch.maximum(x, v, out=x)
    # NumPy's root is the correctly rounded one; torch's may come from a library that allows itself one bit.
    root = torch.from_numpy(np.sqrt((v if x is None else x).numpy()))
    denominator = root.div_(s[told.ROOT_CORRECTION2]).add_(s[told.EPS])
    w -= (m / denominator).mul_(s[told.STEP_SIZE])


class _Moment:
    """A tile of a moment as a float32 tensor: the stored elements themselves, or opened and closed again."""

    def __init__(self, stored: np.ndarray, scale: np.ndarray | None, here: slice, blocks: slice) -> None:
        self._stored = stored[here]
        self._scale = None if scale is None else scale[blocks]
        plain = self._stored.dtype == np.float32
        self.values = torch.from_numpy(self._stored if plain else opened(self._stored, self._scale))

    def close(self, chances: np.ndarray | None) -> None:
        if self._stored.dtype == np.float32:
            return
        self._stored[:], scale = closed(self.values.numpy(), self._stored.dtype, chances)
        if scale is not None:
            self._scale[:] = scale


def _masters(w: np.ndarray, master: np.ndarray | None, edited: bool) -> np.ndarray:
    """The float32 weights to update: `w` itself, or the masters of 16-bit weights as the compiled loops find them."""
    if master is None:
        return w
    if master.dtype == np.uint16:
        return join_words(w, np.zeros_like(master) if edited else master)
    weight = torch.from_numpy(w.view(np.int16)).view(torch.float16)
    kept = torch.from_numpy(master)
    # Bit patterns are compared, as the compiled loop does: -0 is not 0.
    same = kept.to(torch.float16).view(torch.int16) == weight.view(torch.int16)
    return torch.where(same, kept, weight.float()).numpy()


def _publish(w: np.ndarray, master: np.ndarray | None, new: np.ndarray) -> None:
    """Round the new masters to the weights. float32 weights have been changed in place."""
    if master is None:
        return
    if master.dtype == np.uint16:
        w[:], master[:] = split_words(new)
    else:
        master[:] = new
        w[:] = torch.from_numpy(new).to(torch.float16).view(torch.int16).numpy().view(np.uint16)


def update(rows, scalars, exp_avg, exp_avg_sq, master, max_exp_avg_sq, scale, scale_sq, mirror, begin, end) -> None:
    """Update elements [begin, end) of a partition: arguments and results are those of `compiled.update`."""
    word = np.dtype(np.float32 if master is None else np.uint16)
    for row, s in zip(rows.tolist(), scalars.tolist(), strict=True):
        offset, length = row[told.OFFSET], row[told.LENGTH]
        first, last = max(offset, begin), min(offset + length, end)
        if first >= last:
            continue
        if scale is not None:  # whole blocks
            first, last = (offset + min(-(-(at - offset) // QUANTUM) * QUANTUM, length) for at in (first, last))
        for low in range(first, last, TILE):
            here, at = slice(low, min(low + TILE, last)), low - offset
            w = _at(row[told.WEIGHT_ADDRESS] + word.itemsize * at, here.stop - low, word)
            if row[told.GRADIENT_ADDRESS]:
                half = None if master is None else master[here]
                current = _masters(w, half, row[told.EDITED])
                blocks = slice(row[told.BLOCK] + at // QUANTUM, row[told.BLOCK] + -(-(here.stop - offset) // QUANTUM))
                m, v = _Moment(exp_avg, scale, here, blocks), _Moment(exp_avg_sq, scale_sq, here, blocks)
                x = None if max_exp_avg_sq is None else _Moment(max_exp_avg_sq, None, here, blocks)
                _step(
                    torch.from_numpy(current),
                    _gradient(row, at, w.size, half),
                    m.values,
                    v.values,
                    None if x is None else x.values,
                    s,
                )
                _publish(w, half, current)
                if exp_avg.dtype != np.float32:
                    chances = hashed(row[told.SEED], row[told.START] + at, w.size)
                    m.close(chances & np.uint32(0xFFFF))
                    v.close(chances >> np.uint32(16))
                    if x is not None:
                        x.close(None)
            if mirror.size:
                mirror[here] = w


def not_finite(rows: np.ndarray, found: np.ndarray, first: int, stride: int) -> None:
    """Set `found[r]` where an element of row r is infinite or NaN; arguments are those of `compiled.not_finite`."""
    for r in range(first, len(rows), stride):
        address, numel, itemsize, infinity = rows[r].tolist()
        pattern, least = (np.int32, 0x7F800000) if itemsize == 4 else (np.int16, infinity)
        values = torch.from_numpy(_at(address, numel, np.dtype(pattern))) if numel else torch.zeros(1, dtype=torch.int16)
        magnitudes = (tile & torch.iinfo(tile.dtype).max for tile in values.split(TILE))
        found[r] = any(int(tile.max()) >= least for tile in magnitudes)
