"""What the memory plot says, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from offload_lab.plots.palette import STACK
from offload_lab.plots.scale import fullest
from offload_lab.state_bytes import readable

if TYPE_CHECKING:
    from offload_lab.meter import Reading


def memory_text(
    series: Mapping[str, Sequence[Reading]],
    *,
    title: str = "",
    limit_bytes: int | None = None,
    prediction_bytes: int | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """The text twin of `memory_svg`: a line for each series, then the limit and the prediction, where there is one.

    Bytes are in decimal units. Each series is described at the moment when its kinds took the most RAM together.
    """
    lines = [title] if title else []
    lines += [f"{_named(name, (notes or {}).get(name))}: {_described(readings)}" for name, readings in series.items()]
    if limit_bytes is not None:
        lines.append(f"Limit on memory: {readable(limit_bytes)}.")
    if prediction_bytes is not None:
        peaks = [fullest(readings).ram for readings in series.values() if readings]
        lines.append(f"Your prediction: {readable(prediction_bytes)}{_compared(prediction_bytes, peaks)}.")
    return "\n".join(lines)


def _named(name: str, note: str | None) -> str:
    return f"{name} ({note})" if note else name


def _described(readings: Sequence[Reading]) -> str:
    if not readings:
        return "nothing was measured."
    top = fullest(readings)
    kinds = ", ".join(f"{style.label} {readable(getattr(top, style.kind))}" for style in STACK if getattr(top, style.kind))
    disk = max(reading.optimizer_disk for reading in readings)
    said = f"at most {readable(top.ram)} in RAM, after {top.seconds - readings[0].seconds:.1f} s"
    said += f": {kinds}." if kinds else "."
    said += f" On disk, not in RAM: optimizer state, at most {readable(disk)}." if disk else " Nothing on disk."
    return f"{said} The whole process, with Python and its libraries: at most {readable(max(r.rss for r in readings))}."


def _compared(prediction: int, peaks: list[int]) -> str:
    if len(peaks) != 1 or not peaks[0] or not prediction:
        return ""
    return f"; measured: {readable(peaks[0])}, {peaks[0] / prediction:.2g} times that"
