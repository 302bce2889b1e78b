"""Parameters of which this process holds a shard: the DTensors of FSDP2. Each rank keeps the state of its own shard.

Everything else here is for one process; it works on `local(parameter)`, an ordinary tensor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch


def is_sharded(tensor: Any) -> bool:
    """Whether `tensor` is a DTensor. Where `torch.distributed.tensor` was never imported there is none."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of `tensor` that is in this process: of a DTensor its shard (which may be empty), else the tensor itself."""
    if not is_sharded(tensor):
        return tensor
    with torch.no_grad():
        return tensor.to_local()


def like(parameter: torch.Tensor, host: torch.Tensor) -> torch.Tensor:
    """`host`, which is of the shape of this process's part of `parameter`, sharded as `parameter` is: what
    `torch.distributed.checkpoint` needs to know of a moment in order to save it once and to load it on other ranks."""
    if not is_sharded(parameter) or host.dim() == 0:
        return host
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(
        host, parameter.device_mesh, parameter.placements, run_check=False, shape=parameter.shape, stride=parameter.stride()
    )


def world() -> tuple[int, int]:
    """This process's rank and how many there are; (0, 1) where nothing is distributed."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def directory_of_rank(directory: Path) -> Path:
    """Where this rank keeps its files: each in a directory of its own below `directory`, where there are several."""
    rank, size = world()
    return directory if size == 1 else directory / f"rank-{rank}-of-{size}"


def somewhere(here: bool, parameters: Iterable[torch.Tensor]) -> bool:
    """Whether `here` is true on any rank that shares one of `parameters`; without shards, whether it is here.

    A collective where there are shards: all ranks skip a step, or none does, or their weights would part.
    """
    if world()[1] == 1 or not any(map(is_sharded, parameters)):
        return here
    flag = torch.tensor([float(here)])
    torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX)
    return bool(flag.item())
