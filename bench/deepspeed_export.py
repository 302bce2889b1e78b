"""Runs in the peers' environment: DeepSpeed reads an exported configuration and trains two steps with it on the CPU.

`python -m bench.deepspeed_export CONFIG.json` prints `@ ` and one JSON object: what DeepSpeed understood, what it trained, and
where it put things.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import deepspeed
import torch
from deepspeed.runtime.config import DeepSpeedConfig

WIDTH = 1024  # three layers of a million parameters: a tensor of state is larger than the 2 MiB below which none goes to disk


def understood(config: dict) -> dict:
    """The configuration as DeepSpeed's own classes read it, and which keys they do not know."""
    read = DeepSpeedConfig(json.loads(json.dumps(config)))
    zero = read.zero_config
    return {
        "train_batch_size": read.train_batch_size,
        "micro_batch": read.train_micro_batch_size_per_gpu,
        "accumulation": read.gradient_accumulation_steps,
        "clip": read.gradient_clipping,
        "optimizer": [read.optimizer_name, read.optimizer_params],
        "bf16": read.bfloat16_config.enabled,
        "fp16": read.float16_config.enabled,
        "grad_accum_dtype": read.grad_accum_dtype,
        "aio": read.aio_config,
        "zero": json.loads(zero.model_dump_json(by_alias=True)),
    }


def train(config: dict) -> dict:
    dtype = torch.bfloat16 if "bf16" in config else torch.float16 if "fp16" in config else torch.float32
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(3)))
    engine, optimizer, *_ = deepspeed.initialize(model=model, config=config, model_parameters=model.parameters())
    x = torch.randn(config["train_micro_batch_size_per_gpu"], WIDTH).to(dtype)
    losses = []
    for _ in range(2 * config["gradient_accumulation_steps"]):
        loss = (engine(x).float() - 1).pow(2).mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    places = {}
    for name in ("offload_optimizer", "offload_param"):
        folder = config["zero_optimization"].get(name, {}).get("nvme_path")
        if folder:
            places[name] = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return {
        "losses": losses,
        "steps": engine.global_steps,
        "optimizer": type(optimizer).__name__,
        "inner": type(optimizer.optimizer).__name__,
        "bytes_on_disk": places,
        "parameters": 3 * WIDTH * (WIDTH + 1),
    }


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    deepspeed.init_distributed("gloo", verbose=False)
    answer = {"deepspeed": deepspeed.__version__, "understood": understood(config)}
    if "--read" not in sys.argv:
        answer |= train(config)
    print("@ " + json.dumps(answer), flush=True)
    os._exit(0)  # DeepSpeed's threads may outlive main


if __name__ == "__main__":
    main()
