"""The link to an accelerator in both directions, from pinned and from pageable memory; its own memory and matrix throughput."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from typing import Any

import torch

from offload_lab.hardware import Figure
from offload_lab.probes.matrix import matrix_flops
from offload_lab.probes.timing import repeat, spread

Say = Callable[[str], None]
_EMULATED = 3  # times slower than the other 16-bit format: older accelerators have bfloat16 only by emulation
_BOTH_AT_ONCE = 1.3  # as much faster than one direction alone has to be what both carry together, to be called full duplex


class Accelerator:
    """What the probe needs of `torch.accelerator` for one device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._module = torch.get_device_module(device)

    @staticmethod
    def here() -> Accelerator | None:
        """The current one; None where torch has none."""
        device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return None if device is None else Accelerator(device)

    @property
    def count(self) -> int:
        return torch.accelerator.device_count()

    @property
    def name(self) -> str:
        name = getattr(self._module, "get_device_name", None)
        return self.device.type if name is None else str(name())

    def wait(self) -> None:
        torch.accelerator.synchronize()

    def memory(self) -> tuple[int, int] | None:
        """(bytes free, bytes in all); None where the backend does not say."""
        if self.device.type == "mps":
            most = int(torch.mps.recommended_max_memory())
            return most - int(torch.mps.driver_allocated_memory()), most
        ask = getattr(self._module, "mem_get_info", None)
        if ask is None:
            return None
        free, total = ask()
        return int(free), int(total)

    @property
    def unified(self) -> bool:
        if self.device.type == "mps":
            return True
        properties = getattr(self._module, "get_device_properties", None)
        return properties is not None and bool(getattr(properties(), "is_integrated", False))

    def pinned(self, nbytes: int) -> torch.Tensor:
        """Raises RuntimeError where the system refuses to pin."""
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def there(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, device=self.device)

    def other_stream(self) -> contextlib.AbstractContextManager[Any] | None:
        """Work within it may run beside that of the default stream; None where the backend has one stream only."""
        if not (hasattr(self._module, "Stream") and hasattr(self._module, "stream")):
            return None
        return self._module.stream(self._module.Stream())


def probe(
    accelerator: Accelerator, seconds: float, copy: int, matrix: int, say: Say = lambda text: None
) -> tuple[dict[str, Any], list[str]]:
    """Fields of `Hardware`, and warnings. `copy` is the bytes of one copy, less where there is little memory; `matrix` the
    size of the matrices."""
    fields: dict[str, Any] = {"gpus": accelerator.count, "unified": accelerator.unified}
    told: list[str] = []
    memory = accelerator.memory()
    if memory is not None:
        free, total = memory
        fields["gpu_memory"] = Figure(
            total, "measured", f"{accelerator.name}, as its driver counts it; {free:,} bytes are free"
        )
        copy = max(1 << 20, min(copy, free // 8))
    else:
        told.append(f"{accelerator.name}: the memory is not known, torch's {accelerator.device.type} backend does not say")
    say(f"accelerator: copies of {copy / 2**20:,.0f} MiB to and from {accelerator.name}, {seconds:.0f} s …")
    fields |= _link(accelerator, copy, seconds / 8, told)
    fields["gpu_bandwidth"] = _own_memory(accelerator, copy, seconds / 8)
    rates = _flops(accelerator, matrix, seconds / 8)
    sixteen = {name: rate for name, rate in rates.items() if name != "float32"}
    if "float32" in rates:
        fields["gpu_flops_float32"] = rates["float32"]
    if sixteen:
        fastest = fields["gpu_flops"] = max(sixteen.values(), key=lambda figure: figure.value)
        fields["gpu_dtypes"] = tuple(name for name, rate in sixteen.items() if rate.value * _EMULATED > fastest.value)
    else:
        told.append(f"{accelerator.name}: no matrix product in bfloat16 or float16")
    return fields, told


def _link(accelerator: Accelerator, copy: int, seconds: float, told: list[str]) -> dict[str, Any]:
    there, pageable = accelerator.there(copy), torch.ones(copy, dtype=torch.uint8)
    fields: dict[str, Any] = {}
    for name, source, target in (("host_to_device", pageable, there), ("device_to_host", there, pageable)):
        fields[f"{name}_pageable"] = _copies(accelerator, source, target, seconds, "pageable")
    try:
        down, up = accelerator.pinned(copy), accelerator.pinned(copy)
    except RuntimeError as error:
        first = str(error).splitlines()[0]
        told.append(f"{copy:,} bytes of host memory could not be pinned ({first}): only pageable copies were measured")
        return fields
    down.fill_(1)
    up.fill_(1)
    fields["host_to_device"] = _copies(accelerator, down, there, seconds, "pinned")
    fields["device_to_host"] = _copies(accelerator, there, up, seconds, "pinned")
    stream = accelerator.other_stream()
    if stream is not None:
        back, one = accelerator.there(copy), max(fields["host_to_device"].value, fields["device_to_host"].value)

        def both() -> None:
            there.copy_(down, non_blocking=True)
            with stream:
                up.copy_(back, non_blocking=True)
            accelerator.wait()

        together = statistics.median(2 * copy / taken for taken in repeat(both, seconds))
        fields["link_duplex"] = "full" if together > _BOTH_AT_ONCE * one else "half"
    return fields


def _copies(accelerator: Accelerator, source: torch.Tensor, target: torch.Tensor, seconds: float, kind: str) -> Figure:
    def once() -> None:
        target.copy_(source, non_blocking=kind == "pinned")
        accelerator.wait()

    rates = [source.nbytes / taken for taken in repeat(once, seconds)]
    note = f"copies of {source.nbytes:,} bytes, {kind} host memory, {accelerator.name}; {spread(rates)}"
    return Figure(statistics.median(rates), "measured", note)


def _own_memory(accelerator: Accelerator, copy: int, seconds: float) -> Figure:
    source, target = accelerator.there(copy), accelerator.there(copy)

    def once() -> None:
        target.copy_(source)
        accelerator.wait()

    rates = [2 * copy / taken for taken in repeat(once, seconds)]
    note = f"copies of {copy:,} bytes within {accelerator.name}, read and written; {spread(rates)}"
    return Figure(statistics.median(rates), "measured", note)


def _flops(accelerator: Accelerator, matrix: int, seconds: float) -> dict[str, Figure]:
    """By format, of those that there are products of."""
    figures = {}
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        try:
            figure = matrix_flops(accelerator.device, dtype, matrix, seconds / 3, accelerator.wait)
        except RuntimeError:  # the backend has no such product
            continue
        figures[str(dtype).removeprefix("torch.")] = figure
    return figures
