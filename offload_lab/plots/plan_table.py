"""Plans side by side: whether each fits, how long a step takes, what it holds where, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload_lab.plots.checks import amount, amounts
from offload_lab.plots.drawing import MARGIN, NORMAL, SMALL, WIDTH, Drawing
from offload_lab.plots.lettering import named, wrapped
from offload_lab.plots.palette import LANES, Style, styles_of
from offload_lab.plots.runs import lane_label
from offload_lab.plots.scale import byte_label, second_label
from offload_lab.plots.shown import Shown, Source, checked_source
from offload_lab.plots.tables import Table

NAME, TIME, BYTES, COST = MARGIN, 196, 406, 636
TIME_WIDE, BYTES_WIDE, COST_WIDE = 190, 206, 110
SHOWN, TIERS = 30, 6
FIELDS = {"name", "seconds", "bytes", "cost", "fits", "why"}
# Named beside every bar, so that they need no colours of their own, which would be taken for lanes.
BYTES_LOOK = Style("bytes", "bytes", "#999999", "", "")
MONEY = Style("money", "money", "#CC79A7", "M0,4 H8", "-")


@dataclass(frozen=True)
class PlanRow:
    """One plan: seconds a step of each lane, bytes by tier, money, and whether it fits (None where nobody said)."""

    name: str
    seconds: Mapping[str, float]
    nbytes: Mapping[str, float]
    cost: float | None
    fits: bool | None
    why: str

    @property
    def overlapped(self) -> float:
        """Seconds a step at least: the busiest lane, with all others beside it."""
        return max(self.seconds.values(), default=0.0)

    @property
    def sequential(self) -> float:
        """Seconds a step at most: each lane after the other."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class PlanComparison(Shown):
    """What `plans` returns."""

    rows: Sequence[PlanRow]
    source: Source
    currency: str
    cost_of: str
    title: str

    def summary(self) -> list[str]:
        if not self.rows:
            return ["No plans to compare."]
        said = [f"{len(self.rows)} plan{'s' * (len(self.rows) != 1)}, {self.source}; costs are of {named(self.cost_of)}."]
        fitting = [row for row in self.rows if row.fits is not False]
        if not fitting:
            return [*said, "None of them fits."]
        if len(fitting) < len(self.rows):
            said.append(f"Not fitting: {', '.join(named(row.name) for row in self.rows if row.fits is False)}.")
        timed = [row for row in fitting if row.seconds]
        if timed:
            fastest = min(timed, key=lambda row: row.overlapped)
            said.append(f"Fastest: {named(fastest.name)}, {second_label(fastest.overlapped)} a step at least.")
        priced = [row for row in fitting if row.cost is not None]
        if priced:
            cheapest = min(priced, key=lambda row: row.cost or 0.0)
            said.append(f"Cheapest: {named(cheapest.name)}, {self._money(cheapest.cost)}.")
        return said

    def tables(self) -> list[Table]:
        lanes = list(styles_of([lane for row in self.rows for lane in row.seconds], LANES))
        tiers = list(dict.fromkeys(tier for row in self.rows for tier in row.nbytes))
        steps = ("a step, overlapped", "a step, not overlapped")
        headers = ("plan", "fits", *steps, *map(lane_label, lanes), *map(named, tiers), "cost")
        rows = [
            (
                named(row.name),
                _fits(row),
                second_label(row.overlapped) if row.seconds else "-",
                second_label(row.sequential) if row.seconds else "-",
                *(second_label(row.seconds[lane]) if lane in row.seconds else "-" for lane in lanes),
                *(byte_label(row.nbytes[tier]) if tier in row.nbytes else "-" for tier in tiers),
                self._money(row.cost),
            )
            for row in self.rows
        ]
        return [Table(f"Plans, {self.source}; costs are of {named(self.cost_of)}", headers, rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, self.summary()[0])
        shown = self.rows[:SHOWN]
        if shown:
            self._headers(drawing)
        styles = styles_of([lane for row in shown for lane in row.seconds], LANES)
        slowest = max((row.sequential for row in shown), default=0.0)
        largest = max((value for row in shown for value in row.nbytes.values()), default=0.0)
        dearest = max((row.cost or 0.0 for row in shown), default=0.0)
        for row in shown:
            self._row(drawing, row, styles, (slowest, largest, dearest))
        if shown:
            drawing.key((style, lane_label(name)) for name, style in list(styles.items())[:SHOWN])
            drawing.paragraph(
                "A step: the lanes after each other (nothing overlapped); the thick mark is the busiest lane, below which "
                "no overlap can bring it."
            )
        for remark in self.summary()[1:]:
            drawing.paragraph(remark)
        if len(self.rows) > SHOWN:
            drawing.paragraph(f"{len(self.rows) - SHOWN} more are in the table.")
        return drawing.document(self.summary(), "plans-plot")

    def _headers(self, drawing: Drawing) -> None:
        y = drawing.below + 14
        for x, words, room in (
            (NAME, "plan", TIME - NAME - 10),
            (TIME, "a step", TIME_WIDE),
            (BYTES, "bytes by tier", BYTES_WIDE),
            (COST, f"cost of {named(self.cost_of)}", COST_WIDE),
        ):
            drawing.text(x, y, words, room=room, role="faint")
        drawing.below = y + 6

    def _row(
        self,
        drawing: Drawing,
        row: PlanRow,
        styles: Mapping[str, Style],
        largest: tuple[float, float, float],
    ) -> None:
        drawing.line(f"M{MARGIN} {drawing.below:.1f}H{WIDTH - MARGIN}", "grid")
        top = drawing.below + 8
        room = TIME - NAME - 12
        y = top
        for line in wrapped(named(row.name), room, NORMAL, 2, bold=True):
            y += 15
            drawing.text(NAME, y, line, size=NORMAL, bold=True)
        if row.fits is not None:
            y += 16
            drawing.text(NAME, y, "✓ fits" if row.fits else "✗ does not fit", room=room, bold=not row.fits)
        for line in wrapped(row.why, room, SMALL, 3):
            y += 14
            drawing.text(NAME, y, line, role="faint")
        ends = [y + 4, self._time(drawing, row, styles, top, largest[0]), self._bytes(drawing, row, top, largest[1])]
        if row.cost is not None:
            drawing.text(COST, top + 14, self._money(row.cost), room=COST_WIDE, size=NORMAL, bold=True)
            drawing.block(MONEY, COST, top + 20, COST_WIDE * (row.cost / largest[2]) if largest[2] > 0 else 0, 12)
            ends.append(top + 36)
        else:
            drawing.text(COST, top + 14, "no price", role="faint")
        drawing.below = max(ends) + 8

    def _time(self, drawing: Drawing, row: PlanRow, styles: Mapping[str, Style], top: float, slowest: float) -> float:
        if not row.seconds:
            drawing.text(TIME, top + 14, "no times", role="faint")
            return top + 18
        scale = TIME_WIDE / slowest if slowest > 0 else 0.0
        fast, slow = second_label(row.overlapped), second_label(row.sequential)
        words = fast if fast == slow else f"{fast} to {slow}"
        drawing.text(TIME, top + 14, words, room=TIME_WIDE, size=NORMAL, bold=True)
        x = float(TIME)
        for lane in (lane for lane in styles if lane in row.seconds):
            wide = row.seconds[lane] * scale
            if wide > 0:
                drawing.block(styles[lane], x, top + 22, wide, 16)
            x += wide
        mark = TIME + row.overlapped * scale
        drawing.line(f"M{mark:.1f} {top + 19:.1f}v22", thick=3, halo=True)
        return top + 44

    def _bytes(self, drawing: Drawing, row: PlanRow, top: float, largest: float) -> float:
        if not row.nbytes:
            drawing.text(BYTES, top + 14, "no bytes", role="faint")
        listed = list(row.nbytes)
        for number, tier in enumerate(listed[:TIERS]):
            y = top + 2 + 30 * number
            words = f"{named(tier)} {byte_label(row.nbytes[tier])}"
            drawing.text(BYTES, y + 12, words, room=BYTES_WIDE)
            drawing.block(BYTES_LOOK, BYTES, y + 16, BYTES_WIDE * (row.nbytes[tier] / largest) if largest > 0 else 0, 9)
        end = top + 30 * len(listed[:TIERS]) + 2
        if len(listed) > TIERS:
            drawing.text(BYTES, end + 12, f"{len(listed) - TIERS} more tiers", role="faint")
            end += 16
        return end

    def _money(self, cost: float | None) -> str:
        if cost is None:
            return "-"
        if cost < 999_999.995:
            return f"{cost:,.2f} {self.currency}"
        return f"{cost / 1e6:.4g} million {self.currency}" if cost < 1e12 else f"{cost:.3g} {self.currency}"


def plans(
    rows: Sequence[Mapping[str, Any]],
    *,
    source: Source = "predicted",
    currency: str = "USD",
    cost_of: str = "a run",
    title: str = "Plans compared",
) -> PlanComparison:
    """Plans side by side: time a step, bytes by tier, and money.

    Each row: {"name": "24 GB card and NVMe", "seconds": {lane: seconds a step}, "bytes": {tier: bytes}, "cost": money}, and
    if it is known "fits": bool and "why": str. "seconds", "bytes" and "cost" may be missing. `cost_of` says of what the money
    is: a run, an hour, a million tokens. Raises ValueError for an unknown or missing field, and for a number that is negative
    or not finite.
    """
    checked = []
    for number, row in enumerate(rows):
        unknown = [str(name) for name in row if name not in FIELDS]
        if unknown or "name" not in row:
            told = f"has no field {', '.join(map(named, unknown))}" if unknown else "needs a name"
            raise ValueError(f"row {number} of the plans {told}; the fields are {', '.join(sorted(FIELDS))}")
        name = str(row["name"])
        cost = None if row.get("cost") is None else amount(row["cost"], f"the cost of {named(name)!r}", named(currency))
        checked.append(
            PlanRow(
                name,
                amounts(row.get("seconds") or {}, f"{named(name)}: the time of lane", "seconds"),
                amounts(row.get("bytes") or {}, f"{named(name)}: the bytes of tier", "bytes"),
                cost,
                row.get("fits"),
                named(row["why"]) if row.get("why") else "",
            )
        )
    return PlanComparison(checked, checked_source(source), named(currency), cost_of, title)  # type: ignore[arg-type]


def _fits(row: PlanRow) -> str:
    said = {True: "yes", False: "no", None: "-"}[row.fits]
    return f"{said} ({row.why})" if row.why else said
