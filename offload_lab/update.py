"""What an update loop is told, whichever kernel runs it: the table of spans, their scalars, the arrays of a record. Pure.

The formula is that of `torch.optim.AdamW` on one tensor (Loshchilov & Hutter 2019, Algorithm 2; Kingma & Ba 2015,
Algorithm 1 for Adam; Reddi et al. 2018 for amsgrad), in its order: decay, first moment, second moment, then the step, all in
float32. `compiled.py` and `tiled.py` run it; both round each operation once, so they agree in every bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from offload_lab.partition import WEIGHT_BYTES, Partition

# A row of the table (int64): what the loops need to know of one span. Addresses are those of the span's first element; a
# gradient address of 0 means that the parameter has no gradient in this step: its state stays, its weight is still mirrored.
# GRADIENT_FLOAT32 is 1 where a 16-bit parameter's gradient is float32 (accumulated over several backwards), else 0.
# START is the span's first element in its parameter, SEED (`seed`) and START give the random bits of rounded moments, and
# BLOCK is which of the record's scales is that of the span's first block; only moments that are not float32 use the three.
WEIGHT_ADDRESS, GRADIENT_ADDRESS, OFFSET, LENGTH, EDITED, GRADIENT_FLOAT32, START, SEED, BLOCK = range(9)
ROW_FIELDS = 9
# A row of the float32 scalars that go with it. SCALE is what each gradient element is multiplied by, in float32, before
# anything else (clipping, unscaling); 1 changes no bit. STEP is for `seed`; the loops do not look at it.
SIGN, L2, DECAY, ONE_MINUS_BETA1, BETA2, ONE_MINUS_BETA2, ROOT_CORRECTION2, EPS, STEP_SIZE, SCALE, STEP = range(11)
SCALAR_FIELDS = 11


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
        step,
    ]


def seed(parameter: int, step: int) -> int:
    """32 bits for parameter number `parameter` at `step`, from which the loops hash those of each element.

    A counter, not a generator: how often and in what order partitions are updated, and by how many threads, changes nothing.
    """
    return (parameter * 0x9E3779B1 + step * 0x85EBCA77) & 0xFFFFFFFF


class Fields(NamedTuple):
    """Views of a record, in the order in which loops take them; None for what this kind of record has not."""

    exp_avg: np.ndarray
    exp_avg_sq: np.ndarray
    master: np.ndarray | None
    """float16: the float32 master; bfloat16: its low half (uint16); float32: None. Loops know the weight's dtype by it."""
    max_exp_avg_sq: np.ndarray | None
    exp_avg_scale: np.ndarray | None
    exp_avg_sq_scale: np.ndarray | None
    weight: np.ndarray
    """The mirror of the new weights (float32 or uint16); empty where the record has none."""


def fields(part: Partition, record: np.ndarray, with_weights: bool) -> Fields:
    """The views of `record` (uint8, of `part`). `with_weights`: the record has the weights behind the state."""
    views = {
        name: record[field.at : field.at + int(field.dtype[1]) * field.numel].view(field.dtype)
        for name, field in part.fields().items()
    }
    width = WEIGHT_BYTES[part.dtype] if with_weights else 0
    mirror = record[part.weight_at : part.weight_at + width * part.numel]
    views["weight"] = mirror.view(np.float32 if part.dtype == "float32" else np.uint16)
    return Fields(**{name: views.get(name) for name in Fields._fields})


def table(part: Partition) -> np.ndarray:
    """The rows of `part`'s spans with what does not change from step to step; addresses, EDITED and SEED are 0."""
    rows = np.zeros((len(part.spans), ROW_FIELDS), np.int64)
    rows[:, OFFSET] = [span.offset for span in part.spans]
    rows[:, LENGTH] = [span.length for span in part.spans]
    rows[:, START] = [span.start for span in part.spans]
    rows[:, BLOCK] = part.first_blocks()[:-1]
    return rows
