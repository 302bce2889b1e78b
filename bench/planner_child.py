"""One configuration of `bench.planner`, in a process of its own: `python -m bench.planner_child '<JSON>'` prints a JSON object.

Memory is what the system counts: the high-water mark of resident memory since it was reset, less what was resident when the
libraries were loaded and the update was compiled.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from offload_lab import OffloadAdamW, OffloadPolicy


def _status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def _peak(work: Callable[[], Any], baseline: int) -> tuple[Any, int]:
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
    result = work()
    return result, _status("VmHWM") - baseline


def _steps(optimizer: OffloadAdamW, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        optimizer.step()
        taken.append(time.perf_counter() - start)
    return taken


def main(asked: dict[str, Any]) -> dict[str, Any]:
    dtype = getattr(torch, asked["dtype"])
    # What is freed goes back to the system, so that no block of the warm-up serves again unseen.
    warm = torch.nn.Parameter(torch.zeros(1 << 18, dtype=dtype))
    warm.grad = torch.zeros_like(warm)
    policy = dict(asked["policy"])
    directory = policy.pop("directory", None)
    elsewhere = {} if directory is None else {"directory": f"{directory}-warm"}
    with OffloadAdamW([warm], offload=OffloadPolicy(**{**policy, **elsewhere, "ram_budget": None})) as optimizer:
        _steps(optimizer, 2)
    del warm, optimizer
    gc.collect()
    baseline = _status("VmRSS")
    where = {} if directory is None else {"directory": directory}
    peaks: dict[str, int] = {}

    def build() -> tuple[list[torch.nn.Parameter], OffloadAdamW]:
        parameters = [torch.nn.Parameter(torch.full((numel,), 0.5, dtype=dtype)) for numel in asked["sizes"]]
        return parameters, OffloadAdamW(parameters, offload=OffloadPolicy(**policy, **where))

    (parameters, optimizer), peaks["construction"] = _peak(build, baseline)
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.01)
    _, peaks["peak"] = _peak(lambda: _steps(optimizer, 2), baseline)
    peaks["steady"] = _status("VmRSS") - baseline
    taken = _steps(optimizer, asked["steps"])
    last = optimizer.stats()["last_step"]
    optimizer.close()
    for parameter in parameters:
        parameter.grad = None
    del optimizer
    if directory is not None and asked["policy"].get("durability", "step") == "step":
        again = OffloadPolicy(**policy, **where, existing="resume")
        optimizer, peaks["resume"] = _peak(lambda: OffloadAdamW(parameters, offload=again), baseline)
        optimizer.close()
    return {
        "bytes": peaks,
        "seconds": statistics.median(taken),
        "all_seconds": taken,
        "waited": last["waited"] if last else None,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
