"""Machines to compare, and parts to put together: `machine("rtx4090-nvme")`, `gpu("a100-80")`, `assemble(…)`. Pure: no torch.

Every figure says whether it is from a data sheet (its note has author, title, year and address) or assumed (its note says why).
None is measured: what a machine really does is what `offload-lab measure` finds on it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from offload_lab import prices
from offload_lab.catalogue_disks import DISKS, Disk
from offload_lab.catalogue_gpus import GPUS, Gpu
from offload_lab.catalogue_parts import LINKS, MEMORIES, Link, Memory, pcie_named
from offload_lab.catalogue_sources import GIB, assumed
from offload_lab.hardware import Figure, Hardware


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Part = TypeVar("Part", bound=_Named)


def _find(kind: str, name: str, table: Sequence[Part]) -> Part:
    by_name = {part.name: part for part in table}
    if name not in by_name:
        near = difflib.get_close_matches(name, by_name, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"the catalogue has no {kind} {name!r}.{hint} It has {', '.join(by_name)}")
    return by_name[name]


def link(name: str) -> Link:
    """A link by name: "pcie3x16" to "pcie6x16" (and ×1 to ×8), "nvlink-c2c", … Raises ValueError that lists the names."""
    return pcie_named(name) or _find("link", name, LINKS)


def memory(name: str) -> Memory:
    """Host memory by name: "ddr5-dual", "cxl2x8", … Raises ValueError that lists the names."""
    return _find("memory", name, MEMORIES)


def disk(name: str) -> Disk:
    """A disk by name: "nvme4-consumer", "nvme5-server", … Raises ValueError that lists the names."""
    return _find("disk", name, DISKS)


def gpu(name: str) -> Gpu:
    """An accelerator by name: "t4", "rtx4090", "a100-80", … Raises ValueError that lists the names."""
    return _find("gpu", name, GPUS)


def _made_for(accelerator: Gpu) -> Link:
    return link(accelerator.link)


def assemble(
    name: str,
    *,
    memory: Memory,
    disk: Disk | None = None,
    gpu: Gpu | None = None,
    link: Link | None = None,
    gpus: int = 1,
    ram: int | None = None,
    cpu_flops: Figure | None = None,
    price: Figure | None = None,
) -> Hardware:
    """A machine of parts. `link` is the one that the accelerator is made for if not given; `ram` are bytes fitted, the
    memory's usual if not given.

    Raises ValueError for a link without an accelerator, or fewer than one of them.
    """
    if gpu is None and link is not None:
        raise ValueError(f"{name}: a link ({link.name}) leads to an accelerator; give gpu= as well")
    if gpus < 1:
        raise ValueError(f"{name}: gpus={gpus}: at least one; leave gpu= out for a machine without")
    fitted = memory.capacity if ram is None else assumed(ram, f"{ram / GIB:g} GiB fitted")
    warnings = []
    machine = Hardware(name, fitted, memory.update, cpu_flops=cpu_flops, price=price)
    if disk is not None:
        if disk.sustained_write is not None:
            warnings.append(
                f"{disk.title}: writes at {disk.write.value / 1e9:.1f} GB/s while its cache of fast cells lasts, then at "
                f"{disk.sustained_write.value / 1e9:.1f} GB/s, which is the figure taken"
            )
        machine = replace(
            machine,
            disk=disk.capacity,
            disk_read=disk.read,
            disk_write=disk.write_for_training,
            disk_mixed=disk.mixed_for_training,
            disk_duplex=disk.duplex,
            disk_endurance=disk.endurance,
        )
    if gpu is not None:
        wires = _made_for(gpu) if link is None else link
        machine = replace(
            machine,
            gpus=gpus,
            gpu_memory=gpu.memory,
            gpu_bandwidth=gpu.bandwidth,
            gpu_flops=gpu.flops,
            host_to_device=wires.pinned,
            device_to_host=wires.pinned,
            host_to_device_pageable=wires.pageable,
            device_to_host_pageable=wires.pageable,
            link_duplex=wires.duplex,
            unified=gpu.unified,
            gpu_flops_float32=gpu.flops_float32,
            gpu_dtypes=gpu.dtypes,
            gpu_between=gpu.between,
        )
    return replace(machine, warnings=tuple(warnings))


@dataclass(frozen=True)
class _Recipe:
    """A whole machine, by the names of its parts. `cores` and `core_flops` (float32 FLOP a second and core) are assumed."""

    name: str
    memory: str
    disk: str
    cores: int
    gpu: str | None = None
    link: str | None = None
    ram_gib: float | None = None
    core_flops: float = 50e9
    dram_bandwidth: Figure | None = None
    """Where the cores, and not the memory, bound the update."""


# One core moves 10 to 20 GB/s, and virtual ones are threads of half a core.
_TWO_CORES = assumed(20e9, "two virtual cores at 10 GB/s each: the cores are the bound, not the memory")
_FOUR_CORES = assumed(40e9, "four virtual cores at 10 GB/s each: the cores are the bound, not the memory")
_LAPTOP = assumed(25e9, "two cores at 12.5 GB/s each: the cores are the bound, not the memory")

_RECIPES = [
    _Recipe("laptop", "ddr4-dual", "nvme3-consumer", 2, ram_gib=16, dram_bandwidth=_LAPTOP),
    _Recipe("colab-cpu", "ddr4x8", "colab-disk", 2, ram_gib=12.7, core_flops=30e9, dram_bandwidth=_TWO_CORES),
    _Recipe("colab-t4", "ddr4x8", "colab-disk", 2, "t4", ram_gib=12.7, core_flops=30e9, dram_bandwidth=_TWO_CORES),
    _Recipe("t4-cloud", "ddr4x8", "cloud-gp3", 4, "t4", ram_gib=16, core_flops=30e9, dram_bandwidth=_FOUR_CORES),
    _Recipe("l4-cloud", "ddr4x8", "cloud-gp3", 4, "l4", ram_gib=16, core_flops=30e9, dram_bandwidth=_FOUR_CORES),
    _Recipe("rtx4090-nvme", "ddr5-dual", "nvme4-consumer", 16, "rtx4090"),
    _Recipe("rtx4090-server-nvme", "ddr5x8", "nvme5-server", 32, "rtx4090", ram_gib=256),
    _Recipe("rtx4090-cxl", "ddr5x8", "cxl2x16", 32, "rtx4090", ram_gib=256),
    _Recipe("a100-80-server", "ddr4x8", "nvme4-server", 32, "a100-80", ram_gib=256),
    _Recipe("h100-80-server", "ddr5x8", "nvme5-server", 32, "h100-80", ram_gib=256),
    _Recipe("gh200", "grace-lpddr5x", "nvme5-server", 72, "gh200"),
    _Recipe("gb10", "gb10-lpddr5x", "nvme4-consumer", 20, "gb10"),
    _Recipe("m4-max", "m4-max", "nvme4-consumer", 16, "m4-max"),
]


def machine(name: str, table: Mapping[str, prices.Price] | None = None) -> Hardware:
    """A whole machine by name: "laptop", "colab-t4", "rtx4090-nvme", "a100-80-server", … with what an hour of it costs by
    `table` (`prices.load()` if not given). Raises ValueError that lists the names."""
    recipe = _find("machine", name, _RECIPES)
    below = memory(recipe.disk).as_disk() if recipe.disk.startswith("cxl") else disk(recipe.disk)
    built = assemble(
        name,
        memory=memory(recipe.memory),
        disk=below,
        gpu=gpu(recipe.gpu) if recipe.gpu else None,
        link=link(recipe.link) if recipe.link else None,
        ram=None if recipe.ram_gib is None else round(recipe.ram_gib * GIB),
        cpu_flops=assumed(recipe.cores * recipe.core_flops, f"{recipe.cores} cores × {recipe.core_flops / 1e9:.0f} GFLOP/s"),
        price=prices.of(name, table),
    )
    return built if recipe.dram_bandwidth is None else replace(built, dram_bandwidth=recipe.dram_bandwidth)


def names() -> dict[str, tuple[str, ...]]:
    """All names of the catalogue, by kind."""
    kinds: dict[str, Sequence[_Named]] = {
        "machine": _RECIPES,
        "gpu": GPUS,
        "link": LINKS,
        "memory": MEMORIES,
        "disk": DISKS,
    }
    return {kind: tuple(part.name for part in table) for kind, table in kinds.items()}
