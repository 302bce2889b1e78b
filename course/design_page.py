"""A training on one page: the plan, what it takes, the targets that a run is held to, and what is not known yet."""

from __future__ import annotations

import math
import textwrap
from dataclasses import replace
from typing import Any

from offload_lab.hardware import Hardware
from offload_lab.health.targets import Targets
from offload_lab.plan import TIERS, Plan
from offload_lab.planner import plan, readable
from quizzes.say import _

_WIDE = 98


def plans(model: Any, machine: Hardware, tokens: float, **load: Any) -> dict[str, Plan]:
    """The best plan for each tier that the state may be in on `machine`; `load` as `plan` takes it.

    Raises ValueError naming what is wrong, as `plan` does.
    """
    there = ["gpu"] if machine.gpus else []
    there += ["ram"] + (["disk"] if machine.disk is not None else [])
    return {state: plan(model, machine, state=state, run_tokens=tokens, **load) for state in there}


def line(state: str, made: Plan) -> str:
    """One plan in a line."""
    verdict = _("fits") if made.fits else _("does not fit")
    held = ", ".join(f"{tier} {readable(made.total(tier))}" for tier in TIERS if made.total(tier))
    said = f"{state:5}{verdict:13}{held}"
    if not made.fits or made.seconds_per_step is None or made.time is None:
        return said
    cost = "" if made.time.run_cost is None else _(", ${cost:,.0f} a run").format(cost=made.time.run_cost)
    return said + _("; {seconds:.3g} s a step{cost}").format(seconds=made.seconds_per_step, cost=cost)


def targets(made: Plan, margin: float) -> Targets:
    """What a run of `made` is held to: each prediction and `margin` (a share, 0.2 for 20 %) on top.

    Raises ValueError for a margin below 0 or one that is not finite, and for a plan that predicts nothing.
    """
    if not math.isfinite(margin) or margin < 0:
        raise ValueError(_("margin={margin!r}: a share of at least 0 is needed, 0.2 for 20 %").format(margin=margin))
    given = Targets.from_dict(made.to_dict())
    wider = {name: getattr(given, name) for name in ("seconds_per_step", "cost") if getattr(given, name) is not None}
    whole = ("peak_gpu_bytes", "peak_ram_bytes", "disk_bytes")
    wider = {name: value * (1 + margin) for name, value in wider.items()}
    for name in whole:
        if getattr(given, name) is not None:
            tier = name.removeprefix("peak_").removesuffix("_bytes")
            wanted = int(getattr(given, name) * (1 + margin))
            # No target is wider than the machine.
            wider[name] = min(wanted, made.capacity.get(tier, wanted))
    return replace(given, **wider)


def page(made: Plan, margin: float = 0.2, stop: str = "", back: str = "") -> str:
    """The page. `stop`: when the run is given up; `back`: how one comes back to the last good step; both in your words."""
    load, time = made.model, made.time
    title = _("{model}, {parameters:,} parameters in {dtype}, on {machine}")
    lines = [title.format(model=load.name, parameters=load.parameters, dtype=load.dtype, machine=made.hardware.name)]
    if not made.fits:
        return "\n".join([*lines, _wrapped(_("It does not fit. {why}").format(why=made.why))])
    said = _("Plan (predicted): {placement}; checkpointing: {way}; runs with {system}.")
    lines += ["", _wrapped(said.format(placement=made.placement, way=load.checkpointing, system=made.placement.runs_with))]
    for tier in TIERS:
        if made.total(tier):
            said = _("  {tier}: {size} at the peak, of {room} ({source})")
            source = made.capacity_from.get(tier, "?")
            lines.append(
                said.format(tier=tier, size=readable(made.total(tier)), room=readable(made.capacity[tier]), source=source)
            )
    if time is not None and made.seconds_per_step is not None:
        said = _("  a step: {seconds:.3g} s for {tokens:,} tokens; longest lane: {lane}")
        lines.append(said.format(seconds=made.seconds_per_step, tokens=time.tokens, lane=time.bound_by))
    lines += ["", _("Targets, {margin:.0%} above the prediction:").format(margin=margin)]
    lines += [
        f"  {name}: {_shown(name, value)}" for name, value in targets(made, margin).to_dict().items() if _set(name, value)
    ]
    lines += ["", _("Given up when: {stop}").format(stop=stop.strip() or "…")]
    lines.append(_("The way back: {back}").format(back=back.strip() or "…"))
    lines += ["", _("Not known yet:")]
    lines += [_wrapped(f"- {warning}") for warning in made.warnings] or [_("- nothing that the planner knows of")]
    return "\n".join(lines)


def _set(name: str, value: Any) -> bool:
    return value is not None and name not in ("loss_tolerance", "loss_steps")


def _shown(name: str, value: float) -> str:
    if name.endswith("bytes"):
        return readable(int(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDE, subsequent_indent="  ", break_on_hyphens=False)
