"""This machine as figures: `measure(directory)` is what `offload-lab measure` prints, and what the planner is held against."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import torch

from offload_lab import kernels, measured_cache
from offload_lab.auto import available_memory
from offload_lab.hardware import Figure, Hardware
from offload_lab.measured_cache import Identity
from offload_lab.partition import BLOCK
from offload_lab.policy import OffloadPolicy
from offload_lab.probes import accelerator as link
from offload_lab.probes import disk
from offload_lab.probes.filesystem import Filesystem, filesystem_of, warnings
from offload_lab.probes.matrix import matrix_flops
from offload_lab.probes.update import BYTES_HELD, publish_seconds, step_seconds, update_bandwidth
from offload_lab.storage.direct_io import StorageError, require_disk_tier

Say = Callable[[str], None]
_FALLS = 0.8  # of the bandwidth on the smallest file: less than that on the largest is told
_BOTH_AT_ONCE = 1.3  # times one direction alone: a disk that moves so much in both is full duplex


@dataclass(frozen=True)
class Sizes:
    """How much is touched. The defaults are far beyond every cache of a processor; all are cut to what is free."""

    elements: int = 64 << 20
    """Parameters of the update, 14 bytes each; at most a quarter of the free memory."""
    smallest: int = 256 << 20
    """Bytes of the smallest file, and of the largest; at most half of what is free on the disk."""
    largest: int = 16 << 30
    copy: int = 256 << 20
    """Bytes of one copy over the link."""
    matrix: int = 2048
    gpu_matrix: int = 8192


def to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(
    directory: str | os.PathLike[str],
    seconds: float = 30.0,
    *,
    fresh: bool = False,
    say: Say = to_stderr,
    sizes: Sizes | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Hardware:
    """Measure this machine, and the disk under `directory`, in about `seconds`; or return what was measured before.

    What was measured is kept in the user's cache folder (`cache`, if given), by machine and directory; `measured_cache` says
    what ends its validity, `fresh` measures anyway. `say` gets a line before each part. The disk is measured on a file without
    a name, never larger than half of the free space, which is gone however this ends.

    Raises ValueError for seconds that are not more than 0, NotADirectoryError where `directory` is no folder, StorageError
    where its disk fails or cannot be written.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise ValueError(f"seconds={seconds!r}: a number of more than 0 is needed")
    path = Path(os.path.realpath(directory))
    if not path.is_dir():
        raise NotADirectoryError(f"there is no folder {str(directory)!r} whose disk could be measured; make it first")
    kernel, found, device = kernels.choose("auto"), filesystem_of(path), link.Accelerator.here()
    identity = _identity(path, found, kernel, device)
    folder, now = measured_cache.user_cache() if cache is None else Path(cache), measured_cache.utc_now()
    kept, why = (None, "") if fresh else measured_cache.load(identity, seconds, folder, now)
    if kept is not None:
        say(
            f"measured on {kept.taken[:10]}, taken from {str(measured_cache.place(identity, folder))!r}; --fresh measures again"
        )
        return _counted(kept, path, found)
    if why:
        say(f"what was measured before does not count: {why}")
    measured = _measured(path, seconds, kernel, found, device, sizes or Sizes(), say)
    measured = replace(measured, name=f"this machine ({identity.processor}, {identity.cores} cores)", taken=now.isoformat())
    try:
        measured_cache.store(measured, identity, seconds, folder, now)
    except OSError as error:
        say(f"the figures could not be kept for the next time: {error}")
    return measured


def _identity(path: Path, found: Filesystem, kernel: kernels.Kernel, device: link.Accelerator | None) -> Identity:
    return Identity(
        node=platform.node(),
        processor=processor(),
        cores=_cores(),
        threads=torch.get_num_threads(),
        ram=psutil.virtual_memory().total,
        kernel=kernel.name,
        torch=torch.__version__,
        accelerators="none" if device is None else f"{device.count} × {device.name}",
        directory=str(path),
        filesystem=f"{found} at {found.mountpoint}",
    )


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:  # no Linux
        pass
    return platform.processor() or platform.machine()


def _cores() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _counted(hardware: Hardware, path: Path, found: Filesystem) -> Hardware:
    """With the memory and the disk that are free now."""
    disk_free = shutil.disk_usage(path).free
    return replace(
        hardware,
        ram=Figure(available_memory(), "measured", "free now, by the system's own count (and its container's limit)"),
        disk=None if hardware.disk_read is None else Figure(disk_free, "measured", f"free now in {str(path)!r} ({found})"),
    )


def _measured(
    path: Path,
    seconds: float,
    kernel: kernels.Kernel,
    found: Filesystem,
    device: link.Accelerator | None,
    sizes: Sizes,
    say: Say,
) -> Hardware:
    told: list[str] = []
    busy = _busy()
    if busy:
        told.append(busy)
    threads = max(1, torch.get_num_threads())
    ram = available_memory()
    shares = {"update": 0.15, "matrix": 0.05, "link": 0.2 if device is not None else 0.0}
    shares["disk"] = 1 - sum(shares.values())
    elements = max(1, min(sizes.elements, ram // 4 // BYTES_HELD))
    say(f"memory: updating {elements:,} parameters on {threads} threads, {shares['update'] * seconds:.0f} s …")
    dram = update_bandwidth(elements, shares["update"] * seconds)
    step, tensor = step_seconds(0.01 * seconds)
    if not kernel.compiles:
        told.append(f"the update runs as {kernel.name}: its arithmetic, not the memory, bounds dram_bandwidth")
    say(f"processor: products of matrices in float32, {shares['matrix'] * seconds:.0f} s …")
    flops = matrix_flops(torch.device("cpu"), torch.float32, sizes.matrix, shares["matrix"] * seconds)
    fields: dict[str, Any] = {"cpu_flops": flops, "directory": str(path), "step_seconds": step, "tensor_seconds": tensor}
    if device is not None:
        there, more = link.probe(device, shares["link"] * seconds, sizes.copy, sizes.gpu_matrix, say)
        fields |= there
        told += more
    there, more = _disk(path, shares["disk"] * seconds, found, sizes, say)
    fields |= there
    told += more
    return _counted(Hardware("", Figure(0, "measured"), dram, **fields, warnings=tuple(told)), path, found)


def _busy() -> str:
    """A warning where others use the processor."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load <= 0.5 * _cores():
        return ""
    return f"the machine was busy (load {load:.1f} on {_cores()} cores) when this began: a quiet one is faster"


def _disk(path: Path, seconds: float, found: Filesystem, sizes: Sizes, say: Say) -> tuple[dict[str, Any], list[str]]:
    """The disk's fields, and warnings."""
    try:
        require_disk_tier()
    except StorageError as error:
        return {}, [f"the disk was not measured: {error.strerror}"]
    policy = OffloadPolicy()  # its threads and its chunk are what steps transfer with
    largest = sizes.largest
    if found.nature == "memory":
        largest = min(largest, available_memory() // 4)  # what is written there is taken from the memory
    chunk = max(BLOCK, min(int(policy.chunk_bytes), sizes.smallest // 4) // BLOCK * BLOCK)
    try:
        seen = disk.probe(
            path, 0.98 * seconds, smallest=sizes.smallest, largest=largest, chunk=chunk, threads=policy.io_threads, say=say
        )
        publish = publish_seconds(path, 0.02 * seconds)
    except StorageError as error:
        if error.errno not in disk.FULL:
            raise
        return {}, [f"the disk was not measured: {error.strerror}"]
    say(f"disk: {_size(seen.written)} were written in all")
    told = warnings(str(path), found, seen.direct)
    if seen.cut_short:
        told.append(f"the disk was measured on {seen.cut_short}")
    last = seen.seen[-1]
    fields: dict[str, Any] = {"publish_seconds": publish}
    for name in ("read", "write", "mixed"):
        fields[f"disk_{name}"] = _disk_figure(seen, name, found, policy.io_threads, chunk)
        told += _falling(seen.seen, name, str(path))
    fields["disk_duplex"] = "full" if last.mixed > _BOTH_AT_ONCE * max(last.read, last.write) else "half"
    fields["disk"] = Figure(0, "measured")  # filled in with the rest of what is free
    return fields, told


def _disk_figure(found: disk.Found, name: str, filesystem: Filesystem, threads: int, chunk: int) -> Figure:
    how = "past the page cache" if found.direct else "through the page cache, flushed"
    by_size = ", ".join(f"{_size(seen.touched)}: {getattr(seen, name) / 1e9:.2f} GB/s" for seen in found.seen)
    both = ", half of it reads" if name == "mixed" else ""
    calls = f"{threads} threads a direction, {_size(chunk)} a call and its checksum{both}"
    note = f"{filesystem}, {how}, {calls}; by bytes touched {by_size}; the last is taken"
    return Figure(getattr(found.seen[-1], name), "measured", note)


def _falling(seen: tuple[disk.Seen, ...], name: str, path: str) -> list[str]:
    first, last = seen[0], seen[-1]
    before, after = getattr(first, name), getattr(last, name)
    if after >= _FALLS * before:
        return []
    return [
        f"{path!r}: {name} bandwidth falls from {before / 1e9:.2f} GB/s on {_size(first.touched)} to {after / 1e9:.2f} GB/s on "
        f"{_size(last.touched)}: a cache in front of the disk, or others who use it. Larger states may get less still"
    ]


def _size(nbytes: int) -> str:
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << power:
            return f"{nbytes / (1 << power):.3g} {unit}"
    return f"{nbytes} bytes"
