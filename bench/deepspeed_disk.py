"""Runs in the peers' environment: ZeRO-3 on one rank, its optimizer's state on NVMe (or in RAM, or torch alone, to compare).

The model is a chain of layers that only add up their weights, so that forward and backward cost next to nothing and what is
left of them is what the engine does in them: with NVMe, writing float32 gradients.
"""

from __future__ import annotations

import json
import os
import sys
import time

import deepspeed
import torch

from bench.peers import serve


class Layer(torch.nn.Module):
    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(shape, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight.sum() * 1e-3


def config(mode: str, folder: str) -> dict:
    zero: dict = {"stage": 3, "contiguous_gradients": True, "overlap_comm": False}
    if mode == "cpu":
        zero["offload_optimizer"] = {"device": "cpu"}
    else:
        zero["offload_optimizer"] = {
            "device": "nvme",
            "nvme_path": folder,
            "pipeline_read": True,
            "pipeline_write": True,
            "buffer_count": 16,  # the least with which its pipelining runs: state and gradient of three groups at once
        }
        zero["sub_group_size"] = 32 << 20
    aio = {"block_size": 2 << 20, "queue_depth": 32, "intra_op_parallelism": 2, "single_submit": False, "overlap_events": True}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
        "zero_optimization": zero,
        **({"aio": aio} if mode == "tuned" else {}),
    }


def plain(model: torch.nn.Module) -> dict[str, float]:
    """The backward of the same model with torch alone: what a training step has anyway."""
    model.zero_grad()
    loss = model(torch.ones(1, dtype=torch.bfloat16)).float().sum()
    start = time.perf_counter()
    loss.backward()
    return {"backward": time.perf_counter() - start, "step": 0.0}


def main() -> None:
    mode, folder, shapes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    model = torch.nn.Sequential(*(Layer(shape) for shape in shapes))
    if mode == "plain":
        serve({"torch": torch.__version__}, lambda: plain(model))
        return
    deepspeed.init_distributed("gloo", verbose=False)
    engine, *_ = deepspeed.initialize(model=model, config=config(mode, folder), model_parameters=model.parameters())
    x = torch.ones(1, dtype=torch.bfloat16)

    def step() -> dict[str, float]:
        loss = engine(x).float().sum()
        start = time.perf_counter()
        engine.backward(loss)
        middle = time.perf_counter()
        engine.step()
        return {"backward": middle - start, "step": time.perf_counter() - middle}

    serve({"deepspeed": deepspeed.__version__, "pid": os.getpid()}, step)


if __name__ == "__main__":
    main()
