"""A machine as the planner and the simulator see it: bandwidths and sizes, each with where its number is from. Pure: no torch.

`catalogue.py` has machines to compare; `measuring.py` measures this one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Source = Literal["measured", "data sheet", "assumed"]
SOURCES: tuple[Source, ...] = ("measured", "data sheet", "assumed")
Duplex = Literal["half", "full"]
GIVEN = "given"
"""The note of a figure that a person typed. It is assumed to be right."""


@dataclass(frozen=True)
class Figure:
    """A number in SI units (bytes, bytes a second, FLOP a second, money an hour), and where it is from."""

    value: float
    source: Source
    note: str = ""
    """What was measured and how, or which data sheet (with its address), or why it is assumed."""

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"source={self.source!r}: one of {', '.join(SOURCES)} is needed")
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not 0 <= self.value < float("inf"):
            raise ValueError(f"value={self.value!r}: a finite number of at least 0 is needed")

    @property
    def origin(self) -> str:
        """ "given" where a person said it, else the source."""
        return GIVEN if self.note == GIVEN else self.source


@dataclass(frozen=True)
class Hardware:
    """One machine. A figure that is None is not there (no accelerator) or not known; whoever needs it says so.

    `duplex` of the disk and of the link: "half" where reads and writes (both directions) share the bandwidth.
    """

    name: str
    ram: Figure
    """Bytes of host memory that a process may take."""
    dram_bandwidth: Figure
    """Bytes a second that the CPU's one-pass update moves (reads and writes together)."""
    disk: Figure | None = None
    """Bytes free on the disk."""
    disk_read: Figure | None = None
    disk_write: Figure | None = None
    disk_mixed: Figure | None = None
    """Bytes a second, both directions together, while half of the traffic is reads."""
    disk_duplex: Duplex = "half"
    publish_seconds: Figure | None = None
    """Seconds in which a step on disk makes itself durable, beside the bytes that it moves."""
    disk_endurance: Figure | None = None
    """Bytes that may be written in the disk's life (TBW)."""
    gpus: int = 0
    gpu_memory: Figure | None = None
    """Bytes of one accelerator's memory."""
    gpu_bandwidth: Figure | None = None
    """Bytes a second of the accelerator's own memory."""
    gpu_flops: Figure | None = None
    """Matrix throughput in 16 bits, FLOP a second, of one accelerator."""
    step_seconds: Figure | None = None
    """Seconds that a step of this engine takes beside the bytes that it moves; `tensor_seconds`: each tensor more."""
    tensor_seconds: Figure | None = None
    cpu_flops: Figure | None = None
    """Matrix throughput of the host in float32, FLOP a second."""
    host_to_device: Figure | None = None
    """Bytes a second of one accelerator's link, from pinned memory."""
    device_to_host: Figure | None = None
    host_to_device_pageable: Figure | None = None
    device_to_host_pageable: Figure | None = None
    link_duplex: Duplex = "full"
    unified: bool = False
    """The accelerator and the host share one memory: `gpu_memory` is part of `ram`."""
    gpu_flops_float32: Figure | None = None
    """As `gpu_flops`, of float32 matrices as torch multiplies them by default (without TF32)."""
    gpu_dtypes: tuple[str, ...] = ()
    """16-bit formats that the accelerator's matrix units have; empty where it is not known. Others are emulated."""
    gpu_between: Figure | None = None
    """Bytes a second that one accelerator sends to the others over wires of their own (NVLink), each direction. None: what they
    send each other goes over the host's link."""
    price: Figure | None = None
    """Money an hour for the whole machine, in US dollars."""
    warnings: tuple[str, ...] = ()
    """What a person should know before trusting the figures (the directory is RAM, a network, an overlay …)."""
    directory: str = ""
    """The folder whose disk was measured; empty where none was."""
    taken: str = ""
    """When the figures were measured (ISO 8601, UTC); empty for a machine from the catalogue."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; `from_dict` takes it back."""
        out: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Figure):
                value = {"value": value.value, "source": value.source, "note": value.note}
            out[field.name] = list(value) if isinstance(value, tuple) else value
        return out

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Hardware:
        """Raises ValueError naming what is missing, unknown, or of the wrong kind."""
        if not isinstance(given, Mapping):
            raise ValueError(f"hardware is a JSON object, as `offload-lab measure --json` prints, not {type(given).__name__}")
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ValueError(f"hardware has no {', '.join(unknown)}; it has {', '.join(sorted(known))}")
        values: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, Mapping):
                try:
                    values[name] = Figure(**value)
                except (TypeError, ValueError) as error:
                    raise ValueError(f"hardware: {name} is no figure: {error}") from error
            else:
                values[name] = tuple(value) if name in _LISTS and isinstance(value, list) else value
        missing = [name for name in ("name", "ram", "dram_bandwidth") if name not in values]
        if missing:
            raise ValueError(f"hardware is incomplete: it has no {', '.join(missing)}")
        hardware = cls(**values)
        for name in known:
            value = getattr(hardware, name)
            if not _right(name, value):
                raise ValueError(f"hardware: {name}={value!r} is not what it has to be; see offload-lab measure --json")
        return hardware

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)


_LISTS = ("warnings", "gpu_dtypes")


def _right(name: str, value: Any) -> bool:
    """Whether `value`, of a file, may be the field `name`."""
    if name in ("name", "directory", "taken"):
        return isinstance(value, str)
    if name == "gpus":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if name == "unified":
        return isinstance(value, bool)
    if name in ("disk_duplex", "link_duplex"):
        return value in get_args(Duplex)
    if name in _LISTS:
        return isinstance(value, tuple) and all(isinstance(text, str) for text in value)
    return isinstance(value, Figure) or (value is None and name not in ("ram", "dram_bandwidth"))
