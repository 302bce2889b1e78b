"""What the parts of machines can do, by their makers' figures: links, memories, disks, GPUs. Pure: no torch.

Line rates and data sheets say what a part cannot exceed. What a copy, an update or a file gets of that is *assumed*, with the
share that was assumed, until `offload-lab measure` has measured it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from offload_lab.hardware import Duplex, Figure

GIB, TB = 1 << 30, 10**12

LINK_SHARE = 0.83
"""Of the line rate, what copies of large pinned buffers get: packet headers and flow control take the rest."""
DRAM_SHARE = 0.75
"""Of the memory's peak, what the one-pass update gets when enough cores run it."""
STAGING = 12e9
"""Bytes a second at which one thread fills the pinned buffer that a pageable copy goes through."""


def sheet(value: float, note: str) -> Figure:
    """A figure that somebody publishes. `note` has the address."""
    return Figure(value, "data sheet", note)


def assumed(value: float, note: str) -> Figure:
    return Figure(value, "assumed", note)


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


_PCIE = "https://pcisig.com/specifications"
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
    note = f"{lanes} lanes × {how} ({_PCIE})"
    return Link(f"pcie{generation}x{lanes}", f"PCIe {generation}.0 ×{lanes}", sheet(lanes * rate, note))


def pcie_named(name: str) -> Link | None:
    """The link that "pcie4x8" and the like name, also where the table below has only ×16."""
    match = re.fullmatch(r"pcie([3-6])x(\d+)", name)
    return pcie(int(match[1]), int(match[2])) if match and int(match[2]) in _LANES else None


LINKS = [
    *(pcie(generation, 16) for generation in _PCIE_LANE),
    Link(
        "nvlink-c2c",
        "NVLink-C2C of Grace Hopper",
        sheet(450e9, "900 GB/s in both directions together (https://www.nvidia.com/en-us/data-center/grace-hopper-superchip/)"),
    ),
    Link(
        "nvlink-c2c-gb10",
        "NVLink-C2C of GB10",
        sheet(300e9, "600 GB/s in both directions together (Hot Chips 2025, https://afnnews.qaasid.com/145463)"),
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


def _dram(name: str, title: str, gib: int, channels: int, transfers: float, width: int = 8) -> Memory:
    """`channels` of `width` bytes at `transfers` a second: JEDEC's arithmetic."""
    peak = channels * width * transfers
    note = f"{channels} channels × {width} bytes × {transfers / 1e6:.0f} MT/s"
    return Memory(
        name,
        title,
        assumed(gib * GIB, f"{gib} GiB fitted"),
        sheet(peak, f"{note} (JEDEC, https://www.jedec.org/standards-documents)"),
        assumed(DRAM_SHARE * peak, f"{DRAM_SHARE} of {note}; needs enough cores"),
    )


def _cxl(name: str, title: str, lanes: int, generation: int, gib: int, dram: float) -> Memory:
    """Behind `lanes` lanes of PCIe `generation`, with `dram` bytes a second of DRAM on the device."""
    wires, share = pcie(generation, lanes), 0.8
    one_way = share * wires.line_rate.value
    # bfloat16: of 26 bytes an element the update reads 14 and writes 12; both directions run at once, so reads are the bound.
    update = min(one_way * 26 / 14, DRAM_SHARE * dram)
    address = "https://computeexpresslink.org/cxl-specification/"
    return Memory(
        name,
        title,
        assumed(gib * GIB, f"{gib} GiB on the device"),
        sheet(wires.line_rate.value, f"the wires of {wires.title} ({address})"),
        assumed(update, f"reads at {share} of the wires bound it (14 of 26 bytes), or {DRAM_SHARE} of the DRAM behind them"),
        assumed(one_way, f"{share} of {wires.title}: 64 of 68 bytes of a flit are data, and requests take their share"),
    )


MEMORIES = [
    _dram("ddr4-dual", "DDR4-3200, 2 channels", 32, 2, 3200e6),
    _dram("ddr5-dual", "DDR5-5600, 2 channels", 128, 2, 5600e6),
    _dram("ddr4x8", "DDR4-3200, 8 channels, one socket", 512, 8, 3200e6),
    _dram("ddr5x8", "DDR5-4800, 8 channels, one socket", 512, 8, 4800e6),
    _dram("ddr5x12", "DDR5-4800, 12 channels, one socket", 768, 12, 4800e6),
    Memory(
        "grace-lpddr5x",
        "LPDDR5X of Grace, 480 GB",
        sheet(480e9, "480 GB (https://www.nvidia.com/en-us/data-center/grace-hopper-superchip/)"),
        assumed(384e9, "modules of 480 GB; those of 120 and 240 GB are sold with 512 GB/s"),
        assumed(DRAM_SHARE * 384e9, f"{DRAM_SHARE} of 384 GB/s"),
    ),
    Memory(
        "gb10-lpddr5x",
        "Unified LPDDR5X of DGX Spark, 128 GB",
        sheet(128 * GIB, "128 GB (https://www.nvidia.com/en-us/products/workstations/dgx-spark/)"),
        sheet(273e9, "273 GB/s (https://www.nvidia.com/en-us/products/workstations/dgx-spark/)"),
        assumed(0.5 * 273e9, "half of 273 GB/s: the CPU's cores alone do not draw all of it"),
    ),
    Memory(
        "m4-max",
        "Unified memory of Apple M4 Max, 128 GB",
        sheet(128 * GIB, "up to 128 GB (https://www.macrumors.com/2024/10/30/apple-announces-m4-max-chip/)"),
        sheet(546e9, "up to 546 GB/s (https://www.macrumors.com/2024/10/30/apple-announces-m4-max-chip/)"),
        assumed(0.4 * 546e9, "0.4 of 546 GB/s: the CPU's cores alone do not draw all of it"),
    ),
    _cxl("cxl2x8", "CXL 2.0 memory, ×8", 8, 5, 256, 2 * 8 * 4800e6),
    _cxl("cxl2x16", "CXL 2.0 memory, ×16", 16, 5, 512, 4 * 8 * 4800e6),
    _cxl("cxl3x8", "CXL 3.0 memory, ×8", 8, 6, 512, 4 * 8 * 6400e6),
    _cxl("cxl3x16", "CXL 3.0 memory, ×16", 16, 6, 1024, 8 * 8 * 6400e6),
]


@dataclass(frozen=True)
class Disk:
    """Sequential transfers in large pieces, bytes a second."""

    name: str
    title: str
    capacity: Figure
    read: Figure
    write: Figure
    """As the maker gives it: of a consumer disk, while its cache of fast cells lasts."""
    mixed: Figure | None = None
    endurance: Figure | None = None
    sustained_write: Figure | None = None
    """Once that cache is full, which every step of training fills again."""
    duplex: Duplex = "half"

    @property
    def write_for_training(self) -> Figure:
        return self.write if self.sustained_write is None else self.sustained_write

    @property
    def mixed_for_training(self) -> Figure:
        """Both directions together, half of it reads: given, or as if the disk did one thing at a time."""
        if self.mixed is not None:
            return self.mixed
        read, write = self.read.value, self.write_for_training.value
        return assumed(2 / (1 / read + 1 / write), f"2 / (1 / {read / 1e9:.2f} + 1 / {write / 1e9:.2f}) GB/s: one at a time")


def _disk(
    name: str,
    title: str,
    tb: float,
    read: float,
    write: float,
    tbw: float | None,
    note: str,
    sustained_write: Figure | None = None,
    mixed: Figure | None = None,
) -> Disk:
    """Speeds in GB/s, capacity and endurance in TB, all from the page that `note` names."""
    worn = None if tbw is None else sheet(tbw * TB, f"{tbw:g} TB written ({note})")
    capacity, reads, writes = sheet(tb * TB, note), sheet(read * 1e9, note), sheet(write * 1e9, note)
    return Disk(name, title, capacity, reads, writes, mixed, worn, sustained_write)


_EVO = "Samsung 970 EVO Plus 2 TB, https://manualmachine.com/samsung/mzv7s250bw/8043730-user-manual"
_PRO = "Samsung 990 PRO 2 TB, https://www.digitec.ch/en/s1/product/samsung-990-pro-2000-gb-m2-7450-mbs-2000-gb-m2-ssd-35511542"
_7450 = "Micron 7450 PRO U.3 7.68 TB, https://servethehome.com/?p=59563; one drive write a day for five years"
_9550 = (
    "Micron 9550 MAX 6.4 TB, "
    "https://www.storagereview.com/review/micron-9550-max-review-balanced-performance-for-ai-db-and-analytics"
)
_GP3 = "EBS gp3 with 1,000 MB/s bought, https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html"

DISKS = [
    _disk(
        "nvme3-consumer",
        "Consumer NVMe, PCIe 3",
        2,
        3.5,
        3.3,
        1200,
        _EVO,
        sustained_write=sheet(1.75e9, f"past its cache ({_EVO})"),
    ),
    _disk(
        "nvme4-consumer",
        "Consumer NVMe, PCIe 4",
        2,
        7.45,
        6.9,
        1200,
        _PRO,
        sustained_write=assumed(1.4e9, "past its cache of fast cells; makers of such disks give 1.2 to 2 GB/s"),
    ),
    _disk("nvme4-server", "Server NVMe, PCIe 4", 7.68, 6.8, 5.6, 7.68 * 365 * 5, _7450),
    _disk("nvme5-server", "Server NVMe, PCIe 5", 6.4, 14, 10, 35_040, _9550),
    _disk(
        "sata",
        "SATA SSD",
        1,
        0.55,
        0.52,
        600,
        "SATA 6 Gb/s, 600 MB/s after 8b/10b, https://sata-io.org/developers/sata-naming-guidelines",
    ),
    _disk(
        "cloud-gp3", "Network disk of a cloud", 1, 1.0, 1.0, None, _GP3, mixed=sheet(1e9, f"reads and writes share it ({_GP3})")
    ),
    Disk(
        "colab-disk",
        "Virtual disk of a Colab machine",
        assumed(70 * GIB, "free on a fresh machine"),
        assumed(0.2e9, "a virtual disk over a network, limited by its size; measure yours"),
        assumed(0.2e9, "a virtual disk over a network, limited by its size; measure yours"),
    ),
]


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
    unified: bool = False


def _gpu(name: str, title: str, gib: float, gb_s: float, tflops: float, link: str, note: str, how: str = "") -> Gpu:
    """What is sold as GB of GPU memory is GiB; the driver keeps some of it."""
    dense = sheet(tflops * 1e12, f"tensor cores, 16 bits in, float32 sums, dense{how} ({note})")
    return Gpu(
        name, title, sheet(gib * GIB, f"{gib:g} GiB, some of it the driver's ({note})"), sheet(gb_s * 1e9, note), dense, link
    )


_HALF = "; half of the figure with sparsity"
_DGX = "https://www.nvidia.com/en-us/products/workstations/dgx-spark/"
GPUS = [
    _gpu("t4", "NVIDIA T4", 16, 320, 65, "pcie3x16", "https://www.nvidia.com/en-us/data-center/tesla-t4/", ", float16 only"),
    _gpu("l4", "NVIDIA L4", 24, 300, 121, "pcie4x16", "https://www.nvidia.com/en-us/data-center/l4/", _HALF),
    _gpu("rtx4090", "GeForce RTX 4090", 24, 1008, 165.2, "pcie4x16", "https://waredb.com/processor/nvidia-geforce-rtx-4090"),
    _gpu("a100-80", "NVIDIA A100 80 GB SXM", 80, 2039, 312, "pcie4x16", "https://www.nvidia.com/en-us/data-center/a100/"),
    _gpu(
        "h100-80",
        "NVIDIA H100 80 GB SXM",
        80,
        3350,
        989.4,
        "pcie5x16",
        "https://glennklockwood.com/garden/processors/h100",
        _HALF,
    ),
    _gpu(
        "gh200",
        "Hopper of GH200, 96 GB",
        96,
        4000,
        989.4,
        "nvlink-c2c",
        "https://www.nvidia.com/en-us/data-center/grace-hopper-superchip/",
        _HALF,
    ),
    Gpu(
        "gb10",
        "Blackwell of GB10",
        sheet(128 * GIB, f"all of the unified memory ({_DGX})"),
        sheet(273e9, _DGX),
        assumed(125e12, f"1 PFLOP in sparse FP4 ({_DGX}): a half for density, a quarter for 16 bits"),
        "nvlink-c2c-gb10",
        unified=True,
    ),
    Gpu(
        "m4-max",
        "Apple M4 Max, 40 GPU cores",
        assumed(96 * GIB, "three quarters of 128 GiB: what the system lets the GPU take"),
        sheet(546e9, "up to 546 GB/s (https://www.macrumors.com/2024/10/30/apple-announces-m4-max-chip/)"),
        assumed(17e12, "40 cores × 128 lanes × 2 × 1.6 GHz; Apple gives none"),
        "on-chip",
        unified=True,
    ),
]
