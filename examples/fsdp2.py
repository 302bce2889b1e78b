"""FSDP2 with the optimizer's state on disk, saved and resumed:
`torchrun --nproc-per-node=2 examples/fsdp2.py FOLDER`.

Each rank keeps the state of its own shard, in a directory of its own below FOLDER/state. The checkpoint is torch's distributed
one, so that the second run may have another number of ranks. Runs on accelerators, and with gloo on the CPU.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from offload_lab import OffloadAdamW, OffloadPolicy

BATCH = 8


def start() -> torch.device:
    """This rank's device. gloo beside nccl: what ranks tell each other about a step is in RAM."""
    cuda = torch.cuda.is_available()
    dist.init_process_group("cuda:nccl,cpu:gloo" if cuda else "gloo")
    if not cuda:
        return torch.device("cpu")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return torch.device("cuda", torch.cuda.current_device())


def build(device: torch.device, seed: int) -> torch.nn.Module:
    """A sharded bfloat16 model; `seed` must be the same on every rank, because each keeps its shard of what it built."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).to(torch.bfloat16)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def optimizer_of(model: torch.nn.Module, folder: Path) -> OffloadAdamW:
    """Built after sharding: what it follows are the shards."""
    # The checkpoint is what is resumed from, so that the files of the run are scratch space.
    policy = OffloadPolicy(tier="disk", directory=folder / "state", durability="checkpoint")
    return OffloadAdamW(model.parameters(), lr=0.01, offload=policy)


def train(model: torch.nn.Module, optimizer: OffloadAdamW, device: torch.device, steps: range) -> None:
    for step in steps:
        everything = torch.randn(BATCH, 20, generator=torch.Generator().manual_seed(step))
        mine = everything.chunk(dist.get_world_size())[dist.get_rank()].to(device, torch.bfloat16)
        optimizer.zero_grad()
        model(mine).float().pow(2).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def save(model: torch.nn.Module, optimizer: OffloadAdamW, path: Path) -> None:
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=path)


def load(model: torch.nn.Module, optimizer: OffloadAdamW, path: Path) -> None:
    weights, state = get_state_dict(model, optimizer)
    content = {"model": weights, "optimizer": state}
    dcp.load(content, checkpoint_id=path)  # into the tensors that are there, each rank what it holds
    set_state_dict(model, optimizer, model_state_dict=content["model"], optim_state_dict=content["optimizer"])


def main(folder: Path, device: torch.device) -> list[torch.Tensor]:
    """Four steps, a checkpoint, and four more from the checkpoint in a model that knew nothing. Every weight at the end."""
    model = build(device, seed=0)
    with optimizer_of(model, folder) as optimizer:
        train(model, optimizer, device, range(4))
        save(model, optimizer, folder / "checkpoint")
        if dist.get_rank() == 0:
            print(optimizer)
    resumed = build(device, seed=1)
    with optimizer_of(resumed, folder) as optimizer:
        load(resumed, optimizer, folder / "checkpoint")
        train(resumed, optimizer, device, range(4, 8))
    return [parameter.full_tensor() for parameter in resumed.parameters()]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: torchrun --nproc-per-node=2 examples/fsdp2.py FOLDER    (one that all ranks see)")
    main(Path(sys.argv[1]), start())
    dist.barrier()
    time.sleep(0.5)  # gloo's threads let go of the last tensors; one that does so while Python ends would abort it
    dist.destroy_process_group()
