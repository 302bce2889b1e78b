"""What accelerators can do, by their makers' figures. Pure: no torch."""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab import catalogue_sources as sources
from offload_lab.catalogue_sources import GIB, Sheet, assumed, sheet
from offload_lab.hardware import Figure

NVLINK_SHARE = 0.75
"""Of the wires' rate, what collectives of large buffers get."""


@dataclass(frozen=True)
class Gpu:
    """One accelerator. `memory` in bytes, `bandwidth` of it in bytes a second, `flops` dense in 16 bits."""

    name: str
    title: str
    memory: Figure
    bandwidth: Figure
    flops: Figure
    link: str
    """Name of the link it is made for."""
    flops_float32: Figure
    """Of float32 as torch multiplies it, without TF32."""
    dtypes: tuple[str, ...] = ("float16", "bfloat16")
    """16-bit formats that its matrix units have."""
    between: Figure | None = None
    """Bytes a second that it sends to others over wires of their own, each direction; None: over the host's link."""
    unified: bool = False


def _gpu(
    name: str,
    title: str,
    gib: float,
    bandwidth: Figure,
    tflops: float,
    float32: float,
    link: str,
    where: Sheet,
    how: str = "",
    nvlink: float | None = None,
    dtypes: tuple[str, ...] = ("float16", "bfloat16"),
) -> Gpu:
    """What is sold as GB of GPU memory is GiB; the driver keeps some of it. `nvlink`: GB/s in both directions together."""
    wires = None
    if nvlink is not None:
        what = f"{NVLINK_SHARE} of {nvlink / 2:g} GB/s in each direction, of the {nvlink:g} in both"
        wires = assumed(NVLINK_SHARE * nvlink / 2 * 1e9, f"{what} ({where})")
    return Gpu(
        name,
        title,
        sheet(gib * GIB, where, f"{gib:g} GiB, some of it the driver's"),
        bandwidth,
        sheet(tflops * 1e12, where, f"tensor cores, 16 bits in, float32 sums, dense{how}"),
        link,
        sheet(float32 * 1e12, where, "float32, not TF32"),
        dtypes,
        wires,
    )


_HALF = "; half of the figure with sparsity"
_UNIFIED = "one memory for CPU and GPU"
GPUS = [
    _gpu(
        "t4",
        "NVIDIA T4",
        16,
        assumed(320e9, "256 wires of GDDR6 × 10 Gbit/s; its data sheet rounds it down"),
        65,
        8.1,
        "pcie3x16",
        sources.T4,
        ", float16 only",
        dtypes=("float16",),
    ),
    _gpu("l4", "NVIDIA L4", 24, sheet(300e9, sources.L4), 121, 30.3, "pcie4x16", sources.L4, _HALF),
    _gpu("rtx4090", "GeForce RTX 4090", 24, sheet(1008e9, sources.ADA), 165.2, 82.6, "pcie4x16", sources.ADA),
    _gpu("a100-80", "NVIDIA A100 80 GB SXM", 80, sheet(2039e9, sources.A100), 312, 19.5, "pcie4x16", sources.A100, nvlink=600),
    _gpu(
        "h100-80",
        "NVIDIA H100 80 GB SXM",
        80,
        sheet(3350e9, sources.H100),
        989.4,
        67,
        "pcie5x16",
        sources.H100,
        _HALF,
        nvlink=900,
    ),
    _gpu("gh200", "Hopper of GH200, 96 GB", 96, sheet(4000e9, sources.GH200), 989.4, 67, "nvlink-c2c", sources.GH200, _HALF),
    Gpu(
        "gb10",
        "Blackwell of GB10",
        sheet(128 * GIB, sources.DGX_SPARK, f"all of the memory; {_UNIFIED}"),
        sheet(273e9, sources.DGX_SPARK),
        assumed(125e12, f"1 PFLOP in sparse FP4 ({sources.DGX_SPARK}): a half for density, a quarter for 16 bits"),
        "nvlink-c2c-gb10",
        assumed(31e12, "6,144 cores × 2 × 2.5 GHz; NVIDIA gives none"),
        unified=True,
    ),
    Gpu(
        "m4-max",
        "Apple M4 Max, 40 GPU cores",
        assumed(96 * GIB, "three quarters of 128 GiB: what the system lets the GPU take"),
        sheet(546e9, sources.M4, "up to 546 GB/s"),
        assumed(17e12, "40 cores × 128 lanes × 2 × 1.6 GHz; Apple gives none"),
        "on-chip",
        assumed(17e12, "as in 16 bits: there are no matrix units apart"),
        unified=True,
    ),
]
