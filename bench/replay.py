"""The simulator against the engine: `python -m bench.replay [--params N] [--json]`.

Bandwidths are taken from runs of the engine on the same files, interleaved with the others: reads, writes and updates one at
a time (`no_overlap`), and reads and writes at once without updates. With these figures the simulator predicts a step of each
schedule; the table has it beside the median of what the engine took.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from bench.disk import _without_updates
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.hardware import Figure, Hardware
from offload_lab.schedulers import no_overlap, read_ahead, write_behind
from offload_lab.simulate import simulate

SCHEDULES = {
    "no overlap": no_overlap,
    "read ahead, 2 buffers": partial(read_ahead, depth=2),
    "read ahead, 4 buffers": partial(read_ahead, depth=4),
    "write behind, 2 buffers": partial(write_behind, depth=2),
    "write behind, 4 buffers": write_behind,
    "the engine's own": None,
}


def _alone(optimizer: OffloadAdamW, kind: str) -> float:
    """Bytes a second of one kind of task in the last step, in which nothing ran beside it."""
    tasks = optimizer.last_tasks[0]
    newest = {}
    for event in optimizer.trace.events():
        newest[event.name, event.partition] = event
    mine = [newest[kind, task.partition] for task in tasks if task.kind == kind]
    return sum(event.nbytes for event in mine) / sum(event.end - event.start for event in mine)


def main(arguments: list[str] | None = None) -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--params", type=int, default=128 << 20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--directory", default=None, help="on the disk to use (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    chosen = parser.parse_args(arguments)
    parameter = torch.nn.Parameter(torch.zeros(chosen.params, dtype=torch.bfloat16))
    parameter.grad = torch.full_like(parameter, 1e-3)
    times: dict[str, list[float]] = {name: [] for name in SCHEDULES}
    rates: dict[str, list[float]] = {"read": [], "write": [], "update": [], "mixed": []}
    with tempfile.TemporaryDirectory(prefix="bench-replay-", dir=chosen.directory) as folder:
        base = OffloadPolicy(tier="disk", directory=Path(folder) / "state", durability="checkpoint")
        tasks = {}
        for turn in range(chosen.rounds + 1):  # the first warms up
            for name, schedule in SCHEDULES.items():
                # One after the other on the same files: where a file lies on a virtual disk changes how fast it is.
                with OffloadAdamW([parameter], offload=replace(base, schedule=schedule)) as optimizer:
                    optimizer.step()
                    start = time.perf_counter()
                    optimizer.step()
                    taken = time.perf_counter() - start
                    tasks[name] = optimizer.last_tasks
                    if not turn:
                        continue
                    times[name].append(taken)
                    if name == "no overlap":
                        for kind in ("read", "write", "update"):
                            rates[kind].append(_alone(optimizer, kind))
                    if name == "the engine's own":
                        before = optimizer.stats()
                        with _without_updates(optimizer):
                            start = time.perf_counter()
                            optimizer.step()
                            taken = time.perf_counter() - start
                        after = optimizer.stats()
                        moved = sum(after[key] - before[key] for key in ("bytes_read", "bytes_written"))
                        rates["mixed"].append(moved / taken)
    figure = {kind: Figure(statistics.median(seen), "measured", "by bench.replay") for kind, seen in rates.items()}
    machine = Hardware(
        "this machine",
        ram=Figure(0, "assumed"),
        dram_bandwidth=figure["update"],
        disk_read=figure["read"],
        disk_write=figure["write"],
        disk_mixed=figure["mixed"],
    )
    rows = []
    for name in SCHEDULES:
        measured = statistics.median(times[name])
        predicted = simulate(tasks[name], machine).makespan
        rows.append({"schedule": name, "measured": measured, "predicted": predicted, "ratio": predicted / measured})
    within = sum(abs(row["ratio"] - 1) <= 0.15 for row in rows) / len(rows)
    worst = max(rows, key=lambda row: abs(row["ratio"] - 1))
    result = {
        "params": chosen.params,
        "bandwidth": {kind: one.value for kind, one in figure.items()},
        "rows": rows,
        "within_15_percent": within,
        "worst": worst["schedule"],
    }
    if chosen.json:
        print(json.dumps(result))
    else:
        told = ", ".join(f"{kind} {one.value / 1e9:.2f}" for kind, one in figure.items())
        print(f"{chosen.params:,} bfloat16 parameters; GB/s measured: {told}")
        for row in rows:
            print(
                f"{row['schedule']:24} measured {row['measured']:.3f} s  predicted {row['predicted']:.3f} s  {row['ratio']:.2f}"
            )
        print(f"{within:.0%} of the schedules within 15 %; the worst is {worst['schedule']!r}")
    return result


if __name__ == "__main__":
    main()
