"""Where the figures of the catalogue are from: who published what, and when. Pure: no torch."""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab.hardware import Figure

GIB, TB = 1 << 30, 10**12


@dataclass(frozen=True)
class Sheet:
    """Something that a maker or a standards body published, by its title. `year` is that of the edition that was read."""

    author: str
    title: str
    year: int
    address: str

    def __str__(self) -> str:
        return f'{self.author}, "{self.title}", {self.year}, {self.address}'


def sheet(value: float, where: Sheet, what: str = "") -> Figure:
    """A figure that `where` states, or that follows by arithmetic, told in `what`, from one that it states."""
    return Figure(value, "data sheet", f"{what} ({where})" if what else str(where))


def assumed(value: float, note: str) -> Figure:
    return Figure(value, "assumed", note)


PCIE = {
    3: Sheet("PCI-SIG", "PCI Express Base Specification, Revision 3.0", 2010, "https://pcisig.com/specifications"),
    4: Sheet("PCI-SIG", "PCI Express Base Specification, Revision 4.0", 2017, "https://pcisig.com/specifications"),
    5: Sheet("PCI-SIG", "PCI Express Base Specification, Revision 5.0", 2019, "https://pcisig.com/specifications"),
    6: Sheet("PCI-SIG", "PCI Express Base Specification, Revision 6.0", 2022, "https://pcisig.com/specifications"),
}
DDR = {
    4: Sheet("JEDEC", "DDR4 SDRAM, JESD79-4B", 2017, "https://www.jedec.org/standards-documents"),
    5: Sheet("JEDEC", "DDR5 SDRAM, JESD79-5", 2020, "https://www.jedec.org/standards-documents"),
}
CXL = {
    2: Sheet(
        "CXL Consortium",
        "Compute Express Link Specification, Revision 2.0",
        2020,
        "https://computeexpresslink.org/cxl-specification/",
    ),
    3: Sheet(
        "CXL Consortium",
        "Compute Express Link Specification, Revision 3.0",
        2022,
        "https://computeexpresslink.org/cxl-specification/",
    ),
}
T4 = Sheet("NVIDIA", "NVIDIA T4 Tensor Core GPU, datasheet", 2019, "https://www.nvidia.com/en-us/data-center/tesla-t4/")
L4 = Sheet("NVIDIA", "NVIDIA L4 Tensor Core GPU, datasheet", 2023, "https://www.nvidia.com/en-us/data-center/l4/")
ADA = Sheet(
    "NVIDIA", "NVIDIA Ada GPU Architecture, whitepaper", 2022, "https://www.nvidia.com/en-us/geforce/ada-lovelace-architecture/"
)
A100 = Sheet("NVIDIA", "NVIDIA A100 Tensor Core GPU, datasheet", 2021, "https://www.nvidia.com/en-us/data-center/a100/")
H100 = Sheet("NVIDIA", "NVIDIA H100 Tensor Core GPU, datasheet", 2023, "https://www.nvidia.com/en-us/data-center/h100/")
GH200 = Sheet(
    "NVIDIA",
    "NVIDIA GH200 Grace Hopper Superchip, datasheet",
    2023,
    "https://www.nvidia.com/en-us/data-center/grace-hopper-superchip/",
)
DGX_SPARK = Sheet(
    "NVIDIA", "NVIDIA DGX Spark, datasheet", 2025, "https://www.nvidia.com/en-us/products/workstations/dgx-spark/"
)
M4 = Sheet(
    "Apple",
    "Apple introduces M4 Pro and M4 Max, press release",
    2024,
    "https://www.apple.com/newsroom/2024/10/apple-introduces-m4-pro-and-m4-max/",
)
EVO = Sheet(
    "Samsung",
    "Samsung V-NAND SSD 970 EVO Plus, data sheet",
    2019,
    "https://manualmachine.com/samsung/mzv7s250bw/8043730-user-manual",
)
PRO = Sheet(
    "Samsung",
    "Samsung V-NAND SSD 990 PRO, data sheet",
    2022,
    "https://semiconductor.samsung.com/consumer-storage/internal-ssd/990-pro/",
)
MICRON_7450 = Sheet("Micron", "Micron 7450 NVMe SSD, product brief", 2022, "https://www.micron.com/products/storage/ssd")
MICRON_9550 = Sheet("Micron", "Micron 9550 NVMe SSD, product brief", 2024, "https://www.micron.com/products/storage/ssd")
GP3 = Sheet(
    "Amazon Web Services",
    "Amazon EBS User Guide, General Purpose SSD volumes",
    2024,
    "https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html",
)
