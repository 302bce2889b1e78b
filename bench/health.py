"""What a monitor costs a training step: `python -m bench.health [--json]`.

Steps with and without `monitor.observe(loss)` take turns, in blocks of `--block` steps of the same optimizer; which comes
first alternates. A figure is the median over the rounds of the ratio within a round. "observe" is the call alone. The small
model is the worst case: a step of a few milliseconds, and a trace that is full.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time

import torch

from bench.machine import describe
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.health import Monitor, Thresholds

CASES = {
    "4 Ki parameters in RAM": (1 << 12, {}),
    "1 Mi parameters in RAM": (1 << 20, {}),
    "1 Mi parameters on disk, 64 partitions": (1 << 20, {"partition_size": 1 << 14}),
    "32 Mi parameters on disk": (1 << 25, {}),
}


def measure(count: int, policy: OffloadPolicy, rounds: int, block: int) -> dict[str, float]:
    """Seconds of a step without and with a monitor, their ratio, and seconds of `observe` alone."""
    parameter = torch.nn.Parameter(torch.zeros(count, dtype=torch.bfloat16))
    parameter.grad = torch.ones_like(parameter)
    plain, watched, ratios, calls = [], [], [], []
    with OffloadAdamW([parameter], offload=policy) as optimizer:
        monitor = Monitor(optimizer, Thresholds(endurance="600TB"))

        def run(watching: bool) -> float:
            started = time.perf_counter()
            for _ in range(block):
                optimizer.step()
                if watching:
                    before = time.perf_counter()
                    monitor.observe(1.0)
                    calls.append(time.perf_counter() - before)
            return (time.perf_counter() - started) / block

        run(True)
        for number in range(rounds):
            taken = {watching: run(watching) for watching in ((False, True) if number % 2 else (True, False))}
            plain.append(taken[False])
            watched.append(taken[True])
            ratios.append(taken[True] / taken[False])
    return {
        "step": statistics.median(plain),
        "watched_step": statistics.median(watched),
        "ratio": statistics.median(ratios),
        "observe": statistics.median(calls[block:]),
    }


def main(arguments: list[str] | None = None) -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=int, default=40, help="steps of one turn (a tenth of it for the largest case)")
    parser.add_argument("--directory", default=None, help="on the disk to use (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    chosen = parser.parse_args(arguments)
    folder = tempfile.mkdtemp(prefix="bench-health-", dir=chosen.directory)
    rows = {}
    try:
        for name, (count, settings) in CASES.items():
            on_disk = {"tier": "disk", "directory": f"{folder}/{count}-{len(settings)}"} if "disk" in name else {}
            block = max(1, chosen.block // 10) if count > 1 << 22 else chosen.block
            rows[name] = measure(count, OffloadPolicy(**on_disk, **settings), chosen.rounds, block)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result = {"cases": rows, "rounds": chosen.rounds, "machine": describe()}
    if chosen.json:
        print(json.dumps(result))
    else:
        print(f"{'':42}{'step':>12}{'watched':>12}{'ratio':>8}{'observe':>12}")
        for name, row in rows.items():
            print(f"{name:42}{row['step'] * 1e3:>9.3f} ms{row['watched_step'] * 1e3:>9.3f} ms{row['ratio']:>8.3f}"
                  f"{row['observe'] * 1e6:>9.0f} µs")  # fmt: skip
    return result


if __name__ == "__main__":
    main()
