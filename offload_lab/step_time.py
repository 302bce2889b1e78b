"""Seconds of one step: what each lane has to move, and how long its hardware takes for that. Pure: no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from offload_lab.activations import flops
from offload_lab.between import between, passes
from offload_lab.engine_bytes import EngineBytes
from offload_lab.hardware import Figure, Hardware
from offload_lab.models import ModelSpec, element_bytes
from offload_lab.plan import Load, Placement, Time

UTILISATION = {"measured": 0.7, "data sheet": 0.4, "assumed": 0.4}
"""Share of `gpu_flops` that training reaches, assumed: 40 % of a data sheet's figure (PaLM reached 46 %, Chowdhery et al. 2022,
table 3), 70 % of large matrix products measured on the machine."""


class Unknown(ValueError):
    """A figure that the time of a step follows from is not there; the message names it."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of one step, over all accelerators."""

    down: int = 0
    up: int = 0
    dram: int = 0
    read: int = 0
    written: int = 0
    gpu: int = 0
    """Through the accelerator's own memory, for an update that runs there."""
    first_read: int = 0
    last_written: int = 0
    resident_dram: int = 0
    resident_written: int = 0
    read_ahead: int = 0
    checked: int = 0
    tensors: int = 0
    """That the engine looks at one by one."""
    published: float = 0.0
    between: int = 0
    """That each accelerator sends to the others, and as many that it gets from them."""


def traffic(model: ModelSpec, load: Load, placement: Placement, engine: EngineBytes | None, gpus: int) -> Traffic:
    """What a step of `placement` moves. See `placing.py` for the systems."""
    return replace(_own(model, load, placement, engine, gpus), between=between(model, load, placement, gpus).nbytes)


def _own(model: ModelSpec, load: Load, placement: Placement, engine: EngineBytes | None, gpus: int) -> Traffic:
    """All but what accelerators send each other."""
    n, element = model.parameters, element_bytes(load.dtype)
    weights, trained = model.weight_bytes(load.dtype), model.weight_bytes(load.dtype, trainable_only=True)
    if placement.runs_with == "offload_lab":
        if engine is None:
            raise ValueError("the engine's bytes are needed for a placement that it runs")
        # Weights and gradients come down, and weights go up, through pinned slabs (`staging.py`).
        down, up = (2 * trained, trained) if gpus else (0, 0)
        return Traffic(
            down,
            up,
            engine.dram,
            engine.read,
            engine.written,
            first_read=engine.first_read,
            last_written=engine.first_written,
            resident_dram=engine.resident_dram,
            resident_written=engine.resident_written,
            read_ahead=engine.read_ahead,
            checked=engine.checked,
            tensors=engine.tensors,
            published=engine.published,
        )
    update = (28 if element == 4 else 30) * n  # weight, gradient, master and moments read; all but the gradient written
    if placement.runs_with == "torch":
        return Traffic(gpu=update) if gpus else Traffic(dram=update)
    # DeepSpeed: weights up for forward, for backward, and where forward is repeated; gradients down after each backward.
    away = placement.weights != "gpu"
    up = passes(load) * weights if away else trained
    down = trained * load.accumulation
    state = 12 * n if placement.state == "disk" else 0
    swapped = 4 * n if placement.state == "disk" else 0  # float32 gradients are written by backward and read by the step
    fetched = passes(load) * weights if placement.weights == "disk" else 0
    stored = trained if placement.weights == "disk" else 0
    return Traffic(down, up, update, state + swapped + fetched, state + swapped + stored)


def seconds(
    model: ModelSpec, load: Load, placement: Placement, moved: Traffic, hardware: Hardware, utilisation: float | None
) -> Time:
    """One step on `hardware`. Raises Unknown where a figure that is needed is not there."""
    gpus = hardware.gpus
    tokens = load.tokens(gpus)
    speed = _speed(hardware, load.dtype, utilisation)
    operations = flops(model, tokens, load.sequence, load.checkpointing)
    lanes = {"compute": operations / speed}
    if moved.gpu:
        lanes["gpu update"] = moved.gpu / gpus / _known(hardware, "gpu_bandwidth")
    lanes |= _link(moved.down // max(gpus, 1), moved.up // max(gpus, 1), hardware)
    if moved.dram:
        lanes["dram"] = moved.dram / _known(hardware, "dram_bandwidth")
    if moved.read or moved.written:
        lanes |= disk(moved.read, moved.written, hardware)
    fixed = _fixed(moved, hardware)
    update = {name: taken for name, taken in lanes.items() if name != "compute"}
    # What accelerators send each other goes on while they compute, and over the host's link where they have no other.
    exchange = _exchange(moved, hardware)
    for name, taken in exchange.items():
        lanes[name] = lanes.get(name, 0.0) + taken
    # Without an accelerator, or with the update on it, computing and updating are one lane.
    shared = "gpu update" if gpus else "dram"
    together = {name: taken for name, taken in lanes.items() if name not in ("compute", shared)}
    together["compute"] = lanes["compute"] + lanes.get(shared, 0.0) if shared in lanes else lanes["compute"]
    bound = max(together, key=lambda name: together[name])
    alone = max((taken for name, taken in together.items() if name != "compute"), default=0.0)
    hidden = None if shared in lanes and not alone else round(alone * speed / (operations / tokens))
    wear = None
    if hardware.disk_endurance is not None and hardware.disk_endurance.value:
        wear = 1000 * moved.written / hardware.disk_endurance.value
    return Time(
        lanes,
        sum(lanes.values()) + fixed,
        max(lanes["compute"], *exchange.values(), 0.0) + _pipelined(moved, update, hardware) + fixed,
        together[bound] + fixed,
        bound,
        tokens,
        hidden,
        moved.written,
        moved.read,
        wear,
        fixed=fixed,
        between=moved.between,
    )


def _fixed(moved: Traffic, hardware: Hardware) -> float:
    """Seconds that a step of the engine takes however little it moves; nothing where the hardware does not know them."""
    if not moved.tensors:
        return 0.0
    each = ((1, hardware.step_seconds), (moved.tensors, hardware.tensor_seconds), (moved.published, hardware.publish_seconds))
    return sum(count * figure.value for count, figure in each if figure is not None)


def disk(read: int, written: int, hardware: Hardware) -> dict[str, float]:
    """Seconds of the disk's lanes. Half duplex is one lane: what is read and written together goes at the mixed bandwidth, the
    rest at its own; where no mixed figure is known, one after the other.

    What is written beyond what is read goes at the mixed bandwidth as well, for reads are spread over the whole step. Measured:
    5.5 GB/s of which five sixths were writes, where half and half gave 5.4, and writes alone 8 (bench/README.md).
    """
    reading, writing = _known(hardware, "disk_read"), _known(hardware, "disk_write")
    if hardware.disk_duplex == "full":
        return {"disk-read": read / reading, "disk-write": written / writing}
    if hardware.disk_mixed is None:
        return {"disk": read / reading + written / writing}
    if not read or not written:
        return {"disk": read / reading + written / writing}
    both, mixed = min(read, written), hardware.disk_mixed.value
    return {"disk": 2 * both / mixed + (read - both) / reading + (written - both) / min(writing, mixed)}


def _pipelined(moved: Traffic, update: dict[str, float], hardware: Hardware) -> float:
    """Seconds of an update whose reads, arithmetic and writes overlap: its slowest lane, and what that lane waits for.

    Arithmetic waits for the first read, and after it comes the last write. The disk waits while partitions that stay in RAM are
    updated: they come first, and then only the buffers are read and what is published of the resident ones is written.
    """
    of_disk = max((taken for name, taken in update.items() if name.startswith("disk")), default=0.0)
    others = max((taken for name, taken in update.items() if not name.startswith("disk")), default=0.0)
    if not of_disk:
        return others
    reading, writing = _known(hardware, "disk_read"), _known(hardware, "disk_write")
    ends = moved.first_read / reading + moved.last_written / writing
    meanwhile = moved.read_ahead / reading + moved.resident_written / writing
    idle = max(0.0, moved.resident_dram / _known(hardware, "dram_bandwidth") - meanwhile) if moved.resident_dram else 0.0
    # Gradients are looked through before anything is read or written.
    first = moved.checked / _known(hardware, "dram_bandwidth") if moved.checked else 0.0
    return max(of_disk + idle + first, others + ends)


def _exchange(moved: Traffic, hardware: Hardware) -> dict[str, float]:
    """Seconds in which accelerators exchange weights and gradients: each sends and receives at the same time."""
    if not moved.between:
        return {}
    if hardware.gpu_between is not None:
        return {"between": moved.between / _known(hardware, "gpu_between")}
    return _link(moved.between, moved.between, hardware)


def _link(down: int, up: int, hardware: Hardware) -> dict[str, float]:
    """Seconds of one accelerator's link to the host."""
    if not hardware.gpus or not (down or up):
        return {}
    below, above = down / _known(hardware, "device_to_host"), up / _known(hardware, "host_to_device")
    return {"link": below + above} if hardware.link_duplex == "half" else {"link-down": below, "link-up": above}


def speed_figure(hardware: Hardware, dtype: str) -> tuple[str, Figure | None]:
    """The name and the figure of the matrix throughput that a step in `dtype` goes at. A 16-bit format that the accelerator's
    matrix units lack is computed in float32."""
    if not hardware.gpus:
        return "cpu_flops", hardware.cpu_flops
    native = dtype != "float32" and (not hardware.gpu_dtypes or dtype in hardware.gpu_dtypes)
    if native or hardware.gpu_flops_float32 is None:
        return "gpu_flops", hardware.gpu_flops
    return "gpu_flops_float32", hardware.gpu_flops_float32


def _speed(hardware: Hardware, dtype: str, utilisation: float | None) -> float:
    name, figure = speed_figure(hardware, dtype)
    if figure is None or not figure.value:
        raise Unknown(f"{name} of {hardware.name} is not known; the time of a step follows from it")
    return figure.value * (UTILISATION[figure.source] if utilisation is None else utilisation) * max(hardware.gpus, 1)


def _known(hardware: Hardware, name: str) -> float:
    figure: Figure | None = getattr(hardware, name)
    if figure is None or not figure.value:
        raise Unknown(f"{name} of {hardware.name} is not known; the time of a step follows from it")
    return figure.value
