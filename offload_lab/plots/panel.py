"""One panel of the memory plot: a run as stacked areas, and its fullest moment as a bar with names and figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from offload_lab.plots.palette import DISK, LIGHT, LIMIT, STACK, Style
from offload_lab.plots.scale import byte_label, fullest, spread, thinned, ticks

if TYPE_CHECKING:
    from offload_lab.meter import Reading

BAR, SPACE, LABELS = 16, 8, 108
BESIDE = SPACE + BAR + SPACE + LABELS
ROW = 31
"""A label is two rows of text high."""
CHARACTER, BOLD = 6.6, 9
"""About the widths of a character of 12 units, and of a bold one of 14, for wrapping and cutting."""
EDGE, CROWDED = 0.8, 0.8
"""How thick the edge of an area is; and above which share of the points that it may have it goes without: the edges of a
hundred spikes would hide what is between them."""


@dataclass(frozen=True)
class Line:
    """A horizontal line across the panels: the limit, or a prediction."""

    label: str
    nbytes: int
    role: str


@dataclass(frozen=True)
class Frame:
    """Where a panel lies, and its scale: `axis` is where zero bytes are, `per_byte` units of height a byte."""

    left: float
    top: float
    width: float
    height: float
    axis: float
    per_byte: float
    mark: str

    def y(self, nbytes: float) -> float:
        return self.axis - nbytes * self.per_byte

    def at(self, left: float) -> Frame:
        return replace(self, left=left)


def panel(
    frame: Frame, name: str, readings: Sequence[Reading], note: str, lines: Sequence[Line], *, labelled: bool
) -> list[str]:
    """The elements of one panel. `labelled`: whether its lines carry their labels, which once in a picture is enough."""
    room = frame.width + BESIDE
    parts = [_text(frame.left, frame.top - 38, _cut(name, room, BOLD), size=14, weight="bold")]
    for number, row in enumerate(_wrapped(note, int(room / CHARACTER))):
        parts.append(_text(frame.left, frame.top - 22 + 14 * number, row, role="faint", size=12))
    if readings:
        parts += _areas(frame, readings)
        parts += _bar(frame, readings)
        parts += _times(frame, readings[-1].seconds - readings[0].seconds)
    else:
        parts.append(_text(frame.left + 8, frame.axis - 10, "nothing was measured", role="faint", size=12))
    right = frame.left + frame.width
    parts.append(
        f'<path class="edge" d="M{frame.left:.1f} {frame.axis:.1f}H{right + SPACE + BAR:.1f}" stroke="{LIGHT.ink}" '
        'stroke-width="1.5" fill="none"/>'
    )
    return parts + _lines(frame, lines, labelled)


def _areas(frame: Frame, readings: Sequence[Reading]) -> list[str]:
    buckets = int(frame.width / 3)
    drawn = thinned(readings, buckets)
    edge = EDGE if len(drawn) < CROWDED * buckets else 0
    start, span = drawn[0].seconds, drawn[-1].seconds - drawn[0].seconds
    xs = [frame.left + frame.width * ((reading.seconds - start) / span if span else 0) for reading in drawn]
    if len(drawn) == 1 or not span:  # one moment is drawn as a level, not as a line without width
        drawn, xs = [drawn[-1], drawn[-1]], [frame.left, frame.left + frame.width]
    parts, floor = [], [0.0] * len(drawn)
    for style in STACK:
        roof = [low + getattr(reading, style.kind) for low, reading in zip(floor, drawn, strict=True)]
        if roof != floor:
            parts.append(_area(frame, style, xs, floor, roof, edge))
        floor = roof
    disk = [-float(reading.optimizer_disk) for reading in drawn]
    if any(disk):
        parts.append(_area(frame, DISK, xs, [0.0] * len(disk), disk, EDGE))
    return parts


def _area(frame: Frame, style: Style, xs: list[float], floor: list[float], roof: list[float], edge: float) -> str:
    points = [f"{x:.1f},{frame.y(value):.1f}" for x, value in zip(xs, roof, strict=True)]
    back = [f"{x:.1f},{frame.y(value):.1f}" for x, value in reversed(list(zip(xs, floor, strict=True)))]
    shape = f'<path fill="url(#{frame.mark}-{style.kind})" d="M{" ".join(points + back)}Z"/>'
    if not edge:
        return shape
    return f'{shape}<path class="edge" fill="none" stroke="{LIGHT.ink}" stroke-width="{edge}" d="M{" ".join(points)}"/>'


def _bar(frame: Frame, readings: Sequence[Reading]) -> list[str]:
    """The fullest moment as one bar, each kind with its name and bytes beside it."""
    top = fullest(readings)
    disk = max(reading.optimizer_disk for reading in readings)
    x = frame.left + frame.width + SPACE
    pieces: list[tuple[Style, float, float, int]] = []  # style, upper edge, lower edge, bytes
    floor = 0
    for style in STACK:
        nbytes = getattr(top, style.kind)
        if nbytes:
            pieces.insert(0, (style, frame.y(floor + nbytes), frame.y(floor), nbytes))
        floor += nbytes
    if disk:
        pieces.append((DISK, frame.axis, frame.y(-disk), disk))
    wanted = [(upper + lower) / 2 for _, upper, lower, _ in pieces]
    rows = spread(wanted, ROW, frame.top + ROW / 2, frame.top + frame.height + 8)
    parts = [_text(x + BAR, frame.y(floor) - 6, byte_label(floor), size=12, weight="bold", anchor="end")]
    for (style, upper, lower, nbytes), middle, row in zip(pieces, wanted, rows, strict=True):
        parts.append(
            f'<rect class="edge" x="{x:.1f}" y="{upper:.1f}" width="{BAR}" height="{max(lower - upper, 0.5):.1f}" '
            f'fill="url(#{frame.mark}-{style.kind})" stroke="{LIGHT.ink}" stroke-width=".8"/>'
        )
        parts.append(
            f'<path class="edge" fill="none" stroke="{LIGHT.ink}" stroke-width=".8" '
            f'd="M{x + BAR:.1f} {middle:.1f}L{x + BAR + SPACE - 2:.1f} {row:.1f}"/>'
        )
        parts.append(_text(x + BAR + SPACE, row - 1, style.label, size=13))
        parts.append(_text(x + BAR + SPACE, row + 13, byte_label(nbytes), size=12, role="faint"))
    return parts


def _times(frame: Frame, span: float) -> list[str]:
    bottom = frame.top + frame.height
    parts = []
    for value in ticks(span, 3 if frame.width < 400 else 6):
        x = frame.left + frame.width * (value / span if span else 0)
        anchor = "start" if value == 0 else "middle"
        parts.append(f'<path class="edge" d="M{x:.1f} {bottom}v4" stroke="{LIGHT.ink}" stroke-width="1"/>')
        parts.append(_text(x, bottom + 17, f"{value:g} s", role="faint", size=12, anchor=anchor))
    return parts


def _lines(frame: Frame, lines: Sequence[Line], labelled: bool) -> list[str]:
    parts = []
    below = None
    for line in sorted(lines, key=lambda line: -line.nbytes):
        y = frame.y(line.nbytes)
        dashes, colour = ("8 5", LIMIT) if line.role == "limit" else ("2 4", LIGHT.ink)
        kind = "limit" if line.role == "limit" else "edge"
        right = frame.left + frame.width + SPACE + BAR
        path = f'd="M{frame.left:.1f} {y:.1f}H{right:.1f}" fill="none"'
        parts.append(f'<path class="halo" {path} stroke="{LIGHT.background}" stroke-width="4"/>')
        parts.append(f'<path class="{kind}" {path} stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
        if labelled:
            crowded = below is not None and y - below < 18
            parts.append(_text(frame.left + 6, y + (15 if crowded else -5), line.label, size=12, weight="bold", halo=True))
        below = y
    return parts


def _wrapped(text: str, columns: int, rows: int = 2) -> list[str]:
    """At most `rows` rows of whole words; what does not fit ends in an ellipsis (the text twin has it all)."""
    wrapped: list[str] = []
    for word in text.split():
        if wrapped and len(wrapped[-1]) + 1 + len(word) <= columns:
            wrapped[-1] += " " + word
        else:
            wrapped.append(word)
    if len(wrapped) > rows:
        wrapped[rows - 1 :] = [" ".join(wrapped[rows - 1 :])]
    return [row if len(row) <= columns else row[: columns - 1] + "…" for row in wrapped]


def _cut(text: str, room: float, character: float) -> str:
    columns = int(room / character)
    return text if len(text) <= columns else text[: columns - 1] + "…"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int,
    role: str = "ink",
    anchor: str = "start",
    weight: str = "normal",
    halo: bool = False,
) -> str:
    fill = getattr(LIGHT, role)
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}"'
    shown = f'<text class="{role}" {place} fill="{fill}">{escape(text)}</text>'
    if not halo:
        return shown
    behind = f'<text class="halo" aria-hidden="true" {place} fill="none" stroke="{LIGHT.background}" stroke-width="4">'
    return f"{behind}{escape(text)}</text>{shown}"
