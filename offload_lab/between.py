"""Bytes that several accelerators send each other in one step. Pure: no torch.

Weights and gradients are shared out over N of them (ZeRO stage 3, FSDP2). Every pass over the model gathers all weights, and
after every backward gradients are summed and each keeps its share of the sums. With Ψ bytes of weights, and as many of
gradients, that is 2Ψ and Ψ a step: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
Models", section 7 (https://arxiv.org/abs/1910.02054). In a ring each sends, and receives, (N − 1) / N of what is gathered or
summed: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel Distrib.
Comput. 69, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab.models import ModelSpec
from offload_lab.plan import Load, Placement

SOURCE = "ZeRO stage 3; Rajbhandari et al. 2020, section 7"


@dataclass(frozen=True)
class Between:
    """What each accelerator sends to the others in one step, in bytes."""

    accelerators: int = 1
    gathers: int = 0
    """How often all weights are gathered."""
    sums: int = 0
    """How often all gradients are summed."""
    weights: int = 0
    gradients: int = 0

    @property
    def nbytes(self) -> int:
        return self.weights + self.gradients


def between(model: ModelSpec, load: Load, placement: Placement, gpus: int) -> Between:
    """Forward and backward each gather the weights, of every micro-batch. DeepSpeed gathers them once more where forward is
    repeated; FSDP2 repeats it within a block whose weights backward has gathered already. One accelerator sends nothing."""
    if gpus < 2:
        return Between()
    again = load.checkpointing == "full" and placement.runs_with == "deepspeed"
    gathers, sums = (2 + again) * load.accumulation, load.accumulation
    weights, trained = model.weight_bytes(load.dtype), model.weight_bytes(load.dtype, trainable_only=True)
    return Between(gpus, gathers, sums, gathers * weights * (gpus - 1) // gpus, sums * trained * (gpus - 1) // gpus)


def passes(load: Load) -> int:
    """How often DeepSpeed brings weights that are not on the accelerator there, in one step."""
    return (2 + (load.checkpointing == "full")) * load.accumulation
