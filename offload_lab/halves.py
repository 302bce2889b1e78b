"""A bfloat16 weight and the low half of its float32 master, for whole arrays: what checkpoints need of `update.py`'s loops."""

from __future__ import annotations

import numpy as np
import torch

from offload_lab.partition import Span
from offload_lab.storage.memory import as_bytes


def flat(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's values as a flat float32 array in host memory."""
    return tensor.detach().to("cpu", torch.float32).contiguous().view(-1).numpy()


def words_of(tensor: torch.Tensor) -> np.ndarray:
    """The bit patterns of a contiguous 16-bit host tensor, as a flat uint16 view that lives no longer than the tensor."""
    return as_bytes(tensor.data_ptr(), tensor.numel() * 2).view(np.uint16)


def join_words(words: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Float32 masters from bfloat16 bit patterns and low halves (both uint16): `update.join` for whole arrays."""
    low = np.where(((words & 0x7FFF) == 0) & (rest >= 0x8000), 0, rest).astype(np.uint32)
    return (((words.astype(np.uint32) - (low >> 15)) << 16) | low).view(np.float32)


def split_words(master: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bfloat16 bit patterns and low halves (both uint16) of float32 masters: `update.split` for whole arrays."""
    bits = master.view(np.uint32)
    bits = np.where((bits & 0x7FFFFFFF) > 0x7F800000, (bits & 0x80000000) | 0x7FC00000, bits).astype(np.uint32)
    return ((bits + np.uint32(0x8000)) >> 16).astype(np.uint16), (bits & 0xFFFF).astype(np.uint16)


def low_halves(master: torch.Tensor, weight: torch.Tensor | int, span: Span) -> np.ndarray:
    """The low halves of a span's masters where they round to the bfloat16 `weight` (contiguous, host; or its address); 0
    elsewhere."""
    there = slice(span.start, span.start + span.length)
    words, rest = split_words(flat(master)[there])
    address = weight if isinstance(weight, (int, np.integer)) else weight.data_ptr()
    return np.where(words == as_bytes(int(address), master.numel() * 2).view(np.uint16)[there], rest, 0)


def write_mirror(mirror: np.ndarray, address: int, span: Span) -> None:
    """Copy a span's weights (contiguous, host, from element 0 at `address`) into its part of a record's mirror."""
    size = mirror.itemsize
    mirror[:] = as_bytes(address + span.start * size, span.length * size).view(mirror.dtype)
