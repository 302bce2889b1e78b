"""Two and three processes: FSDP2 shards, checkpoints that change the number of ranks, DDP. Against one process in torch."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="this torch has no gloo"
)


def ranks(scenario, folder, count):
    """Run `scenario` on `count` ranks; what each returned."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={count}", f"--master-port={port}"]
    done = subprocess.run(
        [*command, str(HERE / "ranks.py"), scenario, str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [torch.load(folder / f"{scenario}-{rank}-of-{count}.pt") for rank in range(count)]


def alone(steps, clip=None, together=1):
    """torch.optim.AdamW in one process on the whole batches; `together` batches a step."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    for step in range(0, steps, together):
        optimizer.zero_grad()
        for part in range(together):
            inputs = torch.randn(6, 5, generator=torch.Generator().manual_seed(step + part))
            (module(inputs).pow(2).mean() / together).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
    return [p.detach() for p in module.parameters()]


def close(a, b):
    for p, q in zip(a, b, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("count", [2, 3])
def test_each_rank_keeps_the_state_of_its_shard(tmp_path, count):
    """Cases 58, 79; a shard of the last layer is empty."""
    results = ranks("fsdp", tmp_path, count)
    for result in results:
        close(result, alone(4, clip=0.5))


def test_a_checkpoint_goes_from_two_ranks_to_one_to_three_in_the_same_bits(tmp_path):
    saved = ranks("save", tmp_path, 2)
    assert len(saved[0]) > 4 and any(value.dtype == torch.float32 for value in saved[0])
    for count in (1, 3):
        for loaded in ranks("load", tmp_path, count):
            assert len(loaded) == len(saved[0])
            assert all(torch.equal(p, q) for p, q in zip(saved[0], loaded, strict=True)), count


def test_ddp_with_accumulation(tmp_path):
    """Case 53."""
    for result in ranks("ddp", tmp_path, 2):
        close(result, alone(6, together=2))


def test_weights_that_fsdp_keeps_in_ram(tmp_path):
    (result,) = ranks("weights_in_ram", tmp_path, 1)
    close(result, alone(4, clip=0.5))
