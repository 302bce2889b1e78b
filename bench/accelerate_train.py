"""What `accelerate launch` starts for bench.exports: two steps, as the exported file's comments say a script is to be written.

`accelerate_train.py plain|deepspeed|deepspeed-file|fsdp2 [FOLDER]` prints `@ ` and one JSON object on rank 0. Those with
DeepSpeed run in the peers' environment, where offload_lab's own requirements are not installed.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from torch.distributed.fsdp import CPUOffloadPolicy

WIDTH, STEPS, BATCH = 512, 2, 2


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(self.linear(x))


class Model(torch.nn.Module):
    _no_split_modules = ["Block"]  # noqa: RUF012 - what Transformers calls it, and as they write it

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def main() -> None:
    kind, folder = sys.argv[1], sys.argv[2]
    accelerator = Accelerator()
    seen: dict[str, Any] = {"type": str(accelerator.distributed_type), "processes": accelerator.num_processes}
    seen |= {"precision": accelerator.mixed_precision, "device": str(accelerator.device)}
    torch.manual_seed(0)
    model: Any = Model()
    if not kind.startswith("deepspeed"):  # DeepSpeed casts, and keeps masters of what it was given
        model = model.to(torch.bfloat16)
    close = []
    if kind == "plain":
        from offload_lab import OffloadAdamW, OffloadPolicy

        optimizer: Any = OffloadAdamW(model.parameters(), lr=1e-3, offload=OffloadPolicy(tier="disk", directory=folder))
        close.append(optimizer.close)
    elif kind == "deepspeed-file":
        from accelerate.utils import DummyOptim  # there only where DeepSpeed is

        optimizer = DummyOptim(model.parameters())
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if kind == "fsdp2":
        plugin = FullyShardedDataParallelPlugin()  # what Accelerate reads from what its launcher made of the file
        seen["plugin"] = [plugin.fsdp_version, type(plugin.cpu_offload).__name__, plugin.reshard_after_forward]
        seen["plugin"].append(plugin.activation_checkpointing)
        if accelerator.device.type == "cpu":  # Accelerate shards on accelerators only; told that this is one, it does it here
            accelerator.state.distributed_type = DistributedType.FSDP
            accelerator.state.fsdp_plugin = plugin
            if type(plugin.cpu_offload) is CPUOffloadPolicy:
                plugin.cpu_offload = CPUOffloadPolicy(pin_memory=False)  # there is nothing to pin for
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * BATCH * accelerator.num_processes, WIDTH))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    parameter = next(model.parameters())
    losses = []
    for (x,) in loader:
        with accelerator.accumulate(model):
            loss = (model(x.to(parameter.dtype)).float() - 1).pow(2).mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients and not kind.startswith("deepspeed"):  # DeepSpeed clips in its step
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    seen |= {"losses": losses, "parameter": type(parameter).__name__, "dtype": str(parameter.dtype)}
    if kind.startswith("deepspeed"):
        seen["config"] = {name: value for name, value in accelerator.deepspeed_config.items() if name != "_note"}
    for function in close:
        function()
    if accelerator.is_main_process:
        print("@ " + json.dumps(seen, default=str).replace("Infinity", "null"), flush=True)
    accelerator.end_training()
    os._exit(0)


if __name__ == "__main__":
    main()
