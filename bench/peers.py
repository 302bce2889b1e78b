"""The peers' own environment: `python -m bench.peers` makes it; the benchmarks call it when it is missing.

DeepSpeed wants a compiler and changes what is installed beside it, so it lives in a virtual environment of its own
(`~/.cache/offload-lab/bench-peers`, or the folder that `OFFLOAD_LAB_PEERS` names). What cannot be had is reported with the
reason, and its numbers are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_PINNED = [line.strip() for line in (HERE.parent / "constraints.txt").read_text().splitlines() if "==" in line]
TORCH = next(line for line in _PINNED if line.startswith("torch==")).split("+")[0]
# Accelerate asks for the version of transformers where it runs DeepSpeed.
HUGGING_FACE = [line for line in _PINNED if line.startswith(("accelerate==", "transformers=="))]


READY = "torch, deepspeed, accelerate, transformers\n"
"""What `.ready` says of an environment that has everything; an older one gets what it lacks."""


class PeerMissing(RuntimeError):
    """A peer cannot run here; the message says what is missing and how to get it."""


def folder() -> Path:
    chosen = os.environ.get("OFFLOAD_LAB_PEERS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "offload-lab" / "bench-peers"


def ready() -> bool:
    """Whether the peers' environment is here and whole. Makes nothing: tests ask this, and are skipped where it is not."""
    mark = folder() / ".ready"
    return mark.exists() and mark.read_text() == READY


def environment(**more: str) -> dict[str, str]:
    """What the peers' processes run with: the CPU accelerator, one rank, the system's ninja before any of pip's."""
    first = os.pathsep.join(dict.fromkeys(str(Path(p).parent) for p in (shutil.which("ninja"), shutil.which("g++")) if p))
    return {
        **os.environ,
        "PATH": first + os.pathsep + os.environ.get("PATH", ""),
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": str(os.cpu_count() or 1),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29517",
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "PYTHONPATH": str(HERE.parent),
        **more,
    }


def python() -> str:
    """The interpreter of the peers' environment, which is made first where it is missing. Raises PeerMissing."""
    lacking = [name for name in ("g++", "ninja") if shutil.which(name) is None]
    if lacking:
        raise PeerMissing(f"DeepSpeed compiles its operations, and {' and '.join(lacking)} is missing (g++, ninja-build)")
    interpreter = folder() / "bin" / "python"
    if not ready():
        print(f"making the peers' environment in {folder()}: a few minutes and 1 GB, once", file=sys.stderr)
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([sys.executable, "-m", "venv", str(folder())])
        _run([*pip, TORCH, "numpy", "setuptools", "wheel", "packaging", "psutil"])
        _run([*pip, "--no-build-isolation", "deepspeed"], DS_BUILD_OPS="0")
        _run([*pip, *HUGGING_FACE])
        (folder() / ".ready").write_text(READY)
    return str(interpreter)


def _run(command: list[str], **more: str) -> None:
    try:
        done = subprocess.run(command, env=environment(**more), capture_output=True, text=True)
    except OSError as error:
        raise PeerMissing(f"{command[0]} could not be started: {error}") from error
    if done.returncode:
        raise PeerMissing(f"`{' '.join(command[1:])}` failed: {(done.stderr or done.stdout).strip()[-400:]}")


class Worker:
    """A process of the peers' environment that does what it is told, one line of JSON in, one line of JSON out.

    It holds its own buffers and times itself, so that its rounds can take turns with ours in one run. Raises PeerMissing when
    it does not come up or ends before it has answered.
    """

    def __init__(self, module: str, *arguments: str, **more: str) -> None:
        self._module = module
        self._errors = open(folder().with_suffix(".log"), "w+", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        print(f"starting {module}; the first time its operations compile for some minutes", file=sys.stderr)
        self._process = subprocess.Popen(
            [python(), "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment(**more),
        )
        self.about = self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it is dead, which the answer will tell
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@ "):  # whatever else it prints is DeepSpeed's own talk
                return json.loads(line[2:])
        self._process.wait()
        self._errors.flush()
        said = Path(self._errors.name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise PeerMissing(f"{self._module} ended with {self._process.returncode}: {' | '.join(said[-3:])[-400:]}")

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def serve(about: dict[str, Any], answer: Any) -> None:
    """The worker's side: say `about`, then answer each request until the pipe closes."""
    print("@ " + json.dumps(about), flush=True)
    for line in sys.stdin:
        print("@ " + json.dumps(answer(**json.loads(line))), flush=True)


if __name__ == "__main__":
    print(python())
