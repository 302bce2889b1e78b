"""What links and memories can do, by their makers' figures; disks and GPUs have modules of their own. Pure: no torch.

Line rates and data sheets say what a part cannot exceed. What a copy, an update or a file gets of that is *assumed*, with the
share that was assumed, until `offload-lab measure` has measured it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from offload_lab import catalogue_sources as sources
from offload_lab.catalogue_disks import Disk
from offload_lab.catalogue_sources import GIB, assumed, sheet
from offload_lab.hardware import Duplex, Figure

LINK_SHARE = 0.83
"""Of the line rate, what copies of large pinned buffers get: packet headers and flow control take the rest."""
DRAM_SHARE = 0.75
"""Of the memory's peak, what the one-pass update gets when enough cores run it."""
STAGING = 12e9
"""Bytes a second at which one thread fills the pinned buffer that a pageable copy goes through."""


@dataclass(frozen=True)
class Link:
    """Between host memory and one accelerator. Bytes a second, each direction."""

    name: str
    title: str
    line_rate: Figure
    """What the wires carry in one direction, encoding taken off."""
    duplex: Duplex = "full"

    @property
    def pinned(self) -> Figure:
        return assumed(LINK_SHARE * self.line_rate.value, f"{LINK_SHARE} of the line rate; {self.line_rate.note}")

    @property
    def pageable(self) -> Figure:
        half = self.pinned.value / 2
        if half <= STAGING:
            return assumed(half, "half of what pinned memory gets: each byte is copied twice")
        return assumed(STAGING, "one thread fills a pinned buffer, at 12 GB/s")


_PCIE_LANE = {  # bytes a second and lane, one direction, and how they come about
    3: (8e9 / 8 * 128 / 130, "8 GT/s, 128b/130b"),
    4: (16e9 / 8 * 128 / 130, "16 GT/s, 128b/130b"),
    5: (32e9 / 8 * 128 / 130, "32 GT/s, 128b/130b"),
    6: (64e9 / 8 * 236 / 256, "64 GT/s, 236 of the 256 bytes of a flit are packets"),
}
_LANES = (1, 2, 4, 8, 16)


def pcie(generation: int, lanes: int) -> Link:
    """PCIe of generation 3 to 6 with 1, 2, 4, 8 or 16 lanes."""
    rate, how = _PCIE_LANE[generation]
    line = sheet(lanes * rate, sources.PCIE[generation], f"{lanes} lanes × {how}")
    return Link(f"pcie{generation}x{lanes}", f"PCIe {generation}.0 ×{lanes}", line)


def pcie_named(name: str) -> Link | None:
    """The link that "pcie4x8" and the like name, also where the table below has only ×16."""
    match = re.fullmatch(r"pcie([3-6])x(\d+)", name)
    return pcie(int(match[1]), int(match[2])) if match and int(match[2]) in _LANES else None


LINKS = [
    *(pcie(generation, 16) for generation in _PCIE_LANE),
    Link(
        "nvlink-c2c",
        "NVLink-C2C of Grace Hopper",
        sheet(450e9, sources.GH200, "900 GB/s in both directions together"),
    ),
    Link(
        "nvlink-c2c-gb10",
        "NVLink-C2C of GB10",
        assumed(300e9, "600 GB/s in both directions together, as reported of a talk at Hot Chips 2025; no data sheet has it"),
    ),
    Link(
        "on-chip",
        "One memory for CPU and GPU",
        assumed(200e9, "a copy within one memory: half of its bandwidth goes to the read, half to the write"),
    ),
]


@dataclass(frozen=True)
class Memory:
    """Host memory. `update` is what the one-pass update moves (reads and writes together), bytes a second."""

    name: str
    title: str
    capacity: Figure
    peak: Figure
    update: Figure
    one_way: Figure | None = None
    """Bytes a second of reads alone, and of writes alone, where the memory is behind a full-duplex link (CXL)."""

    def as_disk(self) -> Disk:
        """The memory as the tier below RAM, used through files on it. Raises ValueError for the host's own memory."""
        if self.one_way is None:
            raise ValueError(f"{self.name} is the host's own memory; only memory behind a link (cxl…) is a tier below it")
        both = assumed(2 * self.one_way.value, "both directions of the link at once")
        return Disk(self.name, self.title, self.capacity, self.one_way, self.one_way, both, duplex="full")


def _dram(name: str, title: str, gib: int, channels: int, transfers: float, generation: int, width: int = 8) -> Memory:
    """`channels` of `width` bytes at `transfers` a second: JEDEC's arithmetic."""
    peak = channels * width * transfers
    note = f"{channels} channels × {width} bytes × {transfers / 1e6:.0f} MT/s"
    return Memory(
        name,
        title,
        assumed(gib * GIB, f"{gib} GiB fitted"),
        sheet(peak, sources.DDR[generation], note),
        assumed(DRAM_SHARE * peak, f"{DRAM_SHARE} of {note}; needs enough cores"),
    )


def _cxl(name: str, title: str, lanes: int, generation: int, gib: int, dram: float) -> Memory:
    """Behind `lanes` lanes of PCIe `generation`, with `dram` bytes a second of DRAM on the device."""
    wires, share = pcie(generation, lanes), 0.8
    one_way = share * wires.line_rate.value
    # bfloat16: of 26 bytes an element the update reads 14 and writes 12; both directions run at once, so reads are the bound.
    update = min(one_way * 26 / 14, DRAM_SHARE * dram)
    edition = {5: 2, 6: 3}[generation]
    what = f"the wires of {wires.title}"
    if edition == 3:  # what is specified, and not what anybody sells yet
        peak = assumed(wires.line_rate.value, f"{what}; no such device has a data sheet ({sources.CXL[3]})")
    else:
        peak = sheet(wires.line_rate.value, sources.CXL[2], what)
    return Memory(
        name,
        title,
        assumed(gib * GIB, f"{gib} GiB on the device"),
        peak,
        assumed(update, f"reads at {share} of the wires bound it (14 of 26 bytes), or {DRAM_SHARE} of the DRAM behind them"),
        assumed(one_way, f"{share} of {wires.title}: 64 of 68 bytes of a flit are data, and requests take their share"),
    )


MEMORIES = [
    _dram("ddr4-dual", "DDR4-3200, 2 channels", 32, 2, 3200e6, 4),
    _dram("ddr5-dual", "DDR5-5600, 2 channels", 128, 2, 5600e6, 5),
    _dram("ddr4x8", "DDR4-3200, 8 channels, one socket", 512, 8, 3200e6, 4),
    _dram("ddr5x8", "DDR5-4800, 8 channels, one socket", 512, 8, 4800e6, 5),
    _dram("ddr5x12", "DDR5-4800, 12 channels, one socket", 768, 12, 4800e6, 5),
    Memory(
        "grace-lpddr5x",
        "LPDDR5X of Grace, 480 GB",
        sheet(480e9, sources.GH200, "480 GB"),
        assumed(384e9, "modules of 480 GB; those of 120 and 240 GB are sold with 512 GB/s"),
        assumed(DRAM_SHARE * 384e9, f"{DRAM_SHARE} of 384 GB/s"),
    ),
    Memory(
        "gb10-lpddr5x",
        "Unified LPDDR5X of DGX Spark, 128 GB",
        sheet(128 * GIB, sources.DGX_SPARK, "128 GB"),
        sheet(273e9, sources.DGX_SPARK, "273 GB/s"),
        assumed(0.5 * 273e9, "half of 273 GB/s: the CPU's cores alone do not draw all of it"),
    ),
    Memory(
        "m4-max",
        "Unified memory of Apple M4 Max, 128 GB",
        sheet(128 * GIB, sources.M4, "up to 128 GB"),
        sheet(546e9, sources.M4, "up to 546 GB/s"),
        assumed(0.4 * 546e9, "0.4 of 546 GB/s: the CPU's cores alone do not draw all of it"),
    ),
    _cxl("cxl2x8", "CXL 2.0 memory, ×8", 8, 5, 256, 2 * 8 * 4800e6),
    _cxl("cxl2x16", "CXL 2.0 memory, ×16", 16, 5, 512, 4 * 8 * 4800e6),
    _cxl("cxl3x8", "CXL 3.0 memory, ×8", 8, 6, 512, 4 * 8 * 6400e6),
    _cxl("cxl3x16", "CXL 3.0 memory, ×16", 16, 6, 1024, 8 * 8 * 6400e6),
]
