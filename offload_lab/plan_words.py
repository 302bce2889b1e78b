"""A plan in sentences: what does not fit and why, what had to move, what bounds the step. Pure: no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from offload_lab.between import SOURCE, Between, between
from offload_lab.hardware import Hardware
from offload_lab.models import ModelSpec
from offload_lab.plan import TIERS, Bytes, Load, Offload, Placement, Plan, Time

if TYPE_CHECKING:
    from offload_lab.placing import Placed

_PLACES = {"gpu": "the accelerator", "ram": "RAM", "disk": "the disk"}
_RUNS = {
    "torch": "torch.optim.AdamW runs it",
    "offload_lab": "OffloadAdamW runs it",
    "deepspeed": "DeepSpeed (ZeRO-Offload, ZeRO-Infinity) runs it; OffloadAdamW moves optimizer state only",
}
_MOMENTS = {
    "construction": "when it is built",
    "resume": "when it resumes",
    "steady": "between steps",
    "peak": "at the peak",
}


def size(nbytes: float) -> str:
    """26.0 GB: with a digit more than is read aloud, so that what does not fit by a little is seen not to."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(nbytes) >= scale:
            return f"{nbytes / scale:,.1f} {unit}"
    return f"{nbytes:.0f} bytes"


def span(seconds: float) -> str:
    """0.017 s, 4.2 s, 188 s, 95.8 min, 8.3 h."""
    if seconds < 600:
        return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"
    return f"{seconds / 60:,.1f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def parts(kinds: dict[str, int]) -> str:
    """Kinds with their bytes, largest first."""
    return ", ".join(f"{kind} {size(nbytes)}" for kind, nbytes in sorted(kinds.items(), key=lambda item: -item[1]))


def shortage(placement: Placement, load: Load, found: Placed, short: dict[str, tuple[str, int]], hardware: Hardware) -> str:
    """Why a placement does not fit, or that it does. `short`: tier -> the phase in which most is missing, and how much."""
    way = ", every layer's activations computed again" if load.checkpointing == "full" else ""
    said = []
    for tier in TIERS:
        if tier in short:
            phase, excess = short[tier]
            kinds = _held(found.phases[phase], tier, hardware)
            total = sum(kinds.values())
            held = f"{_PLACES[tier]} would hold {size(total)} {_MOMENTS[phase]} ({parts(kinds)})"
            said.append(f"{held} and has {size(total - excess)}")
    return f"{placement}{way}: {'; '.join(said) if said else 'fits'}"


def _held(tiers: Bytes, tier: str, hardware: Hardware) -> dict[str, int]:
    kinds = dict(tiers.get(tier, {}))
    if tier == "ram" and hardware.unified:
        kinds["the accelerator's"] = sum(tiers.get("gpu", {}).values()) * max(hardware.gpus, 1)
    return kinds


def because(
    model: ModelSpec,
    load: Load,
    hardware: Hardware,
    placement: Placement,
    offload: Offload,
    why_not: str,
    time: Time | None,
    unknown: str,
    warnings: Sequence[str],
) -> str:
    """The whole account, as sentences. `why_not` is empty where the plan fits, `unknown` where its time is known; `warnings`
    come last, and lack their full stop."""
    said = _what_must_move(model, load, hardware)
    if not why_not:
        how = f"With {placement}"
        if load.checkpointing == "full":
            how += " and every layer's activations computed again"
        if placement.runs_with == "offload_lab" and offload.ram_budget is not None:
            how += f", and {size(offload.ram_budget)} of RAM for buffers and what of the state stays there"
        said.append(f"{how}, it fits. {_RUNS[placement.runs_with]}.")
    else:
        said.append(f"Nothing that was tried fits. Least is missing with {why_not}. More of that memory would be needed.")
    shape = model.architecture
    if shape is None:
        said.append("Activations are not counted, since the model's architecture is not known: leave room for them.")
    elif shape.assumed:
        said.append(f"Only the size was given: activations are those of an assumed {shape.layers} layers of {shape.width:,}.")
    if unknown:
        said.append(f"The time of a step cannot be told: {unknown}.")
    if time is not None:
        said += _how_long(time)
        said += _sent(between(model, load, placement, hardware.gpus), hardware)
    return " ".join([*said, *(f"{warning}." for warning in warnings)])


def _sent(sent: Between, hardware: Hardware) -> list[str]:
    """What accelerators send each other, with the formula and where it is from."""
    if not sent.nbytes:
        return []
    share = f"{sent.accelerators - 1}/{sent.accelerators}"
    way = "over wires of their own" if hardware.gpu_between is not None else "over the host's link, for no other is known"
    return [
        f"Each of the {sent.accelerators} accelerators sends {size(sent.nbytes)} a step to the others, {way}: {share} of all "
        f"weights, gathered {_times(sent.gathers)}, are {size(sent.weights)}; {share} of all gradients, summed "
        f"{_times(sent.sums)}, are {size(sent.gradients)} ({SOURCE})."
    ]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _what_must_move(model: ModelSpec, load: Load, hardware: Hardware) -> list[str]:
    """That moving optimizer state alone is not enough, and what else must leave the accelerator, if it is so."""
    if not hardware.gpus or hardware.gpu_memory is None:
        return []
    room = hardware.gpu_memory.value * hardware.gpus
    cards = f"{hardware.gpus} accelerators" if hardware.gpus > 1 else "an accelerator"
    weights = model.weight_bytes(load.dtype)
    gradients = model.weight_bytes(load.dtype, trainable_only=True)
    held = f"{model.parameters + model.frozen:,} {load.dtype} weights are {size(weights)}"
    alone = "moving optimizer state alone does not work."
    if weights > room:
        return [
            f"{held} and do not fit on {cards} of {size(room)}, wherever the optimizer state is: {alone} Gradients "
            f"({size(gradients)}) and weights must move too, and come back layer by layer, as in ZeRO-Infinity."
        ]
    if weights + gradients > room:
        return [
            f"{held}, their gradients {size(gradients)}, and together they do not fit on {cards} of {size(room)}: {alone} "
            "The gradients must move too, while backward goes on."
        ]
    return []


def _how_long(time: Time) -> list[str]:
    said = [
        f"A step of {time.tokens:,} tokens takes {span(time.one_after_another)} with one thing after another, "
        f"{span(time.pipelined)} with a pipelined update, and {span(time.overlapped)} at least, bound by {time.bound_by}."
    ]
    if time.tokens_to_hide:
        said.append(f"From {time.tokens_to_hide:,} tokens a step on, computing hides the update.")
    if time.disk_written:
        wear = "" if time.wear is None else f", {time.wear:.2%} of what it is made for"
        said.append(f"A thousand steps write {size(1000 * time.disk_written)} to the disk{wear}.")
    if time.run_hours is not None:
        cost = "" if time.run_cost is None else f" and cost ${time.run_cost:,.2f}"
        said.append(f"The run of {time.steps:,} steps takes {time.run_hours:,.1f} hours{cost}.")
    return said


def text(plan: Plan) -> str:
    """The plan for a person: the verdict, bytes by tier and kind, seconds by lane."""
    load = plan.model
    verdict = "fits" if plan.fits else "does not fit"
    trained = "" if f"{load.parameters:,}" in load.name else f", {load.parameters:,} trainable parameters"
    said = [f"{load.name} in {load.dtype}{trained}, on {plan.hardware.name}: {verdict}"]
    said += ["All figures are predicted.", "", plan.why, "", f"  {'':5} {'kind':18}{'between steps':>15}{'at the peak':>14}"]
    for tier in TIERS:
        steady, peak = plan.phases["steady"].get(tier, {}), plan.phases["peak"].get(tier, {})
        for kind in dict.fromkeys([*steady, *peak]):
            shown = "runtime (assumed)" if kind == "runtime" else kind
            said.append(f"  {tier:5} {shown:18}{size(steady.get(kind, 0)):>15}{size(peak.get(kind, 0)):>14}")
        if peak:
            room = plan.capacity.get(tier)
            known = plan.capacity_from.get(tier)
            of = f"  of {size(room)}" + (f", {known}" if known else "") if room is not None else "  and there is none"
            said.append(f"  {tier:5} {'in all':18}{size(sum(steady.values())):>15}{size(sum(peak.values())):>14}{of}")
    for phase in ("construction", "resume"):
        held = ", ".join(f"{tier} {size(plan.total(tier, phase))}" for tier in TIERS if plan.total(tier, phase))
        said.append(f"  {_MOMENTS[phase]}: {held}")
    if plan.time is not None:
        said += ["", "  a step, each lane alone: " + ", ".join(f"{lane} {span(s)}" for lane, s in plan.time.lanes.items())]
    return "\n".join(said)
