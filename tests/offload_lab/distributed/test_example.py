"""examples/fsdp2.py on two ranks: it ends where a run that was never interrupted ends, bit for bit."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
RUNNER = """
import os, sys, importlib.util, torch
from pathlib import Path
import torch.distributed as dist
spec = importlib.util.spec_from_file_location("fsdp2", sys.argv[1])
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
folder, rank = Path(sys.argv[2]), os.environ["RANK"]
device = example.start()
torch.save(example.main(folder, device), folder / f"resumed-{rank}.pt")
model = example.build(device, seed=0)
with example.optimizer_of(model, folder / "whole") as optimizer:
    example.train(model, optimizer, device, range(8))
torch.save([parameter.full_tensor() for parameter in model.parameters()], folder / f"whole-{rank}.pt")
torch.save([parameter.full_tensor() for parameter in example.build(device, seed=0).parameters()], folder / f"first-{rank}.pt")
dist.barrier()
dist.destroy_process_group()
os._exit(0)
"""


@pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="this torch has no gloo"
)
def test_saved_and_resumed_is_as_if_never_interrupted(tmp_path):
    (tmp_path / "runner.py").write_text(RUNNER, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={port}"]
    done = subprocess.run(
        [*launch, str(tmp_path / "runner.py"), str(ROOT / "examples" / "fsdp2.py"), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "OffloadAdamW" in done.stdout
    for rank in (0, 1):
        resumed, whole, first = (torch.load(tmp_path / f"{name}-{rank}.pt") for name in ("resumed", "whole", "first"))
        assert len(resumed) == 4 and all(torch.equal(p, q) for p, q in zip(resumed, whole, strict=True))
        assert not any(torch.equal(p, q) for p, q in zip(resumed, first, strict=True)), "it trained"
    assert not list((tmp_path / "state").rglob("*.state")), "scratch files go with their run"


def test_without_a_folder_it_says_what_it_needs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "fsdp2.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.startswith("usage:") and len(done.stderr.splitlines()) == 1
