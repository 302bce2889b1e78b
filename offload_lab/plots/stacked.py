"""Memory over time by tier and kind: a panel for each tier, its kinds stacked, its fullest moment as a bar with figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from offload_lab.plots.checks import amount, amounts
from offload_lab.plots.drawing import MARGIN, NORMAL, SMALL, WIDTH, Drawing
from offload_lab.plots.lettering import cut, named, width_of
from offload_lab.plots.palette import KINDS, STACK, Style, styles_of
from offload_lab.plots.scale import byte_label, second_label, spread, ticks
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table

if TYPE_CHECKING:
    from offload_lab.meter import Reading

LEFT, BESIDE, TALL, BAR, LABEL = 84, 216, 150, 16, 17
BUCKETS, LABELS, PANELS = 160, 8, 12


@dataclass(frozen=True)
class Tier:
    """Bytes of each kind at each moment."""

    name: str
    kinds: Mapping[str, Sequence[float]]
    limit: float | None = None

    def total(self, moment: int) -> float:
        return sum(values[moment] for values in self.kinds.values())


@dataclass(frozen=True)
class MemoryByTier(Shown):
    """What `memory` returns. `seconds` are counted from the first moment."""

    seconds: Sequence[float]
    tiers: Sequence[Tier]
    source: Source
    title: str
    _peaks: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def peak(self, tier: Tier) -> int:
        """The first moment at which `tier` held the most."""
        if tier.name not in self._peaks:
            self._peaks[tier.name] = max(range(len(self.seconds)), key=tier.total)
        return self._peaks[tier.name]

    def summary(self) -> list[str]:
        if not self.seconds or not self.tiers:
            return [f"{self.source.capitalize()}: nothing."]
        return [f"{self.source.capitalize()}, over {second_label(self.seconds[-1])}.", *map(self._said, self.tiers[:PANELS])]

    def _said(self, tier: Tier) -> str:
        moment = self.peak(tier)
        kinds = sorted(((values[moment], kind) for kind, values in tier.kinds.items() if values[moment]), reverse=True)[:LABELS]
        listed = ", ".join(f"{named(kind)} {byte_label(value)}" for value, kind in kinds)
        over = tier.limit is not None and tier.total(moment) > tier.limit
        limit = "" if tier.limit is None else f" Limit: {byte_label(tier.limit)}{', which it passed' if over else ''}."
        of = f": {listed}" if listed else ""
        most = f"at most {byte_label(tier.total(moment))}, at {second_label(self.seconds[moment])}"
        return f"{named(tier.name)}: {most}{of}.{limit}"

    def tables(self) -> list[Table]:
        if not self.seconds:
            return []
        rows = []
        for tier in self.tiers:
            moment = self.peak(tier)
            rows += [
                (f"{named(tier.name)}, {named(kind)}", *map(byte_label, (values[0], values[moment], max(values), values[-1])))
                for kind, values in tier.kinds.items()
            ]
            at = (0, moment, moment, len(self.seconds) - 1)
            rows.append((f"{named(tier.name)}, together", *(byte_label(tier.total(moment)) for moment in at)))
        headers = ("", "at first", "when the tier was fullest", "at most", "at last")
        return [Table(f"Bytes, {self.source}", headers, rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        if self.seconds:
            for tier in self.tiers[:PANELS]:
                self._panel(drawing, tier, styles_of(self._kinds(), KINDS))
        if len(self.tiers) > PANELS:
            drawing.paragraph(f"{len(self.tiers) - PANELS} more tiers are in the table.")
        if self.seconds and self.tiers:
            drawing.paragraph("Bars: the moment at which the tier was fullest. Each tier has a scale of its own.")
        return drawing.document(self.summary(), "memory-by-tier-plot")

    def plotly(self) -> Any:
        """The same as a plotly Figure, with figures under the pointer; thinned as the picture is."""
        from offload_lab.plots.plotly_stacked import figure

        return figure(self)

    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(kind for tier in self.tiers for kind in tier.kinds))

    def _panel(self, drawing: Drawing, tier: Tier, styles: dict[str, Style]) -> None:
        drawing.below += 10
        peak = tier.total(self.peak(tier))
        drawing.text(MARGIN, drawing.below + 12, named(tier.name), room=WIDTH - 2 * MARGIN, size=NORMAL, bold=True)
        top, width = drawing.below + 28, WIDTH - LEFT - BESIDE
        bottom = top + TALL
        largest = max(peak, tier.limit or 0.0)
        largest = largest * 1.08 if largest > 0 else 1.0
        for value in ticks(largest if largest > 1 else 0.0, 4):
            y = bottom - TALL * (value / largest)
            drawing.line(f"M{LEFT} {y:.1f}H{LEFT + width + 8 + BAR}", "grid")
            drawing.text(LEFT - 8, y + 4, byte_label(value), role="faint", anchor="end")
        moments = thinned([tier.total(moment) for moment in range(len(self.seconds))], BUCKETS)
        span = self.seconds[-1]
        xs = [LEFT + width * (self.seconds[moment] / span if span > 0 else 0.0) for moment in moments]
        if len(set(xs)) == 1:  # one moment is drawn as a level, not as a line without width
            moments, xs = [moments[-1]] * 2, [float(LEFT), float(LEFT + width)]
        order = [kind for kind in styles if kind in tier.kinds]
        floor = [0.0] * len(moments)
        for kind in order:
            roof = [low + tier.kinds[kind][moment] for low, moment in zip(floor, moments, strict=True)]
            if roof != floor:
                upper = [f"{x:.1f},{bottom - TALL * (value / largest):.1f}" for x, value in zip(xs, roof, strict=True)]
                lower = [f"{x:.1f},{bottom - TALL * (value / largest):.1f}" for x, value in zip(xs, floor, strict=True)]
                drawing.area(styles[kind], f"M{' '.join([*upper, *lower[::-1]])}Z", edge=0.8 if len(moments) < BUCKETS else 0)
            floor = roof
        self._bar(drawing, tier, styles, order, LEFT + width + 8, top, bottom, largest)
        drawing.axis(LEFT, width, bottom, bottom, span, second_label)
        if tier.limit is not None:
            y = bottom - TALL * (tier.limit / largest)
            drawing.line(f"M{LEFT} {y:.1f}H{LEFT + width + 8 + BAR}", "limit", thick=2, dashes="8 5", halo=True)
            words = f"limit {byte_label(tier.limit)}"
            drawing.text(LEFT + 6, y + (15 if y < top + 12 else -5), words, bold=True, halo=True)
        drawing.below = bottom + 20

    def _bar(
        self,
        drawing: Drawing,
        tier: Tier,
        styles: dict[str, Style],
        order: list[str],
        x: float,
        top: float,
        bottom: float,
        largest: float,
    ) -> None:
        """The fullest moment, each kind with its name and bytes beside it, the largest ones if there are many."""
        moment, scale = self.peak(tier), TALL / largest
        named_kinds = sorted(order, key=lambda kind: -tier.kinds[kind][moment])[:LABELS]
        pieces: list[tuple[float, str]] = []
        floor = bottom
        for kind in order:
            high = tier.kinds[kind][moment] * scale
            if tier.kinds[kind][moment] > 0:
                drawing.block(styles[kind], x, floor - high, BAR, high)
                if kind in named_kinds:
                    pieces.insert(0, (floor - high / 2, kind))
            floor -= high
        drawing.text(x + BAR, floor - 5, byte_label(tier.total(moment)), bold=True, anchor="end", halo=True)
        rows = spread([middle for middle, _ in pieces], LABEL, top + 6, bottom + 4)
        for (middle, kind), row in zip(pieces, rows, strict=True):
            drawing.line(f"M{x + BAR:.1f} {middle:.1f}L{x + BAR + 8:.1f} {row:.1f}", thick=0.8)
            words = byte_label(tier.kinds[kind][moment])
            room = WIDTH - 8 - (x + BAR + 12)
            label = cut(named(styles[kind].label), room - width_of(f" {words}", SMALL), SMALL)
            drawing.text(x + BAR + 12, row + 4, f"{label} {words}")


def memory(
    seconds: Sequence[float],
    tiers: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    source: Source,
    limits: Mapping[str, float] | None = None,
    title: str = "Memory by tier",
) -> MemoryByTier:
    """Bytes over time, one panel a tier: {"RAM": {"weights": [...], "gradients": [...]}, "disk": {...}}.

    `seconds`: the moments, rising, of any clock; each kind has one number of bytes a moment. `limits`: bytes by tier, drawn as
    lines. `source` says where the figures are from; `tiers_of` makes both from a meter's readings. Raises ValueError for
    lists of other lengths, moments that fall, a number that is negative or not finite, and a limit of a tier that is not there.
    """
    moments = [float(moment) for moment in seconds]
    if any(not abs(moment) < float("inf") for moment in moments):
        raise ValueError("seconds holds a moment that is not finite")
    if any(later < earlier for earlier, later in pairwise(moments)):
        raise ValueError("seconds falls from one moment to the next: they have to rise")
    checked_limits = amounts(limits or {}, "the limit of tier", "bytes")
    unknown = [tier for tier in checked_limits if tier not in tiers]
    if unknown:
        given, known = ", ".join(map(named, unknown)), ", ".join(map(named, tiers))
        raise ValueError(f"limits names {given}, which is no tier; the tiers are {known}")
    checked = []
    for name, kinds in tiers.items():
        values = {}
        for kind, numbers in kinds.items():
            what = f"{named(kind)} in {named(name)}"
            if len(numbers) != len(moments):
                raise ValueError(f"{what} has {len(numbers)} numbers for {len(moments)} moments")
            values[kind] = [amount(value, what, "bytes") for value in numbers]
        checked.append(Tier(name, values, checked_limits.get(name)))
    shifted = [moment - moments[0] for moment in moments]
    return MemoryByTier(shifted, checked, checked_source(source), title)  # type: ignore[arg-type]


def tiers_of(readings: Sequence[Reading]) -> tuple[list[float], dict[str, dict[str, list[float]]]]:
    """(seconds, tiers) of a meter's readings, as `memory` takes them."""
    ram = {style.label: [float(getattr(reading, style.kind)) for reading in readings] for style in STACK}
    disk = {"optimizer state": [float(reading.optimizer_disk) for reading in readings]}
    tiers = {"RAM": ram} | ({"disk": disk} if any(disk["optimizer state"]) else {})
    return [reading.seconds for reading in readings], tiers


def thinned(totals: Sequence[float], buckets: int) -> list[int]:
    """At most 2 · `buckets` + 2 of the moments: the first and last, and the lowest and highest of each equal run of them."""
    if len(totals) <= 2 * buckets:
        return list(range(len(totals)))
    kept = {0, len(totals) - 1}
    for bucket in range(buckets):
        run = range(len(totals) * bucket // buckets, len(totals) * (bucket + 1) // buckets)
        kept |= {min(run, key=totals.__getitem__), max(run, key=totals.__getitem__)}
    return sorted(kept)
