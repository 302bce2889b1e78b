"""What a person should know before trusting a plan's figures: what was assumed, and what the hardware does not do. Pure."""

from __future__ import annotations

from offload_lab.hardware import Figure, Hardware
from offload_lab.plan import Load, Time
from offload_lab.plan_words import size
from offload_lab.step_time import speed_figure

_OF_LANE = {
    "gpu update": ("gpu_bandwidth",),
    "dram": ("dram_bandwidth",),
    "link": ("device_to_host", "host_to_device"),
    "link-down": ("device_to_host",),
    "link-up": ("host_to_device",),
    "between": ("gpu_between",),
    "disk": ("disk_read", "disk_write", "disk_mixed"),
    "disk-read": ("disk_read",),
    "disk-write": ("disk_write",),
}
"""Lane -> the figures that its seconds follow from."""


def sizes(hardware: Hardware) -> dict[str, Figure]:
    """Tier -> the figure of its size, of those that are there; of one accelerator."""
    found = {"gpu": hardware.gpu_memory if hardware.gpus else None, "ram": hardware.ram, "disk": hardware.disk}
    return {tier: figure for tier, figure in found.items() if figure is not None}


def cautions(load: Load, hardware: Hardware, time: Time | None) -> list[str]:
    """Sentences without their full stop."""
    return [*hardware.warnings, *emulated(load, hardware), *_sizes(hardware), *_speeds(load, hardware, time)]


def emulated(load: Load, hardware: Hardware) -> list[str]:
    """That the accelerator has no matrix units for what is trained; nothing where it has, or where it is not known."""
    if not hardware.gpus or not hardware.gpu_dtypes or load.dtype == "float32" or load.dtype in hardware.gpu_dtypes:
        return []
    there, slow = hardware.gpu_flops, hardware.gpu_flops_float32
    rates = "and the time here is too short by far"
    if there is not None and slow is not None:
        rates = f"at {slow.value / 1e12:.1f} TFLOP/s and not {there.value / 1e12:.1f}, which the time here counts with"
    other = " or ".join(hardware.gpu_dtypes)
    scaled = ", with a loss scaler," if other == "float16" else ""
    return [
        f"The accelerator of {hardware.name} has no matrix units for {load.dtype}: it is emulated in float32, {rates}. Train "
        f"in {other}{scaled} or on a newer accelerator"
    ]


def _sizes(hardware: Hardware) -> list[str]:
    names = {"gpu": "the accelerator's memory", "ram": "RAM", "disk": "the disk"}
    found = sizes(hardware)
    guessed = [
        f"{names[tier]} {size(figure.value)} ({figure.note or 'no reason is told'})"
        for tier, figure in found.items()
        if figure.origin == "assumed"
    ]
    told = [f"Sizes that are assumed, neither given nor measured: {'; '.join(guessed)}"] if guessed else []
    if "disk" in found and found["disk"].origin == "data sheet":
        told.append(f"The disk is taken to be empty, {size(found['disk'].value)} as it is sold")
    return told


def _speeds(load: Load, hardware: Hardware, time: Time | None) -> list[str]:
    """Those that the time follows from and nobody measured; and that float32 has no figure of its own."""
    if time is None:
        return []
    name, _ = speed_figure(hardware, load.dtype)
    told = []
    if hardware.gpus and load.dtype == "float32" and name == "gpu_flops":
        told.append(
            "No speed of float32 matrices is known: computing is counted at that of 16-bit ones, and takes several times as "
            "long without TF32"
        )
    used = [name, *(figure for lane in time.lanes for figure in _OF_LANE.get(lane, ()))]
    figures = {one: getattr(hardware, one) for one in dict.fromkeys(used)}
    guessed = [one for one, figure in figures.items() if figure is not None and figure.origin == "assumed"]
    if guessed:
        told.append(f"Speeds that are assumed, not measured, and that the time follows from: {', '.join(guessed)}")
    return told
