"""Trainings in processes of their own: under a hard limit on memory, or killed in the middle of a step.

As a program it is the child: `python -m course.children '<spec as JSON>'` writes a JSON object a line to stdout. It loads
everything once, starts no thread, and forks a process for each training.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.demo import limit_is_enforced
from offload_lab.demo_child import is_out_of_memory, limit_data, warm_up
from offload_lab.inspect import inspect
from offload_lab.meter import vm_data
from offload_lab.state_bytes import readable
from offload_lab.storage.direct_io import BlockFile
from quizzes.say import _

_WAIT = 300  # seconds after which a child is given up


class ChildError(RuntimeError):
    """A child ended in a way that was not asked for; the message has its own words."""


@dataclass(frozen=True)
class Limited:
    """How a training under a limit ended. Bytes are those beyond what the process had before the model was made."""

    tier: str
    limit: int | None
    trained: bool
    steps: int
    peak: int
    disk: int
    seconds: float

    def __str__(self) -> str:
        if not self.trained:
            return _('tier="{tier}": out of memory, before step {steps} was over').format(tier=self.tier, steps=self.steps + 1)
        return _('tier="{tier}": {steps} steps; {peak} of memory at the most, {disk} on disk, {seconds:.0f} ms a step').format(
            tier=self.tier, steps=self.steps, peak=readable(self.peak), disk=readable(self.disk), seconds=1000 * self.seconds
        )


def under_limit(
    tiers: Sequence[str], parameters: int, limit: int, ram_budget: int = 24_000_000, steps: int = 3
) -> list[Limited]:
    """Train `parameters` bfloat16 weights with their state in each of `tiers`, one after the other, in processes that may have
    `limit` bytes of private memory more than they have when all is loaded. Where the system enforces no such limit there is
    none (`.limit` is None).

    Leaves no file. Raises ChildError where one ends in another way than trained or out of memory.
    """
    most = None if limit_is_enforced() else limit
    with tempfile.TemporaryDirectory(prefix="limited-", dir=".") as folder:
        spec = {"do": "limit", "tiers": list(tiers), "parameters": parameters, "limit": most, "folder": folder}
        told = _ended(_started(spec | {"ram_budget": ram_budget, "steps": steps}), _("a training under a limit"))
    return [Limited(tier=tier, limit=most, **one) for tier, one in zip(tiers, told, strict=True)]


def killed(durabilities: Sequence[str | int], in_step: int = 7) -> dict[str | int, int | None]:
    """Train with each durability, all at once, until `kill -9` in the middle of the writes of step `in_step`. Returns the
    step that each directory can restore; None for none. Leaves no file. Raises ChildError as `under_limit`."""
    with tempfile.TemporaryDirectory(prefix="killed-", dir=".") as folder:
        places = [str(Path(folder) / str(number)) for number in range(len(durabilities))]
        spec = {"do": "kill", "durabilities": list(durabilities), "folders": places, "in_step": in_step}
        _ended(_started(spec), _("a training that was to be killed"))
        return {durability: inspect(Path(place)).step for durability, place in zip(durabilities, places, strict=True)}


def _started(spec: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "course.children", json.dumps(spec)]
    # The kernel's own path: a notebook's folder need not be one from which this module is found.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def _ended(child: subprocess.Popen[str], what: str) -> list[dict[str, Any]]:
    try:
        out, err = child.communicate(timeout=_WAIT)
    except subprocess.TimeoutExpired as error:
        raise ChildError(_("{what} did not end within {seconds} s").format(what=what, seconds=_WAIT)) from error
    finally:  # Ctrl-C, too: neither the child nor what it has forked goes on
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    if child.returncode != 0:
        last = (err.strip().splitlines() or [_("(it said nothing)")])[-1]
        raise ChildError(_("{what} ended with {returncode}: {last}").format(what=what, returncode=child.returncode, last=last))
    return [json.loads(line) for line in out.splitlines()]


# --- the child ----------------------------------------------------------------------------------------------------------


def _forked(work: Callable[[], dict[str, Any] | None]) -> int:
    """The id of a process that does `work`, prints what it returns as JSON, and ends with 0, or, where it raises, with 1."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        told = work()
        if told is not None:
            print(json.dumps(told), flush=True)
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _main(spec: dict[str, Any]) -> int:
    with OffloadAdamW([torch.nn.Parameter(torch.ones(8, dtype=torch.bfloat16))]):
        pass  # the update loop is loaded, once for all of them
    if spec["do"] == "limit":
        codes = [_code(_forked(lambda tier=tier: _limited(spec, tier))) for tier in spec["tiers"]]
        return max(abs(code) for code in codes)
    pids = [
        _forked(lambda durability=durability, folder=folder: _until_killed(durability, folder, spec["in_step"]))
        for durability, folder in zip(spec["durabilities"], spec["folders"], strict=True)
    ]
    return int([_code(pid) for pid in pids] != [-signal.SIGKILL] * len(pids))


def _limited(spec: dict[str, Any], tier: str) -> dict[str, Any]:
    threading.stack_size(1 << 20)  # a limit on data counts every thread's stack in full
    warm_up(tier, str(Path(spec["folder"]) / tier))
    before = vm_data() or 0
    if spec["limit"] is not None:
        limit_data(spec["limit"])
    told: dict[str, Any] = {"trained": False, "steps": 0, "peak": 0, "disk": 0, "seconds": 0.0}
    try:
        layers = [torch.nn.Parameter(torch.ones(spec["parameters"] // 8, dtype=torch.bfloat16)) for _ in range(8)]
        policy = OffloadPolicy()
        if tier != "ram":
            where = Path(spec["folder"]) / "state"
            policy = OffloadPolicy(tier=tier, directory=where, ram_budget=spec["ram_budget"], durability="checkpoint")
        with OffloadAdamW(layers, offload=policy) as optimizer:
            for _ in range(spec["steps"]):
                for layer in layers:
                    layer.grad = torch.full_like(layer, 0.01)
                begun = time.perf_counter()
                optimizer.step()
                told |= {"steps": told["steps"] + 1, "seconds": time.perf_counter() - begun}
                told["peak"] = max(told["peak"], (vm_data() or 0) - before)
                told["disk"] = optimizer.memory()["disk"]
        told["trained"] = True
    except (MemoryError, RuntimeError, OSError) as error:
        if not is_out_of_memory(error):
            raise
    return told


def _until_killed(durability: str | int, folder: str, in_step: int) -> None:
    weight = torch.nn.Parameter(torch.ones(400_000, dtype=torch.bfloat16))
    policy = OffloadPolicy(tier="disk", directory=folder, durability=durability, partition_size=50_000, io_threads=1)
    write, left = BlockFile.write, [-1]

    def dies(file: BlockFile, data: Any, offset: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        write(file, data, offset)

    BlockFile.write = dies  # type: ignore[method-assign]
    with OffloadAdamW([weight], offload=policy) as optimizer:
        for step in range(1, in_step + 1):
            if step == in_step:
                left[0] = 4  # of the eight partitions that it writes
            weight.grad = torch.full_like(weight, 0.01)
            optimizer.step()


if __name__ == "__main__":
    sys.exit(_main(json.loads(sys.argv[1])))
