"""Exported configurations, run by those they are for: `python -m bench.exports [--only WORD] [--json]`.

Each case is exported with the command line and trains two steps on the CPU: with DeepSpeed, `accelerate launch`, torchrun.
DeepSpeed runs in the peers' environment (bench/peers.py). What cannot run here is reported with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import peers
from bench.plans import plan

ROOT = Path(__file__).resolve().parent.parent
LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what a launcher sets itself

DEEPSPEED: dict[str, dict[str, Any]] = {
    "state in RAM": {"state": "ram"},
    "state on disk": {"state": "disk"},
    "state and weights in RAM": {"state": "ram", "weights": "ram", "gradients": "ram"},
    "state and weights on disk": {"state": "disk", "weights": "disk", "gradients": "disk"},
    "float32": {"state": "ram", "model": {"dtype": "float32"}},
    "two batches a step, summed in float32": {
        "state": "ram",
        "model": {"accumulation": 2},
        "offload": {"gradients": "float32"},
    },
}
ACCELERATE: dict[str, dict[str, Any]] = {
    "plain": {"state": "disk"},
    "fsdp2": {"state": "ram", "weights": "ram", "gradients": "ram"},
    "deepspeed": {"state": "ram"},
    "deepspeed-file": {"state": "disk"},
}
FSDP: dict[str, dict[str, Any]] = {
    "one rank, state on disk": {"state": "disk"},
    "two ranks, state on disk": {"state": "disk", "gpus": 2},
    "two ranks, state and weights in RAM": {"state": "ram", "weights": "ram", "gradients": "ram", "gpus": 2},
    "one rank, state on disk, weights in RAM, checkpointing": {
        "state": "disk",
        "weights": "ram",
        "gradients": "ram",
        "model": {"checkpointing": "full", "accumulation": 2},
    },
    "two ranks, torch's AdamW": {"state": "gpu", "gpus": 2},
}


class Failed(RuntimeError):
    """What was run ended badly; the message has its last words."""


def write_plan(folder: Path, options: dict[str, Any]) -> Path:
    where = {"directory": str(folder / "state")} if "disk" in options.values() else {}
    path = folder / "plan.json"
    path.write_text(plan(**{**options, "offload": where | options.get("offload", {})}).to_json(), encoding="utf-8")
    return path


def export(what: str, path: Path, out: Path, *more: str) -> Path:
    """`offload-lab export`, as a user types it."""
    _run([sys.executable, "-m", "offload_lab", "export", what, "--plan", str(path), "--out", str(out), *more])
    return out


def run_deepspeed(case: str, folder: Path) -> dict[str, Any]:
    config = export("deepspeed", write_plan(folder, DEEPSPEED[case]), folder / "deepspeed.json")
    command = [peers.python(), "-m", "bench.deepspeed_export", str(config)]
    return _answer(_run(command, env=peers.environment(MASTER_PORT=str(_port())))) | {"config": json.loads(config.read_text())}


def run_accelerate(case: str, folder: Path) -> dict[str, Any]:
    path, more = write_plan(folder, ACCELERATE[case]), ["--kind", case.split("-")[0]]
    if case == "deepspeed-file":
        more += ["--deepspeed-file", str(export("deepspeed", path, folder / "deepspeed.json"))]
    config = export("accelerate", path, folder / "accelerate.yaml", *more)
    python, env = (peers.python(), peers.environment()) if case.startswith("deepspeed") else (sys.executable, dict(os.environ))
    launch = [python, "-m", "accelerate.commands.launch", "--config_file", str(config), "--main_process_port", str(_port())]
    env = {name: value for name, value in env.items() if name not in LAUNCHER} | {"PYTHONPATH": str(ROOT)}
    said = _run([*launch, str(ROOT / "bench" / "accelerate_train.py"), case, str(folder / "state")], env=env, cwd=folder)
    return _answer(said)


def run_fsdp(case: str, folder: Path) -> dict[str, Any]:
    options = FSDP[case]
    script = export("fsdp", write_plan(folder, options), folder / "train.py")
    ranks = options.get("gpus", 1)
    launch = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", f"--master-port={_port()}"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    said = _run([*launch, str(script)], env=env, cwd=folder)
    losses = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("step ")]
    state = sum(file.stat().st_size for file in (folder / "state").rglob("*") if file.is_file())
    return {"losses": losses, "bytes_on_disk": state}


CASES: dict[str, tuple[Callable[[str, Path], dict[str, Any]], dict[str, Any]]] = {
    "deepspeed": (run_deepspeed, DEEPSPEED),
    "accelerate": (run_accelerate, ACCELERATE),
    "fsdp": (run_fsdp, FSDP),
}


def _run(command: list[str], **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **({"cwd": ROOT} | options))
    if done.returncode:
        raise Failed(f"`{' '.join(command)}` ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-3000:]}")
    return done.stdout


def _answer(said: str) -> dict[str, Any]:
    line = next((line for line in said.splitlines() if line.startswith("@ ")), None)
    if line is None:
        raise Failed(f"no answer in: {said[-2000:]}")
    return json.loads(line[2:])


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", default="", help="cases whose name has this word")
    arguments.add_argument("--json", action="store_true", help="one JSON object and nothing else on stdout")
    chosen = arguments.parse_args()
    rows = []
    for what, (function, cases) in CASES.items():
        for case in cases:
            if chosen.only not in f"{what} {case}":
                continue
            row: dict[str, Any] = {"export": what, "case": case}
            start = time.perf_counter()
            with tempfile.TemporaryDirectory(prefix="offload-exports-") as scratch:
                try:
                    row |= {"ok": True, **function(case, Path(scratch))}
                except (Failed, peers.PeerMissing, subprocess.TimeoutExpired) as error:
                    row |= {"ok": False, "why": str(error)}
            row["seconds"] = round(time.perf_counter() - start, 1)
            rows.append(row)
            print(f"{'ok  ' if row['ok'] else 'FAIL'} {what}: {case}  {row.get('losses', row.get('why'))}", file=sys.stderr)
    if chosen.json:
        print(json.dumps({"cases": rows, "ok": sum(row["ok"] for row in rows), "of": len(rows)}))
    sys.exit(not all(row["ok"] for row in rows))


if __name__ == "__main__":
    main()
