"""Runs in the peers' environment: DeepSpeedCPUAdam on one flat tensor, in float32 and with the casts of the mixed case."""

from __future__ import annotations

import sys
import time

import deepspeed
import torch
from deepspeed.ops.adam import DeepSpeedCPUAdam

from bench.peers import serve


def main() -> None:
    numel = int(sys.argv[1])
    weight = torch.nn.Parameter(torch.randn(numel))
    weight.grad = torch.randn(numel)
    half = weight.detach().bfloat16()
    gradient = weight.grad.bfloat16()
    optimizer = DeepSpeedCPUAdam([weight], lr=1e-3, adamw_mode=True)

    def step(case: str) -> dict[str, float]:
        start = time.perf_counter()
        if case == "mixed":
            weight.grad.copy_(gradient)
        optimizer.step()
        if case == "mixed":
            half.copy_(weight.detach())
        return {"seconds": time.perf_counter() - start}

    serve({"deepspeed": deepspeed.__version__, "threads": torch.get_num_threads()}, step)


if __name__ == "__main__":
    main()
