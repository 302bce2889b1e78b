"""The memory plot as a picture of our own: static SVG without script or font, legible on light and dark pages. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from offload_lab.plots.drawing import document, tiles
from offload_lab.plots.lettering import clean
from offload_lab.plots.palette import DISK, LIGHT, STACK
from offload_lab.plots.panel import BESIDE, Frame, Line, panel
from offload_lab.plots.scale import byte_label, fullest, ticks
from offload_lab.plots.text import memory_text

if TYPE_CHECKING:
    from offload_lab.meter import Reading

LEFT, TOP, GAP, RIGHT = 84, 92, 18, 12
HEIGHT, HEIGHT_WITH_DISK = 300, 380
WIDTHS = {1: 520, 2: 250}
NARROW = 180
CAPTION = "Bars: the moment when RAM was fullest."
DISK_CAPTION = " Below the line: on disk, not in RAM, on the same scale."


@dataclass(frozen=True)
class _Range:
    """What the shared axis spans, in bytes: RAM upwards, disk downwards."""

    ram: float
    disk: float


def memory_svg(
    series: Mapping[str, Sequence[Reading]],
    *,
    title: str,
    limit_bytes: int | None = None,
    prediction_bytes: int | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """Memory over time, stacked by kind: one panel for each of `series`, on one shared axis of bytes, as an <svg> element.

    Above the zero line is RAM; below it, on the same scale, what the optimizer holds on disk. `limit_bytes` and
    `prediction_bytes` are drawn as lines. `notes` says what became of a run, by its name. Time runs from each series' own
    first reading, on an axis of its own. Raises ValueError when there is no series.
    """
    if not series:
        raise ValueError("memory_svg: no series to draw; give at least one, {name: readings}")
    text = clean(
        memory_text(series, limit_bytes=limit_bytes, prediction_bytes=prediction_bytes, notes=notes),
    )
    title = clean(title)
    lines = [
        Line(f"limit {byte_label(limit_bytes)}", limit_bytes, "limit") if limit_bytes is not None else None,
        Line(f"your prediction {byte_label(prediction_bytes)}", prediction_bytes, "guess")
        if prediction_bytes is not None
        else None,
    ]
    drawn = [line for line in lines if line is not None]
    span = _spanned(series, drawn)
    # Of what is drawn, so that two pictures on one page do not use each other's hatches, and the same data is the same file.
    mark = "m" + hashlib.sha256(f"{title}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:10]
    width = WIDTHS.get(len(series), NARROW)
    whole = LEFT + len(series) * (width + BESIDE + GAP) - GAP + RIGHT
    plotted = HEIGHT_WITH_DISK if span.disk else HEIGHT
    height = TOP + plotted + 62
    parts = [_text(LEFT, 26, title, "ink", size=17, weight="bold")]
    axis = TOP + plotted * span.ram / (span.ram + span.disk)
    frame = Frame(0, TOP, width, plotted, axis, (axis - TOP) / span.ram, mark)
    parts += _axis(frame, span, whole)
    for number, (name, readings) in enumerate(series.items()):
        here = frame.at(LEFT + number * (width + BESIDE + GAP))
        note = clean((notes or {}).get(name, ""))
        parts += panel(here, clean(name), readings, note, drawn, labelled=number == 0)
    parts.append(_text(LEFT, height - 12, CAPTION + (DISK_CAPTION if span.disk else ""), "faint", size=12))
    hatches = tiles(mark, {style: style.kind for style in (*STACK, DISK)})
    return document(mark, "memory-plot", whole, height, title, text, hatches, "".join(parts))


def _spanned(series: Mapping[str, Sequence[Reading]], lines: list[Line]) -> _Range:
    peaks = [fullest(readings).ram for readings in series.values() if readings] + [line.nbytes for line in lines]
    disk = max((reading.optimizer_disk for readings in series.values() for reading in readings), default=0)
    return _Range(max([*peaks, 1]) * 1.1, disk * 1.04)


def _axis(frame: Frame, span: _Range, whole: float) -> list[str]:
    """The grid with its figures, and which side of the zero line is what."""
    marks = ticks(max(span.ram, span.disk))
    parts = []
    for value in [-value for value in marks[1:] if value <= span.disk] + [value for value in marks if value <= span.ram]:
        y = frame.y(value)
        parts.append(
            f'<path class="grid" d="M{LEFT} {y:.1f}H{whole - RIGHT}" stroke="{LIGHT.grid}" stroke-width="1" fill="none"/>'
        )
        parts.append(_text(LEFT - 8, y + 4, byte_label(value), "faint", size=12, anchor="end"))
    parts.append(_side(14, (frame.top + frame.axis) / 2, "in RAM"))
    if span.disk:
        parts.append(_side(14, (frame.axis + frame.top + frame.height) / 2, "on disk"))
    return parts


def _side(x: float, y: float, label: str) -> str:
    return (
        f'<text class="ink" transform="translate({x:.1f} {y:.1f}) rotate(-90)" text-anchor="middle" font-size="12" '
        f'fill="{LIGHT.ink}">{escape(label)}</text>'
    )


def _text(x: float, y: float, text: str, role: str, *, size: int, anchor: str = "start", weight: str = "normal") -> str:
    fill = getattr(LIGHT, role)
    return (
        f'<text class="{role}" x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{fill}">{escape(text)}</text>'
    )
