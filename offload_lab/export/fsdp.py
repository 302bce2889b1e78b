"""A plan as a script of FSDP2: weights sharded, and in RAM where they must move; OffloadAdamW holds the state."""

from __future__ import annotations

import textwrap

from offload_lab.export.policy_text import policy_text
from offload_lab.export.recipe import WEIGHT_BYTES, WHERE, ExportError, Recipe, about, check, moves, ranks
from offload_lab.plan import Plan

_SCRIPT = '''\
"""{head}"""

{functools}import os
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import {fsdp_names}fully_shard
{imports}
BATCH, SEQUENCE, ACCUMULATION = {batch}, {sequence}, {accumulation}
STEPS = int(os.environ.get("STEPS", "2"))


def build_model() -> tuple[torch.nn.Module, list[torch.nn.Module]]:
    """Yours goes here: the model, in its dtype, and those of its parts that are gathered and freed one by one (its blocks)."""
    blocks = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(2)]
    model = torch.nn.Sequential(torch.nn.Embedding(256, 64), *blocks, torch.nn.Linear(64, 256)).to({dtype})
    return model, blocks


def batch(number: int) -> torch.Tensor:
    """Yours goes here: tokens (BATCH, SEQUENCE + 1), other ones on each rank."""
    seed = torch.Generator().manual_seed(number * dist.get_world_size() + dist.get_rank())
    return torch.randint(256, (BATCH, SEQUENCE + 1), generator=seed)


def loss_of(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    scores = model(tokens[:, :-1])
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1).float(), tokens[:, 1:].flatten())


def main() -> None:
    cuda = torch.cuda.is_available()
    # gloo as well: {why_gloo}
    dist.init_process_group("cuda:nccl,cpu:gloo" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if dist.get_world_size() != {ranks}:
        raise SystemExit(f"the plan is for --nproc-per-node={ranks}, not for {{dist.get_world_size()}}; plan again")
    torch.manual_seed(0)  # every rank builds the same weights and keeps its shard
    model, blocks = build_model()
{checkpointing}    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    sharding = {{"mesh": mesh{offload}}}
    for block in blocks:
        fully_shard(block, **sharding)
    fully_shard(model, **sharding)
{optimizer}
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for micro in range(ACCUMULATION):
            loss = loss_of(model, batch(step * ACCUMULATION + micro).to(device)) / ACCUMULATION
            loss.backward()
            total += loss.item()
{clip}        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {{step}}: loss {{total:.4f}}", flush=True)
{close}

if __name__ == "__main__":
    main()
    dist.barrier()
    time.sleep(0.5)  # gloo's threads let go of the last tensors; one that does so while Python ends would abort it
    dist.destroy_process_group()
'''


def as_fsdp(plan: Plan, recipe: Recipe | None = None) -> str:
    """A Python script that torchrun runs as it is, with a small model where yours goes.

    Raises ExportError where FSDP2 cannot do what was planned, ValueError where the plan is damaged.
    """
    check(plan)
    recipe = recipe or Recipe()
    places, count = plan.placement, ranks(plan)
    _refuse(plan)
    moved, torchs = moves(plan), places.state == "gpu"
    head = [f"Exported by offload-lab from a plan: {about(plan)}.", "", *_notes(plan)]
    text = "\n".join(line for note in head for line in (textwrap.wrap(note, 118) or [""])).rstrip()
    text += f"\n\n    torchrun --nproc-per-node={count} THIS_FILE        # STEPS=1000 in the environment for more steps\n"
    pin = ', "offload_policy": CPUOffloadPolicy(pin_memory=cuda)' if moved else ""
    arguments = ", ".join(
        f"{name}={tuple(value) if isinstance(value, list) else value}" for name, value in recipe.arguments().items()
    )
    if torchs:
        optimizer = f"    optimizer = torch.optim.AdamW(model.parameters(), {arguments})\n"
    else:
        optimizer = f"    policy = OffloadPolicy({policy_text(plan)})\n"
        optimizer += f"    optimizer = OffloadAdamW(model.parameters(), {arguments}, offload=policy)\n"
    checkpointing = (
        "    for block in blocks:  # only the input of each is kept for backward\n"
        "        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)\n"
    )
    own = [] if torchs else ["from offload_lab import OffloadAdamW, OffloadPolicy\n"]
    full = plan.model.checkpointing == "full"
    return _SCRIPT.format(
        head=text.replace("\\", "\\\\").replace('"""', "'''"),
        functools="import functools\n" if full else "",
        fsdp_names="CPUOffloadPolicy, " if moved else "",
        imports=("from torch.utils.checkpoint import checkpoint\n" if full else "") + "".join("\n" + line for line in own),
        batch=plan.model.batch,
        sequence=plan.model.sequence,
        accumulation=plan.model.accumulation,
        dtype=f"torch.{plan.model.dtype}",
        why_gloo="gradients and what ranks tell each other about a step are in RAM" if moved or not torchs else "for your own",
        ranks=count,
        checkpointing=checkpointing if full else "",
        offload=pin,
        optimizer=optimizer,
        clip="" if recipe.clip is None else f"        torch.nn.utils.clip_grad_norm_(model.parameters(), {recipe.clip})\n",
        close="" if torchs else "    optimizer.close()\n",
    )


def _refuse(plan: Plan) -> None:
    places = plan.placement
    if places.weights == "disk":
        raise ExportError("the plan puts weights on disk, and FSDP2 moves them to RAM only. Export deepspeed.")
    if places.gradients == "disk" and places.weights != "ram":
        raise ExportError("the plan puts gradients on disk, and FSDP2 keeps them beside the weights. Export deepspeed.")
    if places.state == "gpu" and places.weights != "gpu":
        raise ExportError(
            "the plan leaves the state on the accelerator and moves the weights; torch's AdamW keeps them together."
        )
    if plan.model.dtype == "float16":
        raise ExportError(
            "the plan trains float16 weights, whose loss must be scaled, which the script does not do. Plan with dtype "
            "bfloat16, or export deepspeed."
        )
    more = WEIGHT_BYTES[plan.model.dtype] * plan.model.parameters // ranks(plan)
    room, taken = plan.capacity.get("ram"), plan.total("ram")
    if places.gradients == "disk" and room is not None and taken + more * ranks(plan) > room:
        raise ExportError(
            f"the plan puts gradients on disk, with DeepSpeed's state. Under FSDP2 they are in RAM with the weights: "
            f"{more * ranks(plan):,} bytes more, where {taken:,} of {room:,} are taken. Export deepspeed."
        )
    room, taken = plan.capacity.get("gpu"), plan.total("gpu")
    early = places.weights == "gpu" and places.gradients != "gpu"
    if early and room is not None and taken + more > room:
        raise ExportError(
            f"the plan uses gradients up during backward. Under FSDP2 they stay until the step: {more:,} bytes more on the "
            f"accelerator, where {taken:,} of {room:,} are taken. Plan with weights in RAM, or on more accelerators."
        )


def _notes(plan: Plan) -> list[str]:
    places, dtype = plan.placement, plan.model.dtype
    notes = []
    if moves(plan) and places.gradients != "ram":
        planned = f"the plan has them {WHERE[places.gradients]}"
        notes.append(f"Gradients: CPUOffloadPolicy moves them to RAM with the weights; {planned}.")
    if not moves(plan) and (places.gradients != places.weights or plan.offload.overlap == "backward"):
        notes.append("Gradients: planned to be used up during backward. Here they stay beside the weights until the step.")
    if places.state == "gpu" and dtype == "bfloat16":
        notes.append(
            "State: torch's AdamW keeps moments in bfloat16 beside bfloat16 weights and has no masters; small updates are "
            "lost. The plan counts float32 masters and moments."
        )
    if places.state == "disk" and plan.offload.durability != "checkpoint":
        notes.append(
            "Run again, it goes on from the last step in the directory, weights and state; where the data stand, you keep."
        )
    if plan.hardware.gpus == 0:
        notes.append("Without an accelerator the ranks are processes on the CPU, and talk over gloo.")
    return notes
