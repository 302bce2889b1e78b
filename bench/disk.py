"""A step from disk, against its own two halves and against its peers: `python -m bench.disk [--json]`.

Everything takes turns in one run on one disk: our step; the same reads and writes on the same files without the update; the
update alone, on state in RAM; DeepSpeed's ZeRO-3 with its optimizer on NVMe, tuned and with its defaults; torch's AdamW on
memory-mapped files. The model is bfloat16, its gradients are set by hand. A figure is the median over rounds of the ratio
within a round.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import torch

from bench.machine import describe
from bench.peers import PeerMissing, Worker, environment
from offload_lab import OffloadAdamW, OffloadPolicy

WIDTH = 2048


def shapes_of(params: int) -> list[list[int]]:
    """Matrices and vectors as a transformer of width 2048 has them, until there are `params` elements."""
    block = [[WIDTH], [3 * WIDTH, WIDTH], [WIDTH, WIDTH], [WIDTH], [4 * WIDTH, WIDTH], [WIDTH, 4 * WIDTH]]
    shapes, left = [], params
    while left > 0:
        for shape in block:
            numel = shape[0] * (shape[1] if len(shape) > 1 else 1)
            if numel > left:
                shapes.append([left])
                return shapes
            shapes.append(shape)
            left -= numel
            if not left:
                break
    return shapes


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _disk_bytes() -> tuple[int, int]:
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["read_bytes"]), int(counters["write_bytes"])


@contextlib.contextmanager
def _without_updates(optimizer: OffloadAdamW) -> Iterator[None]:
    """Steps that read and write as always, and update nothing."""
    layouts = optimizer._engine.layouts
    for layout in layouts:
        layout.pieces = lambda *arguments: []
    try:
        yield
    finally:
        for layout in layouts:
            del layout.pieces


class MappedAdamW:
    """torch.optim.AdamW (fused) over float32 masters; masters and moments are files mapped into memory."""

    def __init__(self, parameters: list[torch.nn.Parameter], folder: Path) -> None:
        folder.mkdir()
        self._parameters, self._folder, self._files = parameters, folder, []
        self._masters = [torch.nn.Parameter(self._mapped(p, "master")) for p in parameters]
        self._optimizer = torch.optim.AdamW(self._masters, lr=1e-5, fused=True)
        for parameter, master in zip(parameters, self._masters, strict=True):
            master.data.copy_(parameter.detach())
            self._optimizer.state[master] = {
                "step": torch.tensor(0.0),
                "exp_avg": self._mapped(parameter, "exp_avg"),
                "exp_avg_sq": self._mapped(parameter, "exp_avg_sq"),
            }

    def _mapped(self, like: torch.Tensor, name: str) -> torch.Tensor:
        path = self._folder / f"{name}-{len(self._files)}"
        self._files.append(path)
        return torch.from_file(str(path), shared=True, size=like.numel()).view(like.shape)

    def step(self) -> None:
        """The step, and its state back on the disk. Reads come from the page cache where memory allows that."""
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            master.grad = parameter.grad.float()
        self._optimizer.step()
        for parameter, master in zip(self._parameters, self._masters, strict=True):
            master.grad = None
            parameter.data.copy_(master.detach())
        for path in self._files:
            descriptor = os.open(path, os.O_RDONLY)
            os.fdatasync(descriptor)
            os.close(descriptor)


def _rounds(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):  # the first warms up
        for name, run in contenders.items():
            taken = run()
            if turn:
                times[name].append(taken)
    return times


def _ratio(times: dict[str, list[float]], over: str, under: Callable[[int], float]) -> float | None:
    if over not in times:
        return None
    return round(statistics.median(taken / under(turn) for turn, taken in enumerate(times[over])), 3)


def _bound(parameters, folder: Path, rounds: int, durability: str) -> dict[str, object]:
    policy = OffloadPolicy(tier="disk", directory=folder / "ours", durability=durability)
    with OffloadAdamW(parameters, lr=1e-5, offload=policy) as ours, OffloadAdamW(parameters, lr=1e-5) as in_ram:
        ours.step()

        def moved() -> float:
            with _without_updates(ours):
                return _seconds(ours.step)

        contenders = {"step": lambda: _seconds(ours.step), "io": moved, "update": lambda: _seconds(in_ram.step)}
        times = _rounds(contenders, rounds)
        waited = ours.stats()["last_step"]
    bound = [max(a, b) for a, b in zip(times["io"], times["update"], strict=True)]
    return {
        "ratio": _ratio(times, "step", lambda turn: bound[turn]),
        "seconds": {name: round(statistics.median(taken), 3) for name, taken in times.items()},
        "last_step": waited,
    }


def _shares(parameters, folder: Path, shares: list[float], rounds: int) -> list[dict[str, float]]:
    """Bytes and time with a share of the state in RAM, against none; bytes are the kernel's count."""
    rows: list[dict[str, float]] = []
    count = sum(p.numel() for p in parameters)
    whole: tuple[float, float] | None = None
    for share in shares:
        policy = OffloadPolicy(tier="disk", directory=folder / "share", durability="checkpoint")
        if share:
            partitions = -(-count // (4 << 20))
            record = 10 * (4 << 20) + 4096
            budget = 4 * (12 * (4 << 20) + 8192) + round(share * partitions) * record
            policy = OffloadPolicy(
                tier="disk", directory=folder / "share", durability="checkpoint", ram_budget=budget, partition_size=4 << 20
            )
        with OffloadAdamW(parameters, lr=1e-5, offload=policy) as optimizer:
            optimizer.step()
            optimizer.step()
            before = _disk_bytes()
            taken = [_seconds(optimizer.step) for _ in range(rounds)]
            after = _disk_bytes()
            stats = optimizer.stats()
        moved = (sum(after) - sum(before)) / rounds
        seconds = statistics.median(taken)
        whole = whole or (moved, seconds)
        rows.append(
            {
                "share": round(stats["resident_partitions"] / stats["partitions"], 4),
                "bytes_ratio": round(moved / whole[0], 4),
                "time_ratio": round(seconds / whole[1], 3),
                "seconds": round(seconds, 3),
            }
        )
    return rows


def _against_deepspeed(parameters, folder: Path, rounds: int, mode: str, missing: dict[str, str]) -> dict[str, list[float]]:
    """Our step and DeepSpeed's in turns: seconds of both, and of DeepSpeed's backward."""
    policy = OffloadPolicy(tier="disk", directory=folder / "ours", durability="checkpoint")
    swap = folder / f"deepspeed-{mode}"
    swap.mkdir()
    worker = None
    try:
        more = {} if mode == "defaults" else {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
        shapes = json.dumps([list(p.shape) for p in parameters])
        worker = Worker("bench.deepspeed_disk", mode, str(swap), shapes, **more)
        worker.ask()
        backward: list[float] = []

        def theirs() -> float:
            answer = worker.ask()
            backward.append(answer["backward"])
            return answer["step"]

        with OffloadAdamW(parameters, lr=1e-5, offload=policy) as ours:
            ours.step()
            times = _rounds({"ours": lambda: _seconds(ours.step), "step": theirs}, rounds)
        return {**times, "backward": backward[1:]}
    except PeerMissing as error:
        missing[f"deepspeed {mode}"] = str(error)
        return {}
    finally:
        if worker is not None:
            worker.close()
        shutil.rmtree(swap, ignore_errors=True)


def _fio(folder: Path, missing: dict[str, str]) -> dict[str, float] | None:
    """Mixed sequential reads and writes with direct I/O in blocks of 2 MiB, half and half, four jobs, as the step has them."""
    command = [
        "fio", "--name=mix", f"--directory={folder}", "--rw=rw", "--rwmixread=50", "--bs=2M", "--direct=1", "--ioengine=psync",
        "--numjobs=4", "--size=512M", "--time_based", "--runtime=5", "--group_reporting", "--output-format=json",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(GLIBC_TUNABLES="glibc.malloc.hugetlb=1"), check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        missing["fio"] = f"{error} (apt-get install fio)"
        return None
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    return {f"{way}_gb_per_s": round(job[way]["bw_bytes"] / 1e9, 2) for way in ("read", "write")}


def _params(asked: int | None, folder: str) -> int:
    """What was asked for, or 512 Mi where RAM and disk allow it, else less."""
    if asked:
        return asked
    ram, free = psutil.virtual_memory().available, shutil.disk_usage(folder).free
    return min(512 << 20, int(ram / 40), int(free / 60)) >> 20 << 20


def main(arguments: list[str] | None = None) -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--params", type=int, default=None, help="parameters (default 512 Mi, less where it does not fit)")
    parser.add_argument("--directory", default=None, help="on the disk to measure (default: a temporary folder)")
    parser.add_argument("--share", default="0,0.25,0.5", help="shares of the state kept in RAM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true", help="leave DeepSpeed and the mapped files out")
    chosen = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="bench-disk-", dir=chosen.directory))
    params = _params(chosen.params, str(folder))
    missing: dict[str, str] = {}
    result: dict[str, object] = {}
    try:
        parameters = [torch.nn.Parameter(torch.randn(shape).bfloat16()) for shape in shapes_of(params)]
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape).bfloat16()
        bound = _bound(parameters, folder, chosen.rounds, "checkpoint")
        durable = _bound(parameters, folder, chosen.rounds, "step")
        result["ratio_to_bound"] = bound["ratio"]
        result["ratio_to_bound_durable"] = durable["ratio"]
        result["seconds"] = {"checkpoint": bound["seconds"], "step": durable["seconds"]}
        result["last_step"] = bound["last_step"]
        result["shares"] = _shares(parameters, folder, [float(s) for s in chosen.share.split(",")], chosen.rounds)
        result["fio"] = _fio(folder, missing)
        modes = () if chosen.no_peers else ("tuned", "defaults", "cpu", "plain")
        theirs = {mode: _against_deepspeed(parameters, folder, chosen.rounds, mode, missing) for mode in modes}
        result.update(_comparison(theirs))
        if not chosen.no_peers:
            mapped = MappedAdamW(parameters, folder / "mapped")
            policy = OffloadPolicy(tier="disk", directory=folder / "ours", durability="checkpoint")
            with OffloadAdamW(parameters, lr=1e-5, offload=policy) as ours:
                ours.step()
                contenders = {"ours": lambda: _seconds(ours.step), "mapped": lambda: _seconds(mapped.step)}
                times = _rounds(contenders, min(chosen.rounds, 3))
            result["step_speedup_vs_memmap"] = _ratio(times, "mapped", lambda turn: times["ours"][turn])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result |= {"params": params, "rounds": chosen.rounds, "missing": missing, "machine": describe()}
    if chosen.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            if isinstance(value, list):
                print(f"{name}:", *value, sep="\n    ")
            else:
                print(f"{name}: {value}")
    return result


def _comparison(theirs: dict[str, dict[str, list[float]]]) -> dict[str, object]:
    """The ratios against DeepSpeed. What its disk tier adds to a training step is its step, and what its backward takes longer
    than torch's of the same model, which is what a training step with us has; beside that, than its own with state in RAM.
    """
    tuned, defaults, cpu, plain = (theirs.get(mode) or {} for mode in ("tuned", "defaults", "cpu", "plain"))

    def total(times: dict[str, list[float]], base: dict[str, list[float]]) -> float | None:
        if not times or not base:
            return None
        anyway = statistics.median(base["backward"])
        rows = zip(times["step"], times["backward"], times["ours"], strict=True)
        return round(statistics.median((step + backward - anyway) / ours for step, backward, ours in rows), 3)

    return {
        "step_speedup_vs_deepspeed": _ratio(tuned, "step", lambda turn: tuned["ours"][turn]),
        "step_speedup_vs_deepspeed_defaults": _ratio(defaults, "step", lambda turn: defaults["ours"][turn]),
        "total_speedup_vs_deepspeed": total(tuned, plain),
        "total_speedup_vs_deepspeed_defaults": total(defaults, plain),
        "total_speedup_vs_deepspeed_over_its_ram_tier": total(tuned, cpu),
        "deepspeed_seconds": {
            mode: {name: round(statistics.median(taken), 3) for name, taken in times.items()}
            for mode, times in theirs.items()
            if times
        },
    }


if __name__ == "__main__":
    main()
