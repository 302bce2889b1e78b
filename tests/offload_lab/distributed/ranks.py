"""What each rank of the tests in this folder runs: `torchrun … ranks.py SCENARIO FOLDER`."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from offload_lab import OffloadAdamW, OffloadPolicy

BATCH = 6  # of two ranks three each, of three two each


def model(dtype=torch.float32):
    torch.manual_seed(0)
    # 7 × 5 on two ranks: 4 and 3 rows; the last layer has one row, so that a shard is empty.
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1)).to(dtype)


def batch(step):
    return torch.randn(BATCH, 5, generator=torch.Generator().manual_seed(step))


def mine(step):
    return batch(step).chunk(dist.get_world_size())[dist.get_rank()]


def sharded(module, **options):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in module:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh, **options)
    return fully_shard(module, mesh=mesh, **options)


def whole(module):
    """Every weight, gathered on every rank."""
    return [p.full_tensor() if hasattr(p, "full_tensor") else p.detach() for p in module.parameters()]


def policy(folder, name="state", **more):
    return OffloadPolicy(tier="disk", directory=folder / name, partition_size=10, **more)


def steps(module, optimizer, numbers, clip=None):
    for step in numbers:
        optimizer.zero_grad()
        module(mine(step)).pow(2).mean().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()


def fsdp(folder):
    module = sharded(model())
    optimizer = OffloadAdamW(module.parameters(), lr=0.01, offload=policy(folder))
    steps(module, optimizer, range(4), clip=0.5)
    held = sum(p.to_local().numel() for p in module.parameters())
    rank, size = dist.get_rank(), dist.get_world_size()
    assert (folder / "state" / f"rank-{rank}-of-{size}" / "offload.json").exists()
    assert sum(t.numel for t in optimizer._engine.tracked) == held < sum(p.numel() for p in module.parameters())
    # A gradient that is not finite on one rank: both skip.
    before = whole(module)
    optimizer.zero_grad()
    module(mine(9)).pow(2).mean().backward()
    if rank == 0:
        next(module.parameters()).grad.to_local().fill_(float("nan"))
    optimizer.step()
    assert optimizer.stats()["skipped_steps"] == 1
    assert all(torch.equal(p, q) for p, q in zip(before, whole(module), strict=True))
    optimizer.close()
    return whole(module)


def save(folder):
    module = sharded(model(torch.bfloat16))
    optimizer = OffloadAdamW(module.parameters(), lr=0.01, offload=policy(folder))
    for step in range(3):
        optimizer.zero_grad()
        module(mine(step).bfloat16()).float().pow(2).mean().backward()
        optimizer.step()
    weights, state = get_state_dict(module, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder / "checkpoint")
    optimizer.close()
    return whole(module) + gathered(state)


def gathered(state):
    return [
        value.full_tensor() if hasattr(value, "full_tensor") else value
        for name in sorted(state["state"])
        for key, value in sorted(state["state"][name].items())
        if isinstance(value, torch.Tensor)
    ]


def load(folder):
    module = sharded(model(torch.bfloat16))
    for parameter in module.parameters():
        parameter.data.mul_(0)
    optimizer = OffloadAdamW(module.parameters(), lr=0.01, offload=policy(folder, f"of {dist.get_world_size()}"))
    weights, state = get_state_dict(module, optimizer)
    content = {"model": weights, "optimizer": state}
    dcp.load(content, checkpoint_id=folder / "checkpoint")
    set_state_dict(module, optimizer, model_state_dict=content["model"], optim_state_dict=content["optimizer"])
    weights, state = get_state_dict(module, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder / "checkpoint")
    optimizer.close()
    return whole(module) + gathered(state)


def ddp(folder):
    module = DistributedDataParallel(model())
    optimizer = OffloadAdamW(module.parameters(), lr=0.01, offload=policy(folder))
    for step in range(0, 6, 2):
        optimizer.zero_grad()
        with module.no_sync():
            (module(mine(step)).pow(2).mean() / 2).backward()
        (module(mine(step + 1)).pow(2).mean() / 2).backward()
        optimizer.step()
    optimizer.close()
    return whole(module)


def weights_in_ram(folder):
    module = sharded(model(), offload_policy=CPUOffloadPolicy(pin_memory=False))
    optimizer = OffloadAdamW(module.parameters(), lr=0.01, offload=policy(folder))
    steps(module, optimizer, range(4), clip=0.5)
    optimizer.close()
    return whole(module)


if __name__ == "__main__":
    scenario, out = sys.argv[1], Path(sys.argv[2])
    dist.init_process_group("gloo")
    result = globals()[scenario](out)
    torch.save(result, out / f"{scenario}-{dist.get_rank()}-of-{dist.get_world_size()}.pt")
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)
