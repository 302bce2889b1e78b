"""Trainings in processes of their own: under a hard limit on memory, or killed in the middle of a step.

As a program it is the child: `python -m course.children '<spec as JSON>'` writes one JSON object to stdout.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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


def under_limit(tier: str, parameters: int, limit: int, ram_budget: int = 24_000_000, steps: int = 3) -> Limited:
    """Train `parameters` bfloat16 weights with their state in `tier`, in a process that may have `limit` bytes of private
    memory more than it has when all is loaded. Where the system enforces no such limit there is none (`.limit` is None).

    Leaves no file. Raises ChildError where the child ends in another way than trained or out of memory.
    """
    enforced = not limit_is_enforced()
    with tempfile.TemporaryDirectory(prefix="limited-", dir=".") as folder:
        spec = {"do": "limit", "tier": tier, "parameters": parameters, "limit": limit if enforced else None, "folder": folder}
        told = _ended(
            _started(spec | {"ram_budget": ram_budget, "steps": steps}), _("the training with tier={tier!r}").format(tier=tier)
        )
    return Limited(tier=tier, limit=limit if enforced else None, **told)


def killed(durabilities: Sequence[str | int], in_step: int = 7) -> dict[str | int, int | None]:
    """Train with each durability, all at once, until `kill -9` in the middle of the writes of step `in_step`. Returns the
    step that each directory can restore; None for none. Leaves no file. Raises ChildError as `under_limit`."""
    found: dict[str | int, int | None] = {}
    with tempfile.TemporaryDirectory(prefix="killed-", dir=".") as folder:
        running = {}
        try:
            for number, durability in enumerate(durabilities):
                where = Path(folder) / str(number)
                spec = {"do": "kill", "durability": durability, "folder": str(where), "in_step": in_step}
                running[durability] = where, _started(spec)
            for durability, (where, child) in running.items():
                _ended(child, _("the training with durability={durability!r}").format(durability=durability), to_be_killed=True)
                found[durability] = inspect(where).step
        finally:
            for _where, child in running.values():
                if child.poll() is None:
                    child.kill()
                child.communicate()
    return found


def _started(spec: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "course.children", json.dumps(spec)]
    # The kernel's own path: a notebook's folder need not be one from which this module is found.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def _ended(child: subprocess.Popen[str], what: str, to_be_killed: bool = False) -> dict[str, Any]:
    try:
        out, err = child.communicate(timeout=_WAIT)
    except subprocess.TimeoutExpired as error:
        raise ChildError(_("{what} did not end within {seconds} s").format(what=what, seconds=_WAIT)) from error
    finally:  # Ctrl-C, too: no child goes on
        if child.poll() is None:
            child.kill()
            child.communicate()
    if to_be_killed and child.returncode == -signal.SIGKILL:
        return {}
    if to_be_killed or child.returncode != 0:
        last = (err.strip().splitlines() or [_("(it said nothing)")])[-1]
        raise ChildError(_("{what} ended with {returncode}: {last}").format(what=what, returncode=child.returncode, last=last))
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    return told


# --- the child ----------------------------------------------------------------------------------------------------------


def _limited(spec: dict[str, Any]) -> dict[str, Any]:
    import threading
    import time

    threading.stack_size(1 << 20)  # a limit on data counts every thread's stack in full
    warm_up(spec["tier"], spec["folder"])
    before = vm_data() or 0
    if spec["limit"] is not None:
        limit_data(spec["limit"])
    told: dict[str, Any] = {"trained": False, "steps": 0, "peak": 0, "disk": 0, "seconds": 0.0}
    try:
        layers = [torch.nn.Parameter(torch.ones(spec["parameters"] // 8, dtype=torch.bfloat16)) for _ in range(8)]
        policy = OffloadPolicy()
        if spec["tier"] == "disk":
            policy = OffloadPolicy(
                tier="disk", directory=Path(spec["folder"]) / "state", ram_budget=spec["ram_budget"], durability="checkpoint"
            )
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


def _until_killed(spec: dict[str, Any]) -> dict[str, Any]:
    weight = torch.nn.Parameter(torch.ones(400_000, dtype=torch.bfloat16))
    policy = OffloadPolicy(
        tier="disk", directory=spec["folder"], durability=spec["durability"], partition_size=50_000, io_threads=1
    )
    write, left = BlockFile.write, [-1]

    def dies(file: BlockFile, data: Any, offset: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        write(file, data, offset)

    BlockFile.write = dies  # type: ignore[method-assign]
    with OffloadAdamW([weight], offload=policy) as optimizer:
        for _ in range(spec["in_step"] - 1):
            weight.grad = torch.full_like(weight, 0.01)
            optimizer.step()
        left[0] = 4  # of the eight partitions that the next step writes
        weight.grad = torch.full_like(weight, 0.01)
        optimizer.step()
    return {}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps((_limited if given["do"] == "limit" else _until_killed)(given)))
