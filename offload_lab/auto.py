"""A policy chosen by measurement: what `OffloadPolicy.auto()` does."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import torch

from offload_lab.gradients import DTYPES
from offload_lab.partition import STATE_BYTES
from offload_lab.policy import Directory, OffloadPolicy, parse_bytes

_TRIED = {
    "io_threads": (1, 2, 8),
    "partition_size": (1 << 20, 2 << 20, 8 << 20),
    "depth": (3, 6),
    "chunk_bytes": (1 << 20, 8 << 20),
}
_WORTH = 0.97  # a change has to make the step at least this much faster, or it is noise


def available_memory() -> int:
    """Bytes of RAM that this process may still take: what the system says, or what its container leaves."""
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())  # "max" where there is none: a ValueError
        free = min(free, limit - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    return max(free, 0)


def choose(
    parameters: Iterable[torch.Tensor],
    directory: Directory | None,
    ram_budget: int | str | None,
    durability: str,
    seconds: float,
) -> OffloadPolicy:
    """See `OffloadPolicy.auto`."""
    counted: dict[str, int] = {}
    for parameter in parameters:
        dtype = DTYPES.get(parameter.dtype)
        if dtype is not None and parameter.requires_grad:
            counted[dtype] = counted.get(dtype, 0) + parameter.numel()
    needed = sum(STATE_BYTES[dtype] * numel for dtype, numel in counted.items())
    free = available_memory()
    budget = free // 2 if ram_budget is None else parse_bytes(ram_budget)
    told = [
        f"the state takes {needed:,} bytes ({', '.join(f'{n:,} {d} parameters' for d, n in counted.items()) or 'nothing'}); "
        + (f"half of the {free:,} bytes of free RAM is {budget:,}" if ram_budget is None else f"ram_budget is {budget:,}")
    ]
    if needed <= budget * 0.98:  # records are padded
        told.append("so all of it stays in RAM: no disk is faster")
        return OffloadPolicy(tier="ram", overlap="forward", why="; ".join(told))
    if directory is None:
        raise ValueError(
            f"OffloadPolicy.auto(): {told[0]}. It does not fit, and without directory=… there is no disk to put it on."
        )
    base = OffloadPolicy(tier="disk", directory=directory, durability=durability)
    dtype = max(counted, key=lambda name: counted[name])
    policy, measured = _measured(base, sum(counted.values()), getattr(torch, dtype), seconds)
    told += ["it goes to disk, and RAM keeps the same partitions always, which saves their share of every step", *measured]
    told.append(
        'overlap="forward": the update goes on during the next forward and is exact; order="forward", since that is the '
        "order in which forward asks for weights"
    )
    return replace(policy, ram_budget=budget, overlap="forward", why="; ".join(told))


def _measured(base: OffloadPolicy, elements: int, dtype: torch.dtype, seconds: float) -> tuple[OffloadPolicy, list[str]]:
    """`base` with what made steps fastest, one setting after the other, on files in its own directory, and what was seen."""
    end = time.monotonic() + seconds
    made = [directory for directory in base.directories if not directory.exists()]
    folders = []
    try:
        for directory in base.directories:
            directory.mkdir(parents=True, exist_ok=True)
            folders.append(tempfile.mkdtemp(prefix="measuring-", dir=directory))
        size = min(elements, 4 << 20)
        best = _step_seconds(base, folders, size, dtype)
        # As much as a trial can take in a twentieth of the time: a small file says little of a large one.
        size = min(elements, 64 << 20, max(size, int(size * seconds / 20 / max(best, 1e-3) / 5)))
        best = _step_seconds(base, folders, size, dtype)
        told = [f"measured on {size:,} parameters: {best / size * 1e9:.2f} ns a parameter as it is"]
        for name, values in _TRIED.items():
            seen = []
            for value in values:
                if time.monotonic() > end:
                    break
                if name == "partition_size" and value * base.depth > size:
                    continue
                taken = _step_seconds(replace(base, **{name: value}), folders, size, dtype)
                seen.append(f"{value:,} {taken / size * 1e9:.2f}")
                if taken < best * _WORTH:
                    base, best = replace(base, **{name: value}), taken
            now = getattr(base, name)
            kept = f"{now:,}" if now is not None else "by size"
            told.append(f"{name} {kept}" + (f" (tried {', '.join(seen)} ns)" if seen else " (no time left to try others)"))
        return base, told
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        for directory in made:
            with contextlib.suppress(OSError):  # somebody put something there meanwhile
                directory.rmdir()


def _step_seconds(policy: OffloadPolicy, folders: Sequence[str], elements: int, dtype: torch.dtype) -> float:
    """The fastest of three steps of `elements` parameters whose state is in `folders`."""
    from offload_lab.optimizer import OffloadAdamW  # it is built on the policy, which is built here

    parameter = torch.nn.Parameter(torch.zeros(elements, dtype=dtype))
    parameter.grad = torch.zeros_like(parameter)
    where = [tempfile.mkdtemp(dir=folder) for folder in folders]
    trial = replace(policy, directory=where, existing="replace")
    times = []
    with OffloadAdamW([parameter], offload=trial) as optimizer:
        optimizer.step()  # reads nothing yet
        for _ in range(3):
            start = time.perf_counter()
            optimizer.step()
            times.append(time.perf_counter() - start)
    for path in where:
        shutil.rmtree(path, ignore_errors=True)
    return min(times)
