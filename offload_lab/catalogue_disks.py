"""What disks can do, by their makers' figures. Pure: no torch."""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab import catalogue_sources as sources
from offload_lab.catalogue_sources import GIB, TB, Sheet, assumed, sheet
from offload_lab.hardware import Duplex, Figure


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
    where: Sheet,
    model: str,
    sustained_write: Figure | None = None,
    mixed: Figure | None = None,
) -> Disk:
    """Speeds in GB/s, capacity and endurance in TB, all of them `where` gives for `model`."""
    worn = None if tbw is None else sheet(tbw * TB, where, f"{model}: {tbw:g} TB written")
    capacity, reads, writes = (sheet(value, where, model) for value in (tb * TB, read * 1e9, write * 1e9))
    return Disk(name, title, capacity, reads, writes, mixed, worn, sustained_write)


_SATA = "as 1 TB disks for 6 Gbit/s are sold, a little under the 600 MB/s that its wires carry"

DISKS = [
    _disk(
        "nvme3-consumer",
        "Consumer NVMe, PCIe 3",
        2,
        3.5,
        3.3,
        1200,
        sources.EVO,
        "2 TB",
        sustained_write=sheet(1.75e9, sources.EVO, "2 TB, past its cache"),
    ),
    _disk(
        "nvme4-consumer",
        "Consumer NVMe, PCIe 4",
        2,
        7.45,
        6.9,
        1200,
        sources.PRO,
        "2 TB",
        sustained_write=assumed(1.4e9, "past its cache of fast cells; makers of such disks give 1.2 to 2 GB/s"),
    ),
    _disk(
        "nvme4-server", "Server NVMe, PCIe 4", 7.68, 6.8, 5.6, 7.68 * 365 * 5, sources.MICRON_7450, "PRO 7.68 TB, 1 write a day"
    ),
    _disk("nvme5-server", "Server NVMe, PCIe 5", 6.4, 14, 10, 35_040, sources.MICRON_9550, "MAX 6.4 TB, 3 writes a day"),
    Disk(
        "sata",
        "SATA SSD",
        assumed(1 * TB, _SATA),
        assumed(0.55e9, _SATA),
        assumed(0.52e9, _SATA),
        endurance=assumed(600 * TB, "600 TB written, as of such disks"),
    ),
    _disk(
        "cloud-gp3",
        "Network disk of a cloud",
        1,
        1.0,
        1.0,
        None,
        sources.GP3,
        "gp3 of 1 TB with 1,000 MB/s bought",
        mixed=sheet(1e9, sources.GP3, "reads and writes share it"),
    ),
    Disk(
        "colab-disk",
        "Virtual disk of a Colab machine",
        assumed(70 * GIB, "free on a fresh machine"),
        assumed(0.2e9, "a virtual disk over a network, limited by its size; measure yours"),
        assumed(0.2e9, "a virtual disk over a network, limited by its size; measure yours"),
    ),
]
