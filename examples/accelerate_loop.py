"""A training loop under `accelerate` on one process, with the optimizer's state on disk:
`python examples/accelerate_loop.py [FOLDER]`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from accelerate import Accelerator

from offload_lab import OffloadAdamW, OffloadPolicy


def train(build: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]) -> torch.nn.Module:
    """Four steps of two batches each, clipped, with a schedule. `build` makes the optimizer."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    optimizer = build(list(model.parameters()))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=4)
    model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
    for batch in range(8):
        x = torch.randn(8, 20, generator=torch.Generator().manual_seed(batch))
        with accelerator.accumulate(model):
            accelerator.backward(model(x).pow(2).mean())
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return accelerator.unwrap_model(model)


def main(folder: Path) -> torch.nn.Module:
    opened: list[OffloadAdamW] = []

    def build(parameters: list[torch.nn.Parameter]) -> OffloadAdamW:
        policy = OffloadPolicy(tier="disk", directory=folder / "state", overlap="forward")
        opened.append(OffloadAdamW(parameters, lr=0.01, offload=policy))
        return opened[0]

    model = train(build)
    print(opened[0])
    opened[0].close()
    return model


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch))
