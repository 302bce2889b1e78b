"""The planner against reality: `python -m bench.planner [--json]`.

A grid of models, dtypes, tiers, RAM budgets and partition sizes. Each configuration is predicted, from figures of this machine
measured in the same run, and then run in a process of its own. Compared are resident memory (when the optimizer is built, when
it resumes, between steps, at the peak) and the time of a step of the optimizer; no forward is run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from bench.machine import describe
from offload_lab.hardware import Figure, Hardware
from offload_lab.models import Architecture, ModelSpec
from offload_lab.plan import Plan
from offload_lab.planner import plan

Measure = Callable[[Path, float], Hardware]
"""Figures of this machine, of the disk under a directory, in about so many seconds."""

SHAPES = {  # GPT-2's kind of layer: 12 width² and a bit each, and a small vocabulary
    "34M": Architecture(10, 512, 8, 4096, 2048, gated=False, tied=True, biases=True),
    "103M": Architecture(14, 768, 12, 4096, 3072, gated=False, tied=True, biases=True),
    "206M": Architecture(16, 1024, 16, 4096, 4096, gated=False, tied=True, biases=True),
}
WITHIN_MEMORY, WITHIN_TIME = 0.05, 0.15


@dataclass(frozen=True)
class Configuration:
    size: str
    dtype: str
    tier: str
    budget_share: float | None
    """RAM budget as a share of the state; None: none."""
    partition: int | None
    durability: str = "step"

    def spec(self) -> ModelSpec:
        return ModelSpec(self.size, SHAPES[self.size].weights())

    def budget(self) -> int | None:
        if self.budget_share is None:
            return None
        return int(self.budget_share * 12 * self.spec().parameters)

    def __str__(self) -> str:
        budget = "" if self.budget_share is None else f" {self.budget_share:.0%}"
        partition = "" if self.partition is None else f" {self.partition >> 10} Ki"
        scratch = "" if self.durability == "step" else " scratch"
        return f"{self.size} {self.dtype} {self.tier}{budget}{partition}{scratch}"


def grid() -> list[Configuration]:
    """Every size with every dtype in RAM and on disk; beside that budgets, partition sizes and durability, one at a time."""
    made = []
    for size in SHAPES:
        for dtype in ("bfloat16", "float32", "float16"):
            made.append(Configuration(size, dtype, "ram", None, None))
            made.append(Configuration(size, dtype, "disk", 0.4, None))
        made.append(Configuration(size, "bfloat16", "ram", None, 1 << 20))
        made.append(Configuration(size, "bfloat16", "disk", None, 1 << 20))
        made.append(Configuration(size, "float32", "disk", 0.7, 1 << 19))
        made.append(Configuration(size, "bfloat16", "disk", 0.4, None, "checkpoint"))
        made.append(Configuration(size, "float32", "disk", None, None, "checkpoint"))
    return made


def measured_hardware(directory: Path, seconds: float) -> Hardware:
    from offload_lab.measuring import measure

    return measure(directory, seconds, fresh=True, cache=directory / "figures")


def between(before: Hardware, after: Hardware) -> Hardware:
    """Each measured bandwidth as the geometric mean of two, one measured before the runs and one after them."""
    changed = {}
    for field in fields(Hardware):
        first, last = getattr(before, field.name), getattr(after, field.name)
        if isinstance(first, Figure) and isinstance(last, Figure) and field.name not in ("ram", "disk"):
            note = f"between {first.value:.4g} and {last.value:.4g}, before and after"
            changed[field.name] = Figure(math.sqrt(first.value * last.value), first.source, note)
    return replace(after, **changed)


def predict(configuration: Configuration, hardware: Hardware, directory: Path) -> Plan:
    """The plan of a step without a forward: one token of a model whose architecture is not told."""
    on_disk = configuration.tier == "disk"
    return plan(
        configuration.spec(),
        hardware,
        dtype=configuration.dtype,
        sequence=1,
        state=configuration.tier,
        directory=str(directory) if on_disk else None,
        ram_budget=configuration.budget() or _no_budget(configuration),
        partition_size=configuration.partition,
        durability=configuration.durability if on_disk else "step",
    )


def _no_budget(configuration: Configuration) -> int | None:
    """On disk a plan without a budget takes all the RAM there is; here it is meant to be buffers only, which is what the least
    budget that can hold these gives."""
    if configuration.tier == "ram":
        return None
    from offload_lab.policy import OffloadPolicy
    from offload_lab.residency import buffer_bytes, partition_size

    policy = OffloadPolicy(tier="disk", directory="d", partition_size=configuration.partition)
    return policy.depth * buffer_bytes(partition_size(configuration.spec().parameters, policy))


def run(configuration: Configuration, made: Plan, directory: Path, steps: int) -> dict[str, Any]:
    policy = {"tier": configuration.tier, "partition_size": made.offload.partition_size, "ram_budget": made.offload.ram_budget}
    if configuration.tier == "disk":
        policy |= {"directory": str(directory), "durability": configuration.durability}
    sizes = [weight.numel for weight in configuration.spec().each()]
    asked = {"sizes": sizes, "dtype": configuration.dtype, "policy": policy, "steps": steps}
    # glibc raises its threshold for giving freed blocks back while a program runs; a peak would then show what it kept.
    settings = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(128 << 10), "OMP_WAIT_POLICY": "PASSIVE"}
    child = subprocess.run(
        [sys.executable, "-m", "bench.planner_child", json.dumps(asked)],
        cwd=Path(__file__).resolve().parent.parent,
        env=settings,
        capture_output=True,
        text=True,
    )
    if child.returncode:
        raise SystemExit(f"{configuration}: the run failed:\n{child.stderr}")
    return json.loads(child.stdout)


def compare(configuration: Configuration, made: Plan, seen: dict[str, Any]) -> dict[str, Any]:
    """Predicted over measured, for each phase of memory and for the step."""
    memory = {}
    for phase, measured in seen["bytes"].items():
        kinds = made.phases[phase].get("ram", {})
        memory[phase] = {"predicted": sum(kinds.values()) - kinds.get("runtime", 0), "measured": measured}
    time = made.time
    predicted = None if time is None else time.pipelined - time.lanes["compute"]
    off = {phase: row["predicted"] / row["measured"] - 1 for phase, row in memory.items()}
    worst = max(off, key=lambda phase: abs(off[phase]))
    return {
        "configuration": str(configuration),
        **asdict(configuration),
        "memory": memory,
        "memory_off": off[worst],
        "memory_off_in": worst,
        "seconds": {"predicted": predicted, "measured": seen["seconds"], "all": seen["all_seconds"]},
        "time_off": None if predicted is None else predicted / seen["seconds"] - 1,
        "bound_by": None if time is None else max((n for n in time.lanes if n != "compute"), key=lambda n: time.lanes[n]),
        "waited": seen["waited"],
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    timed = [row for row in rows if row["time_off"] is not None]
    return {
        "configurations": len(rows),
        "memory_within_5_percent": sum(abs(row["memory_off"]) <= WITHIN_MEMORY for row in rows) / len(rows),
        "time_within_15_percent": sum(abs(row["time_off"]) <= WITHIN_TIME for row in timed) / len(timed) if timed else None,
        "worst_memory": max(rows, key=lambda row: abs(row["memory_off"])),
        "worst_time": max(timed, key=lambda row: abs(row["time_off"])) if timed else None,
    }


@contextlib.contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bench-planner-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None, measure: Measure = measured_hardware) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--directory", type=Path, help="where the files are; the system's temporary folder if not given")
    parser.add_argument("--only", default="", help="configurations whose name has this in it")
    parser.add_argument("--steps", type=int, default=4, help="steps that are timed, after two that are not")
    parser.add_argument("--seconds", type=float, default=10.0, help="of measuring the machine, each time")
    parser.add_argument("--every", type=int, default=6, help="configurations after which it is measured again")
    chosen = parser.parse_args(arguments)
    wanted = [configuration for configuration in grid() if chosen.only in str(configuration)]
    if not wanted:
        parser.error(f"--only {chosen.only!r}: no configuration has this in its name; they are {', '.join(map(str, grid()))}")
    rows: list[dict[str, Any]] = []
    load = [os.getloadavg()[0]]
    with _folder(chosen.directory) as folder:
        before = measure(folder, chosen.seconds)
        for at in range(0, len(wanted), chosen.every):
            seen = []
            for configuration in wanted[at : at + chosen.every]:
                seen.append(
                    run(configuration, predict(configuration, before, folder / "state"), folder / "state", chosen.steps)
                )
                shutil.rmtree(folder / "state", ignore_errors=True)
                shutil.rmtree(folder / "state-warm", ignore_errors=True)
            load.append(os.getloadavg()[0])
            after = measure(folder, chosen.seconds)
            hardware = between(before, after)  # the machine is not the same from minute to minute
            for configuration, one in zip(wanted[at : at + chosen.every], seen, strict=True):
                rows.append(compare(configuration, predict(configuration, hardware, folder / "state"), one))
                if not chosen.json:
                    print(_line(rows[-1]), flush=True)
            before = after
    result = summary(rows) | {"load": [round(value, 1) for value in load]}
    if chosen.json:
        print(json.dumps(result | {"rows": rows, "hardware": hardware.to_dict(), "machine": describe()}))
    else:
        for name in ("configurations", "memory_within_5_percent", "time_within_15_percent"):
            print(f"{name}: {result[name]}")
        print(f"load: {result['load']} on {os.cpu_count()} cores; times are only as good as the machine is quiet")
        print("worst in memory:", _line(result["worst_memory"]), "worst in time:  ", _line(result["worst_time"]), sep="\n  ")
    return result


def _line(row: dict[str, Any]) -> str:
    phase = row["memory"][row["memory_off_in"]]
    held = (
        f"{phase['predicted'] / 1e6:8.1f} {phase['measured'] / 1e6:8.1f} MB {row['memory_off']:+6.1%} {row['memory_off_in']:12}"
    )
    seconds = row["seconds"]
    taken = f"{seconds['predicted']:7.3f} {seconds['measured']:7.3f} s {row['time_off']:+6.1%} {row['bound_by']}"
    return f"{row['configuration']:38} {held} {taken}"


if __name__ == "__main__":
    main()
