"""A machine from a few sizes: what `offload-lab plan --gpu-memory 24GiB --ram 128GiB …` plans for. Pure: no torch.

What is given is a size; the speeds that come with it are those of the catalogue's nearest part, and are marked assumed.
"""

from __future__ import annotations

from dataclasses import fields, replace

from offload_lab import catalogue
from offload_lab.catalogue_gpus import GPUS, Gpu
from offload_lab.hardware import GIVEN, Figure, Hardware

MEMORY, DISK = "ddr5-dual", "nvme4-consumer"
_MOST_GPUS, _HIGHEST_PRICE = 1_000_000, 1e9
_CPU_FLOPS = 0.8e12  # 16 cores of 50 GFLOP/s, as the catalogue's desktop


def machine(
    *,
    ram: int,
    gpu: str | None = None,
    gpu_memory: int | None = None,
    gpus: int = 1,
    link: str | None = None,
    memory: str = MEMORY,
    disk: int | None = None,
    disk_kind: str = DISK,
    price: float | None = None,
    name: str = "the machine described",
) -> Hardware:
    """`ram`, `gpu_memory` (of one accelerator) and `disk` in bytes, `price` in US dollars an hour; the rest are names of the
    catalogue. Without `gpu` the one with the nearest memory lends its speeds. Raises ValueError naming what is wrong.
    """
    _check_gpus(gpus)
    _check_price(price)
    if gpu is None and gpu_memory is None and (link is not None or gpus != 1):
        raise ValueError("a link and a number of accelerators are of accelerators: give gpu or gpu_memory as well")
    part: Gpu | None = None
    if gpu is not None:
        part = catalogue.gpu(gpu)
    elif gpu_memory is not None:
        part = _lent(gpu_memory)
    wires = catalogue.link(link) if link is not None else None
    below = catalogue.disk(disk_kind) if disk is not None else None
    cost = None if price is None else Figure(price, "assumed", "given, US dollars an hour")
    cpu = Figure(_CPU_FLOPS, "assumed", "16 cores × 50 GFLOP/s")
    built = catalogue.assemble(
        name, memory=catalogue.memory(memory), disk=below, gpu=part, link=wires, gpus=gpus, ram=ram, cpu_flops=cpu, price=cost
    )
    built = replace(built, ram=Figure(ram, "assumed", GIVEN))
    if gpu_memory is not None:
        built = replace(built, gpu_memory=Figure(gpu_memory, "assumed", GIVEN))
    if disk is not None:
        built = replace(built, disk=Figure(disk, "assumed", GIVEN))
    return built


def changed(
    hardware: Hardware,
    *,
    ram: int | None = None,
    gpu_memory: int | None = None,
    disk: int | None = None,
    price: float | None = None,
    gpus: int | None = None,
) -> Hardware:
    """A known machine with other sizes, or another number of accelerators. Raises ValueError for memory of an accelerator that
    it does not have."""
    _check_price(price)
    if gpus is not None:
        hardware = several(hardware, gpus)
    if gpu_memory is not None and not hardware.gpus:
        raise ValueError(f"{hardware.name} has no accelerator; leave gpu_memory out, or name a machine with one")
    given = {"ram": ram, "gpu_memory": gpu_memory, "disk": disk, "price": price}
    figures = {name: Figure(value, "assumed", GIVEN) for name, value in given.items() if value is not None}
    return replace(hardware, **figures)


def _check_gpus(gpus: int) -> None:
    if isinstance(gpus, bool) or not isinstance(gpus, int) or not 1 <= gpus <= _MOST_GPUS:
        raise ValueError(f"gpus={gpus!r}: a whole number of 1 to {_MOST_GPUS:,} is needed")


def _check_price(price: float | None) -> None:
    if price is not None and not 0 <= price <= _HIGHEST_PRICE:
        raise ValueError(f"price={price!r}: a number of 0 to {_HIGHEST_PRICE:,.0f} is needed, US dollars an hour")


def several(hardware: Hardware, gpus: int) -> Hardware:
    """`hardware` with `gpus` accelerators instead of its own; its memory and its disk stay as they are.

    An hour costs in proportion, which is assumed: the price is of the whole machine. Raises ValueError where it has no
    accelerator, or one that shares its memory with the host.
    """
    _check_gpus(gpus)
    if not hardware.gpus:
        raise ValueError(f"gpus={gpus}: {hardware.name} has no accelerator; name a machine with one")
    if hardware.unified and gpus != hardware.gpus:
        raise ValueError(f"gpus={gpus}: {hardware.name} has one memory for both, and so {hardware.gpus} accelerator")
    if gpus == hardware.gpus:
        return hardware
    price, name = hardware.price, f"{hardware.name} with {gpus} accelerators"
    if price is not None:
        told = f"{gpus} accelerators at {gpus}/{hardware.gpus} of ${price.value:,.2f}; {price.note}"
        price = Figure(price.value * gpus / hardware.gpus, "assumed", told)
    return replace(hardware, name=name, gpus=gpus, price=price)


def _lent(nbytes: int) -> Gpu:
    """The catalogue's accelerator whose memory is nearest to `nbytes`, its figures marked assumed."""
    near = min((part for part in GPUS if not part.unified), key=lambda part: abs(part.memory.value - nbytes))
    note = f"as of {near.title}, the accelerator of the catalogue with the nearest memory"
    lent = {f.name: getattr(near, f.name) for f in fields(near) if isinstance(getattr(near, f.name), Figure)}
    return replace(near, **{name: Figure(figure.value, "assumed", note) for name, figure in lent.items()})
