"""A plan in sentences: what does not fit and why, what had to move, what bounds the step. Pure: no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offload_lab.hardware import Hardware
from offload_lab.models import ModelSpec
from offload_lab.plan import TIERS, Bytes, Load, Offload, Placement, Plan, Time
from offload_lab.state_bytes import readable

if TYPE_CHECKING:
    from offload_lab.placing import Placed

_PLACES = {"gpu": "the accelerator", "ram": "RAM", "disk": "the disk"}
_RUNS = {
    "torch": "torch.optim.AdamW runs it",
    "offload_lab": "OffloadAdamW runs it",
    "deepspeed": "DeepSpeed (ZeRO-Offload, ZeRO-Infinity) runs it; OffloadAdamW moves optimizer state only",
}


def size(nbytes: float) -> str:
    """26.0 GB, with a digit more than is read aloud, so that what does not fit by a little is seen not to."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(nbytes) >= scale:
            return f"{nbytes / scale:.1f} {unit}"
    return f"{nbytes:.0f} bytes"


def parts(kinds: dict[str, int]) -> str:
    """Kinds with their bytes, largest first."""
    return ", ".join(f"{kind} {size(nbytes)}" for kind, nbytes in sorted(kinds.items(), key=lambda item: -item[1]))


def shortage(placement: Placement, load: Load, found: Placed, short: dict[str, tuple[str, int]], hardware: Hardware) -> str:
    """Why a placement does not fit, or that it does."""
    if not short:
        return f"{placement}: fits"
    said = []
    for tier in TIERS:
        if tier in short:
            phase, excess = short[tier]
            kinds = _held(found.phases[phase], tier, hardware)
            total = sum(kinds.values())
            what = f"{_PLACES[tier]} would hold {size(total)} ({parts(kinds)}) {_moment(phase)} and has {size(total - excess)}"
            said.append(what)
    way = ", every layer's activations computed again" if load.checkpointing == "full" else ""
    return f"{placement}{way}: {'; '.join(said)}"


def _held(tiers: Bytes, tier: str, hardware: Hardware) -> dict[str, int]:
    kinds = dict(tiers.get(tier, {}))
    if tier == "ram" and hardware.unified:
        kinds["the accelerator's"] = sum(tiers.get("gpu", {}).values()) * max(hardware.gpus, 1)
    return kinds


def _moment(phase: str) -> str:
    return {"construction": "when it is built", "resume": "when it resumes", "steady": "between steps", "peak": "at the peak"}[
        phase
    ]


def because(
    model: ModelSpec,
    load: Load,
    hardware: Hardware,
    fits: bool,
    placement: Placement,
    offload: Offload,
    why_not: str,
    time: Time | None,
    unknown: str,
    found: Placed,
) -> str:
    """The whole account, as sentences."""
    said = [*_what_must_move(model, load, hardware)]
    if fits:
        how = f"With {placement}"
        if load.checkpointing == "full":
            how += " and every layer's activations computed again"
        if placement.runs_with == "offload_lab" and offload.ram_budget is not None:
            how += f", and {size(offload.ram_budget)} of RAM for buffers and what of the state stays there"
        said.append(f"{how}, it fits. {_RUNS[placement.runs_with]}.")
    else:
        said.append(
            f"Nothing that was tried fits. What is least short is {why_not}. More of that memory, or a smaller model, is needed."
        )
    if model.architecture is None:
        said.append("Activations are not counted: the model's architecture is not known. Leave room for them.")
    elif model.architecture.assumed:
        shape = model.architecture
        said.append(
            f"Activations are those of an assumed shape ({shape.layers} layers of {shape.width:,}), since only the size was given."
        )
    if unknown:
        said.append(f"The time of a step cannot be told: {unknown}.")
    if time is not None:
        said += _how_long(time, hardware, placement)
    said += [f"{warning}." for warning in hardware.warnings]
    return " ".join(said)


def _what_must_move(model: ModelSpec, load: Load, hardware: Hardware) -> list[str]:
    """Whether moving optimizer state alone is enough, and what else must leave the accelerator if it is not."""
    if not hardware.gpus or hardware.gpu_memory is None:
        return []
    room = hardware.gpu_memory.value * hardware.gpus
    cards = f"{hardware.gpus} accelerators" if hardware.gpus > 1 else "an accelerator"
    n, weights = model.parameters + model.frozen, model.weight_bytes(load.dtype)
    gradients = model.weight_bytes(load.dtype, trainable_only=True)
    held = f"{n:,} {load.dtype} weights are {size(weights)}"
    if weights > room:
        return [
            f"{held} and do not fit on {cards} of {size(room)}, wherever the optimizer state is: moving optimizer state alone does "
            f"not work. Weights and gradients ({size(gradients)}) must move too, and be fetched layer by layer, as ZeRO-Infinity does."
        ]
    if weights + gradients > room:
        return [
            f"{held} and their gradients {size(gradients)}, together {size(weights + gradients)}, which do not fit on {cards} of "
            f"{size(room)}: moving optimizer state alone does not work. The gradients must move too, during backward."
        ]
    return []


def _how_long(time: Time, hardware: Hardware, placement: Placement) -> list[str]:
    said = [
        f"A step of {time.tokens:,} tokens takes {time.one_after_another:.3g} s with one thing after another, {time.pipelined:.3g} s "
        f"with a pipelined update, and {time.overlapped:.3g} s at least, bound by {time.bound_by}."
    ]
    if time.tokens_to_hide:
        said.append(f"From {time.tokens_to_hide:,} tokens a step on, computing hides the update.")
    if time.disk_written:
        wear = "" if time.wear is None else f", {time.wear:.2%} of its life"
        said.append(f"A thousand steps write {size(1000 * time.disk_written)} to the disk{wear}.")
    if time.run_hours is not None:
        cost = "" if time.run_cost is None else f" and cost ${time.run_cost:,.2f}"
        said.append(f"The run of {time.steps:,} steps takes {time.run_hours:,.1f} hours{cost}.")
    return said


def text(plan: Plan) -> str:
    """The plan for a person: the verdict, bytes by tier and kind, seconds by lane."""
    load, hardware = plan.model, plan.hardware
    said = [
        f"{load.name}, {load.parameters:,} parameters in {load.dtype}, on {hardware.name}: "
        f"{'fits' if plan.fits else 'does not fit'} (predicted)",
        "",
        plan.why,
        "",
        f"  {'':5} {'kind':18}{'at rest':>12}{'at the peak':>14}",
    ]
    for tier in TIERS:
        steady, peak = plan.phases["steady"].get(tier, {}), plan.phases["peak"].get(tier, {})
        for kind in dict.fromkeys([*steady, *peak]):
            said.append(f"  {tier:5} {kind:18}{size(steady.get(kind, 0)):>12}{size(peak.get(kind, 0)):>14}")
        if peak:
            room = plan.capacity.get(tier)
            of = f"  of {size(room)}" if room is not None else "  and there is none"
            said.append(f"  {tier:5} {'in all':18}{size(sum(steady.values())):>12}{size(sum(peak.values())):>14}{of}")
    for phase in ("construction", "resume"):
        held = ", ".join(f"{tier} {size(plan.total(tier, phase))}" for tier in TIERS if plan.total(tier, phase))
        said.append(f"  at {phase}: {held}")
    if plan.time is not None:
        lanes = ", ".join(f"{lane} {taken:.3g} s" for lane, taken in plan.time.lanes.items())
        said += ["", f"  a step, each lane on its own: {lanes}"]
    return "\n".join(said)


def readable_run(plan: Plan) -> str:
    """One line of a comparison."""
    time = plan.time
    if not plan.fits:
        return "does not fit"
    if time is None:
        return "fits; its time is not known"
    money = f"${time.run_cost:,.0f}" if time.run_cost is not None else "no price"
    return (
        f"{time.pipelined:.3g} s a step, {time.run_hours:,.1f} h, {money}"
        if time.run_hours is not None
        else f"{time.pipelined:.3g} s"
    )


__all__ = ["because", "parts", "readable", "readable_run", "shortage", "size", "text"]
