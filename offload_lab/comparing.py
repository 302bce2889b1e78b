"""One training on several machines: seconds, hours and money of each, side by side. Pure: no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offload_lab.cautions import emulated
from offload_lab.hardware import Hardware
from offload_lab.plan import Plan
from offload_lab.plan_words import size, span
from offload_lab.planner import plan


def compare(model: Any, machines: Sequence[Hardware], run_tokens: float, **options: Any) -> list[Plan]:
    """A plan for each machine, the cheapest run first; what does not fit, or has no price, comes last.

    `model` and `options` are those of `plan`; `run_tokens` are the tokens of the whole run. Every machine gets the same number
    of tokens a step: with several accelerators, `batch` is what each of them is given, and fewer steps are made.
    Raises ValueError as `plan` does.
    """
    plans = [plan(model, hardware, run_tokens=run_tokens, **options) for hardware in machines]

    def order(made: Plan) -> tuple[bool, bool, float]:
        time = made.time
        cost = None if time is None else time.run_cost
        hours = None if time is None else time.run_hours
        return not made.fits, cost is None, cost if cost is not None else hours if hours is not None else float("inf")

    return sorted(plans, key=order)


def table(plans: Sequence[Plan]) -> str:
    """One line a plan, and beneath them what formats are emulated; all figures are predicted."""
    width = max(len(made.hardware.name) for made in plans)
    lines = [f"{'predicted':{width}}  {'a step':>9}  {'a run':>12}  {'cost':>12}  {'on it':>10}  how"]
    for made in plans:
        time = made.time
        if not made.fits or time is None:
            lines.append(f"{made.hardware.name:{width}}  {'does not fit' if not made.fits else 'time not known'}")
            continue
        hours = "" if time.run_hours is None else f"{time.run_hours:,.1f} h"
        cost = "no price" if time.run_cost is None else f"${time.run_cost:,.2f}"
        step = span(made.seconds_per_step or 0.0)
        held = size(made.total("gpu") or made.total("ram"))
        way = ", activations again" if made.model.checkpointing == "full" else ""
        lines.append(f"{made.hardware.name:{width}}  {step:>9}  {hours:>12}  {cost:>12}  {held:>10}  {made.placement}{way}")
    told = dict.fromkeys(text for made in plans for text in emulated(made.model, made.hardware))
    return "\n".join([*lines, *(f"! {text}." for text in told)])
