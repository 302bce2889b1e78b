"""What a question may ask to be drawn, by name: the trace or plan behind it, and the picture of it. Pure: no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, model_validator

from offload_lab import catalogue
from offload_lab.hardware import Figure
from offload_lab.plan import Plan
from offload_lab.planner import plan
from offload_lab.plots.palette import DISK, KINDS, LANES, Style
from quizzes.figures.bars import Bar, Bars, Panel
from quizzes.figures.columns import Columns
from quizzes.figures.picture import Picture
from quizzes.figures.residency import Residency
from quizzes.figures.runs import LANES_SHOWN, Steps, lane_name
from quizzes.figures.timeline import Timeline
from quizzes.figures.trainings import Moments, Way, kind_name
from quizzes.say import _
from quizzes.values import Strict

# Not the colour of any lane or kind: these bars are told by their names.
_PLAIN = Style("plain", "plain", "#999999", "", "")


def timeline(given: Mapping[str, Any], locale: str) -> Picture:
    steps = Steps.model_validate(given)
    title = _("One step over time") if steps.steps == 1 else _("{count} steps over time").format(count=steps.steps)
    return Timeline(title, locale, steps)


def residency(given: Mapping[str, Any], locale: str) -> Picture:
    steps = Steps.model_validate(given)
    title = _("{count} partitions, {buffers} buffers").format(count=steps.partitions, buffers=steps.buffers)
    return Residency(title, locale, steps)


def roofline(given: Mapping[str, Any], locale: str) -> Picture:
    """Of one step: what each lane needs alone, and how long the step takes."""
    steps = Steps.model_validate(given)
    simulated = steps.simulation()
    bars = [Bar(lane_name(lane), {lane: simulated.bounds.lanes[lane] * 1000}) for lane in LANES_SHOWN]
    told = _("Simulated. Each bar is what one lane needs for its own tasks. The dashed line is the whole step.")
    panel = Panel(_("What each lane needs"), _("{number} ms"), bars, (_("the step"), simulated.makespan * 1000))
    return Bars(_("One step and its lanes"), locale, told, (panel,), LANES)


class Ways(Strict):
    """`ways`: each one row a tier. `letters`: rows are called P, Q, R, …, not by what they are."""

    ways: Annotated[tuple[Way, ...], Field(min_length=1, max_length=6)]
    letters: bool = False


def bytes_per_parameter(given: Mapping[str, Any], locale: str) -> Picture:
    ways = Ways.model_validate(given)
    looks = {kind: KINDS[kind] for kind in ("weights", "gradients", "master", "moments")} | {"optimizer state": DISK}
    names = {kind: kind_name(kind) for kind in looks}
    bars = []
    for place, way in enumerate(ways.ways):
        tiers = way.by_tier()
        named = chr(ord("P") + place) if ways.letters else _way(way)
        for tier, kinds in tiers.items():
            where = {"RAM": _("in RAM"), "disk": _("on disk")}[tier]
            parts = {name: kinds[kind] for kind, name in names.items() if kind in kinds}
            bars.append(Bar(_("{way}, {where}").format(way=named, where=where) if len(tiers) > 1 else named, parts))
    told = _("Predicted, between two steps. Bytes for each parameter; buffers and activations are left out.")
    used = {name: looks[kind] for kind, name in names.items() if any(name in bar.parts for bar in bars)}
    panel = Panel(_("Bytes a parameter"), "{number}", bars)
    return Bars(_("Bytes a parameter"), locale, told, (panel,), used)


def _way(way: Way) -> str:
    return {
        "adamw": _("AdamW"),
        "ram": _("OffloadAdamW, RAM tier"),
        "disk": _("disk tier"),
    }[way.optimizer]


def memory(given: Mapping[str, Any], locale: str) -> Picture:
    moments = Moments.model_validate(given)
    title = _("{count} million {dtype} parameters, AdamW").format(
        count=Picture("", locale).number(moments.parameters), dtype=moments.dtype
    )
    return Columns(title, locale, moments)


class Machines(Strict):
    """Machines of the catalogue with what an hour of each costs in dollars; `parameters` in millions, `batch` in sequences of
    `sequence` tokens."""

    machines: Annotated[tuple[str, ...], Field(min_length=2, max_length=5)]
    prices: tuple[Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)], ...]
    parameters: Annotated[int, Field(ge=1, le=100_000)]
    batch: Annotated[int, Field(ge=1, le=1024)] = 8
    sequence: Annotated[int, Field(ge=1, le=65_536)] = 1024

    @model_validator(mode="after")
    def _is_whole(self) -> Machines:
        if len(self.prices) != len(self.machines):
            raise ValueError(f"prices: {len(self.machines)} are needed, one for each machine, not {len(self.prices)}")
        for made in self.plans():
            if not made.fits or not made.seconds_per_step:
                raise ValueError(f"machines: the training does not fit on {made.hardware.name}, or its time is not known")
        return self

    def plans(self) -> tuple[Plan, ...]:
        return _planned(self)


@lru_cache(maxsize=64)
def _planned(machines: Machines) -> tuple[Plan, ...]:
    # No price of the table: an instructor may edit that, and a key must not change with it.
    hardware = [
        replace(catalogue.machine(name, {}), price=Figure(price, "assumed"))
        for name, price in zip(machines.machines, machines.prices, strict=True)
    ]
    return tuple(plan(machines.parameters * 10**6, one, batch=machines.batch, sequence=machines.sequence) for one in hardware)


def plans(given: Mapping[str, Any], locale: str) -> Picture:
    machines = Machines.model_validate(given)
    made = machines.plans()
    seconds = [Bar(one.hardware.name, {"": one.seconds_per_step or 0.0}) for one in made]
    prices = [Bar(name, {"": price}) for name, price in zip(machines.machines, machines.prices, strict=True)]
    told = _("Predicted. The same training on each machine: how long one of its steps takes, and what an hour costs.")
    panels = (
        Panel(_("Seconds a step"), _("{number} s"), seconds),
        Panel(_("Dollars an hour"), _("${number}"), prices),
    )
    return Bars(_("Machines compared"), locale, told, panels, {"": _PLAIN})


SOURCES: dict[str, Callable[[Mapping[str, Any], str], Picture]] = {
    "timeline": timeline,
    "residency": residency,
    "memory": memory,
    "roofline": roofline,
    "bytes": bytes_per_parameter,
    "plans": plans,
}
"""Source -> what draws it from its parameters, with numbers as a locale writes them. Raises pydantic's ValidationError."""
