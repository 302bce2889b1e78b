"""A model whose optimizer does not fit: `python -m bench.large [--steps N] [--json]`.

352 million bfloat16 parameters (TinyGPT, 28 layers of 1024) train for 20 steps with the state on disk, in a process whose
private memory (RLIMIT_DATA) may grow by no more than half of what `torch.optim.AdamW` over float32 masters would take. Nothing
is told to the allocator; the limit is the system's, not ours.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.meter import peak_rss, rss, vm_data
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, train

SHAPE = {"layers": 28, "width": 1024, "heads": 16, "context": 128}


def adamw_bytes(parameters: int) -> int:
    """Weights and gradients in 16 bits; master, two moments and the master's gradient in float32: 2 + 2 + 4 + 4 + 4."""
    return 16 * parameters


def child(directory: str, steps: int, overlap: str) -> None:
    with torch.device("meta"):
        parameters = sum(p.numel() for p in TinyGPT(GPTConfig(**SHAPE, dtype=torch.bfloat16)).parameters())
    before, resident = vm_data() or 0, rss()
    limit = adamw_bytes(parameters) // 2
    resource.setrlimit(resource.RLIMIT_DATA, (before + limit, before + limit))
    model = TinyGPT(GPTConfig(**SHAPE, dtype=torch.bfloat16))
    policy = OffloadPolicy(tier="disk", directory=directory, ram_budget="300MiB", overlap=overlap)
    losses: list[float] = []
    with OffloadAdamW(model.parameters(), lr=3e-4, offload=policy) as optimizer:
        train(model, optimizer, Batches(corpus(), 1, 128), steps, on_step=lambda step, loss: losses.append(loss))
        optimizer.wait()
        told = {"parameters": parameters, "adamw_bytes": adamw_bytes(parameters), "limit_bytes": limit, "losses": losses}
        told |= {"peak_resident_bytes": (peak_rss() or 0) - resident, "stats": optimizer.stats()["last_step"]}
    print(json.dumps(told), flush=True)


def main(arguments: list[str] | None = None) -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--overlap", choices=("none", "forward"), default="none")
    parser.add_argument("--directory", default=None, help="on the disk to use (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child:
        child(chosen.child, chosen.steps, chosen.overlap)
        return {}
    with tempfile.TemporaryDirectory(prefix="bench-large-", dir=chosen.directory) as folder:
        command = [sys.executable, "-m", "bench.large", "--child", str(Path(folder) / "state")]
        done = subprocess.run(
            [*command, "--steps", str(chosen.steps), "--overlap", chosen.overlap], capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"the child failed under its limit:\n{done.stderr[-3000:]}")
    result = json.loads(done.stdout.splitlines()[-1])
    if chosen.json:
        print(json.dumps(result))
    else:
        losses = result["losses"]
        print(
            f"{result['parameters']:,} bfloat16 parameters; AdamW would take {result['adamw_bytes']:,} bytes, half are allowed"
        )
        print(f"{len(losses)} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}, last step {result['stats']['seconds']:.2f} s")
        print(f"peak resident {result['peak_resident_bytes']:,} bytes")
    return result


if __name__ == "__main__":
    main()
