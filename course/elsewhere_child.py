"""One small training, by whoever is asked: DeepSpeed in a process of its own, or a script that `accelerate launch` starts.

Run as a file, not as a module: where DeepSpeed lives, offload_lab's own requirements need not be installed, so that nothing but
torch is imported before it is known who trains.

    elsewhere_child.py deepspeed CONFIG.json      trains what it is told, a JSON object a line in, one a line out
    elsewhere_child.py accelerate PLAN.json STEPS started by `accelerate launch`; OffloadAdamW by the plan
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

WIDTH, LAYERS, BATCH = 1024, 8, 4
LR = 1e-4
PARAMETERS = LAYERS * WIDTH * WIDTH
"""Each layer is one matrix of 4 MiB in float32: DeepSpeed leaves what is below 2 MiB in RAM, whatever is asked for."""
ANSWER = "@ "
"""Begins the lines that are an answer; whatever else is printed is another's talk."""


class Layer(torch.nn.Module):
    """x + tanh(W x): (batch, width) in and out, in the dtype of the weight."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.linear(x))


def network() -> torch.nn.Sequential:
    """The model, bfloat16, the same each time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(*(Layer() for _ in range(LAYERS))).to(torch.bfloat16)


def batch() -> torch.Tensor:
    """(BATCH, WIDTH), bfloat16, the same each time: what is learned is these few vectors by heart."""
    return torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)


def loss_of(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """How far the model is from turning a vector round, as a float32 scalar."""
    return (model(x).float() - x.flip(1).float()).pow(2).mean()


def _say(answer: dict[str, Any]) -> None:
    print(ANSWER + json.dumps(answer), flush=True)


def _deepspeed(file: str) -> None:
    import deepspeed

    config = json.loads(Path(file).read_text(encoding="utf-8"))
    deepspeed.init_distributed("gloo", verbose=False)
    model = network()
    engine, optimizer, *_ = deepspeed.initialize(model=model, config=config, model_parameters=model.parameters())
    _say({"deepspeed": deepspeed.__version__, "optimizer": type(optimizer).__name__, "torch": torch.__version__})
    folder = config["zero_optimization"].get("offload_optimizer", {}).get("nvme_path")
    x = batch()
    for line in sys.stdin:
        for _ in range(json.loads(line)["steps"]):
            loss = loss_of(engine, x)
            engine.backward(loss)
            engine.step()
        files = [path for path in Path(folder).rglob("*") if path.is_file()] if folder else []
        _say({"loss": loss.item(), "steps": engine.global_steps, "disk": sum(path.stat().st_size for path in files)})


def _accelerate(file: str, steps: int) -> None:
    from accelerate import Accelerator

    from offload_lab import OffloadAdamW
    from offload_lab.placing import policy_of
    from offload_lab.plan import Plan

    plan = Plan.from_json(Path(file).read_text(encoding="utf-8"))
    accelerator = Accelerator()
    model = network()
    with OffloadAdamW(model.parameters(), lr=LR, offload=policy_of(plan.placement, plan.offload)) as inner:
        model, optimizer = accelerator.prepare(model, inner)
        x, losses = batch().to(accelerator.device), []
        for _ in range(steps):
            loss = loss_of(model, x)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        told = {"losses": losses, "device": str(accelerator.device), "precision": accelerator.mixed_precision}
        _say(told | {"type": accelerator.distributed_type.value, "disk": inner.memory()["disk"]})


def main(arguments: list[str]) -> None:
    kind, *rest = arguments
    if kind == "deepspeed":
        _deepspeed(rest[0])
    else:
        _accelerate(rest[0], int(rest[1]))
    sys.stdout.flush()
    os._exit(0)  # DeepSpeed's threads may outlive main


if __name__ == "__main__":
    main(sys.argv[1:])
