"""The update on the CPU, against its peers: `python -m bench.update [--json]`.

All contenders take turns in one run; a figure is the median over the rounds of the ratio within a round. The mixed case is
a bfloat16 gradient in, float32 master and moments, a bfloat16 weight out. DeepSpeed and torch need casts before and after.

"kernel" is the update itself, which is what the peers do; "ours" is all of `OffloadAdamW.step()`, which reads every gradient
once more before anything is changed, because a step with one that is not finite must not begin. The peers do not look.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable

import numpy as np
import torch
from numba import njit

from bench.machine import describe
from bench.peers import PeerMissing, Worker
from offload_lab import OffloadAdamW

_SLICE = 4 << 20  # elements a piece, as the engine cuts them


# A tile at a time, a loop an array, and slices that begin at 0: with five arrays in one loop, or indices that may be negative,
# the compiler does not vectorise. The traffic is the same.
_TILE = 2048


@njit(nogil=True, cache=True)
def _flip(x):
    for i in range(x.shape[0]):
        x[i] = -x[i]


@njit(nogil=True, cache=True)
def _take(x, y):
    for i in range(x.shape[0]):
        x[i] += y[i]


@njit(nogil=True, cache=True)
def _mixed_traffic(w, g, m, v, low, begin, end):
    """The reads and writes of the mixed update, and hardly any arithmetic."""
    for at in range(begin, end, _TILE):
        last = min(at + _TILE, end)
        _flip(m[at:last])
        _flip(v[at:last])
        _flip(low[at:last])
        _take(w[at:last], g[at:last])


@njit(nogil=True, cache=True)
def _float32_traffic(w, g, m, v, begin, end):
    for at in range(begin, end, _TILE):
        last = min(at + _TILE, end)
        _flip(m[at:last])
        _flip(v[at:last])
        _take(w[at:last], g[at:last])


def _in_threads(pieces: Iterable[Callable[[], None]]) -> None:
    waiting = iter(list(pieces))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                piece = next(waiting, None)
            if piece is None:
                return
            piece()

    threads = [threading.Thread(target=work) for _ in range(torch.get_num_threads())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Traffic:
    """The bandwidth loop over arrays of its own, in as many threads as the update has."""

    def __init__(self, numel: int, mixed: bool) -> None:
        words = np.uint16 if mixed else np.float32
        self._arrays = [np.ones(numel, words), np.ones(numel, words), np.ones(numel, np.float32), np.ones(numel, np.float32)]
        self._arrays += [np.ones(numel, np.uint16)] if mixed else []
        self._loop = _mixed_traffic if mixed else _float32_traffic
        self._numel = numel
        self._loop(*self._arrays, 0, 1)

    def step(self) -> None:
        _in_threads(
            lambda at=at: self._loop(*self._arrays, at, min(at + _SLICE, self._numel)) for at in range(0, self._numel, _SLICE)
        )


class Ours:
    """OffloadAdamW in RAM. `step` is all of it, the check of the gradients included; the kernel's own time is in its trace."""

    def __init__(self, shapes: list[int], dtype: torch.dtype) -> None:
        self.parameters = [torch.nn.Parameter(torch.randn(n).to(dtype)) for n in shapes]
        for parameter in self.parameters:
            parameter.grad = torch.randn(parameter.numel()).to(dtype)
        self.optimizer = OffloadAdamW(self.parameters, lr=1e-3)

    def step(self) -> None:
        self.optimizer.step()

    def kernel_seconds(self) -> float:
        """The time in which an update ran, in the last step."""
        last = self.optimizer.stats()["last_step"]
        return last["seconds"] * last["waited"]["update"]


class Torch:
    """torch.optim.AdamW in float32; `mixed` adds the casts before and after."""

    def __init__(self, numel: int, mixed: bool, **options: bool) -> None:
        self.weight = torch.nn.Parameter(torch.randn(numel))
        self.weight.grad = torch.randn(numel)
        self.half = self.weight.detach().bfloat16() if mixed else None
        self.gradient = self.weight.grad.bfloat16() if mixed else None
        self.optimizer = torch.optim.AdamW([self.weight], lr=1e-3, **options)

    def step(self) -> None:
        if self.gradient is not None:
            self.weight.grad.copy_(self.gradient)
        self.optimizer.step()
        if self.half is not None:
            self.half.copy_(self.weight.detach())


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _rounds(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Each contender once a round, in turn; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            taken = run()
            if turn:
                times[name].append(taken)
    return times


def _ratio(times: dict[str, list[float]], slower: str, faster: str) -> float | None:
    """The median over rounds of how many times as long `slower` takes."""
    if slower not in times or faster not in times:
        return None
    return round(statistics.median(a / b for a, b in zip(times[slower], times[faster], strict=True)), 3)


def _case(mixed: bool, numel: int, rounds: int, missing: dict[str, str]) -> dict[str, list[float]]:
    case = "mixed" if mixed else "fp32"
    ours = Ours([numel], torch.bfloat16 if mixed else torch.float32)
    traffic = Traffic(numel, mixed)
    kernel: list[float] = []

    def our_step() -> float:
        taken = _seconds(ours.step)
        kernel.append(ours.kernel_seconds())
        return taken

    contenders = {"ours": our_step, "kernel": lambda: kernel[-1], "traffic": lambda: _seconds(traffic.step)}
    kinds = {"fused": {"fused": True}} if mixed else {"fused": {"fused": True}, "foreach": {"foreach": True}}
    for name, options in kinds.items():
        peer = Torch(numel, mixed, **options)
        contenders[f"torch {name}"] = lambda peer=peer: _seconds(peer.step)
    worker = None
    try:
        worker = Worker("bench.deepspeed_update", str(numel))
        contenders["deepspeed"] = lambda: worker.ask(case=case)["seconds"]
        worker.ask(case=case)  # compiled here, if at all
    except PeerMissing as error:
        missing["deepspeed"] = str(error)
    try:
        return _rounds(contenders, rounds)
    finally:
        ours.optimizer.close()
        if worker is not None:
            worker.close()


def _many_small(rounds: int) -> float | None:
    flat, small = Ours([32_000], torch.bfloat16), Ours([16] * 2000, torch.bfloat16)

    def fifty(ours: Ours) -> float:
        return _seconds(lambda: [ours.step() for _ in range(50)])

    times = _rounds({"flat": lambda: fifty(flat), "small": lambda: fifty(small)}, rounds)
    return _ratio(times, "small", "flat")


def _compile_seconds() -> dict[str, float]:
    """The first optimizer of a process with an empty cache, and of one that finds it filled, less one that is there already."""
    code = (
        "import time, torch\n"
        "from offload_lab import OffloadAdamW\n"
        "p = torch.nn.Parameter(torch.zeros(10, dtype=torch.bfloat16)); p.grad = torch.ones_like(p)\n"
        "start = time.perf_counter(); OffloadAdamW([p]).step(); first = time.perf_counter() - start\n"
        "start = time.perf_counter(); OffloadAdamW([p]).step(); print(first - (time.perf_counter() - start))\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        taken = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            taken.append(round(float(done.stdout), 2))
    return {"cold": taken[0], "cached": taken[1]}


def main(arguments: list[str] | None = None) -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--params", type=int, default=128 << 20, help="parameters (default 128 Mi, about 9 GB in all)")
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args(arguments)
    machine = describe()
    missing: dict[str, str] = {}
    mixed = _case(True, chosen.params, chosen.rounds, missing)
    fp32 = _case(False, chosen.params, chosen.rounds, missing)

    def nanoseconds(times: dict[str, list[float]]) -> dict[str, float]:
        return {name: round(statistics.median(taken) / chosen.params * 1e9, 3) for name, taken in times.items()}

    result = {
        "mixed_speedup_vs_deepspeed": _ratio(mixed, "deepspeed", "kernel"),
        "fp32_speedup_vs_deepspeed": _ratio(fp32, "deepspeed", "kernel"),
        "mixed_speedup_vs_torch_fused": _ratio(mixed, "torch fused", "kernel"),
        "fp32_speedup_vs_torch_fused": _ratio(fp32, "torch fused", "kernel"),
        "fp32_speedup_vs_torch_foreach": _ratio(fp32, "torch foreach", "kernel"),
        "mixed_step_speedup_vs_deepspeed": _ratio(mixed, "deepspeed", "ours"),
        "fp32_step_speedup_vs_deepspeed": _ratio(fp32, "deepspeed", "ours"),
        "fp32_step_speedup_vs_torch_fused": _ratio(fp32, "torch fused", "ours"),
        "share_of_bandwidth": _ratio(mixed, "traffic", "kernel"),
        "share_of_bandwidth_fp32": _ratio(fp32, "traffic", "kernel"),
        "many_small_ratio": _many_small(chosen.rounds),
        "compile_seconds": _compile_seconds(),
        "ns_per_parameter": {"mixed": nanoseconds(mixed), "fp32": nanoseconds(fp32)},
        "params": chosen.params,
        "rounds": chosen.rounds,
        "missing": missing,
        "machine": machine,
    }
    if chosen.json:
        print(json.dumps(result))
    else:
        for case, table in result["ns_per_parameter"].items():
            print(f"{case}: ns a parameter, medians of {chosen.rounds} rounds over {chosen.params:,} parameters")
            for name, value in table.items():
                print(f"    {name:16}{value:8.3f}")
        for name, value in result.items():
            if name not in ("ns_per_parameter", "machine"):
                print(f"{name}: {value}")
    return result


if __name__ == "__main__":
    main()
