"""What fits where, how long a step takes, and what does not work and why. Pure: no torch. Every figure is *predicted*.

>>> from offload_lab import catalogue, plan
>>> print(plan("llama-2-13b", catalogue.machine("rtx4090-nvme")))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from offload_lab import plan_words as words
from offload_lab.cautions import cautions, sizes
from offload_lab.hardware import Hardware
from offload_lab.models import ModelSpec
from offload_lab.partition import STATE_BYTES
from offload_lab.placing import Placed, placed
from offload_lab.plan import PHASES, TIERS, Load, Offload, Placement, Plan, Targets, Time, Tried
from offload_lab.plan_arguments import budget_of, check_one_of, check_positive, check_whole, model_of
from offload_lab.state_bytes import readable
from offload_lab.step_time import Unknown, seconds, traffic

__all__ = ["plan", "readable"]

_ON_GPU = (
    Placement("gpu", "gpu", "gpu", "torch"),
    Placement("ram", "gpu", "gpu", "offload_lab"),
    Placement("disk", "gpu", "gpu", "offload_lab"),
    Placement("ram", "gpu", "ram", "deepspeed"),
    Placement("disk", "gpu", "ram", "offload_lab"),
    Placement("ram", "ram", "ram", "deepspeed"),
    Placement("disk", "ram", "disk", "deepspeed"),
    Placement("disk", "disk", "disk", "deepspeed"),
)
_SLOWER = 4
"""So many times as long a step may take for the sake of moving less, and of what is predicted from our own engine's functions
and not from a paper."""
_ON_CPU = (Placement("ram", "ram", "ram", "offload_lab"), Placement("disk", "ram", "ram", "offload_lab"))


@dataclass(frozen=True)
class _Candidate:
    placement: Placement
    load: Load
    offload: Offload
    found: Placed | None
    short: dict[str, tuple[str, int]]
    """Tier -> (phase, bytes too many) where it does not fit."""
    why: str
    time: Time | None
    unknown: str = ""

    @property
    def fits(self) -> bool:
        return self.found is not None and not self.short


def plan(
    model: ModelSpec | str | int | Any,
    hardware: Hardware,
    *,
    dtype: str = "bfloat16",
    batch: int = 1,
    sequence: int | None = None,
    accumulation: int = 1,
    checkpointing: str = "auto",
    state: str = "auto",
    weights: str = "auto",
    gradients: str = "auto",
    directory: str | None = None,
    ram_budget: int | str | None = None,
    partition_size: int | None = None,
    depth: int = 4,
    durability: str | int = "step",
    state_dtype: str = "float32",
    run_tokens: float | None = None,
    loss: float | None = None,
    utilisation: float | None = None,
    fused_attention: bool = True,
) -> Plan:
    """Place the training of `model` on `hardware`, and predict bytes, seconds and money.

    `model` is a spec, a known name ("llama-2-13b"), a number of parameters, or a torch module. `state`, `weights` and
    `gradients` ("gpu", "ram", "disk") and `checkpointing` ("none", "full") are tried in all ways that some system can run
    where they are "auto". Of those that fit, the one that moves least is taken, unless its step takes four times as long as
    the fastest's; where none fits, the plan is the one with the least missing, and `fits` is False.
    `sequence` is the model's own context, at most 2,048, if not given; `run_tokens` are those of the whole run.
    `utilisation` is the share of the hardware's matrix throughput that training reaches (see `step_time.py`).

    Raises ValueError naming the argument that is wrong, TypeError for a hardware that is none.
    """
    if not isinstance(hardware, Hardware):
        raise TypeError(
            f"hardware={hardware!r}: a Hardware is needed, of catalogue.machine(…), assemble(…) or offload-lab measure"
        )
    known = model_of(model)
    check_one_of("dtype", dtype, *STATE_BYTES)
    check_one_of("checkpointing", checkpointing, "auto", "none", "full")
    for name, tier in (("state", state), ("weights", weights), ("gradients", gradients)):
        check_one_of(name, tier, "auto", *TIERS)
        if tier == "gpu" and not hardware.gpus:
            raise ValueError(f'{name}="gpu": {hardware.name} has no accelerator; give hardware with one, or "ram"')
        if tier == "disk" and hardware.disk is None:
            raise ValueError(f'{name}="disk": {hardware.name} has no disk; give hardware with one, or "ram"')
    if sequence is None:
        sequence = known.architecture.context if known.architecture is not None else 2048
    for name, number in (("batch", batch), ("sequence", sequence), ("accumulation", accumulation)):
        check_whole(name, number)
    if durability not in ("step", "checkpoint"):
        try:
            check_whole("durability", durability)
        except ValueError as error:
            raise ValueError(f'{error}, or "step", or "checkpoint"') from None
    for name, amount in (("run_tokens", run_tokens), ("loss", loss), ("utilisation", utilisation)):
        check_positive(name, amount)
    if utilisation is not None and utilisation > 1:
        raise ValueError(f"utilisation={utilisation!r}: a share, more than 0 and at most 1, is needed")
    budget = None if ram_budget is None else budget_of(ram_budget)
    shape = known.architecture
    load = Load(known.name, known.parameters, dtype, batch, sequence, accumulation, "none", known.frozen)  # type: ignore[arg-type]
    if shape is not None:
        load = replace(load, layers=shape.layers, width=shape.width)
    offload = Offload(directory, budget, partition_size, depth, durability, state_dtype)  # type: ignore[arg-type]

    tried: list[_Candidate] = []
    only_ours = [
        name
        for name, asked in (
            ("state_dtype", state_dtype != "float32"),
            ("ram_budget", budget),
            ("partition_size", partition_size),
        )
        if asked
    ]
    for placement in _wanted(hardware, state, weights, gradients):
        if only_ours and placement.runs_with != "offload_lab":
            continue
        for way in ("none", "full") if checkpointing == "auto" else (checkpointing,):
            here = replace(load, checkpointing=way)  # type: ignore[arg-type]
            tried.append(_try(known, here, placement, offload, hardware, utilisation, fused_attention))
            if tried[-1].fits or shape is None:
                break
    if not tried and only_ours:
        raise ValueError(
            f"{' and '.join(only_ours)}: only OffloadAdamW has such a setting, and it does not run with state={state!r}, "
            f'weights={weights!r}, gradients={gradients!r} on {hardware.name}; leave it out, or make one of them "auto"'
        )
    if not tried:
        raise ValueError(
            f"no system runs with state={state!r}, weights={weights!r}, gradients={gradients!r} on {hardware.name}; make one "
            'of them "auto". Where weights have left the accelerator, gradients and state have too; DeepSpeed keeps gradients '
            "with the state"
        )
    chosen = _best(tried)
    return _told(known, chosen, tried, hardware, run_tokens, loss)


def _try(
    model: ModelSpec,
    load: Load,
    placement: Placement,
    offload: Offload,
    hardware: Hardware,
    utilisation: float | None,
    fused: bool,
) -> _Candidate:
    ours = placement.runs_with == "offload_lab"
    if not ours:
        offload = replace(offload, ram_budget=None, partition_size=None)
    if placement.state != "disk":
        offload = replace(offload, directory=None, durability="step")
    else:
        offload = replace(offload, directory=offload.directory or "offload-state")
    if ours and placement.gradients != placement.weights:
        offload = replace(offload, overlap="backward")
        if offload.durability != "step":
            why = f'{placement}: gradients are given up during backward only with durability="step", not {offload.durability!r}'
            return _Candidate(placement, load, offload, None, {}, why, None)
        if load.accumulation > 1:
            why = (
                f"{placement}: gradients are given up during backward only where a step has one backward; over "
                f"{load.accumulation} they are summed, and stay until the step"
            )
            return _Candidate(placement, load, offload, None, {}, why, None)
    try:
        if ours and placement.state == "disk" and offload.ram_budget is None:
            offload = replace(offload, ram_budget=_room_for_state(model, load, placement, offload, hardware, fused))
        found = placed(model, load, placement, offload, hardware.gpus, fused)
    except ValueError as error:  # of the engine: a budget that cannot hold what it must, a sequence that is too long
        if "ram_budget" not in str(error):
            raise
        return _Candidate(placement, load, offload, None, {}, f"{placement}: {error}", None)
    short = _short(found, hardware)
    why = words.shortage(placement, load, found, short, hardware)
    moved = traffic(model, load, placement, found.engine, hardware.gpus)
    try:
        return _Candidate(
            placement, load, offload, found, short, why, seconds(model, load, placement, moved, hardware, utilisation)
        )
    except Unknown as error:
        return _Candidate(placement, load, offload, found, short, why, None, str(error))


def _room_for_state(
    model: ModelSpec, load: Load, placement: Placement, offload: Offload, hardware: Hardware, fused: bool
) -> int | None:
    """Nine tenths of the RAM that is left beside everything else: what `ram_budget` may be. None, which is buffers only,
    where hardly anything is left."""
    least = placed(model, load, placement, offload, hardware.gpus, fused)
    used = sum(nbytes for kind, nbytes in least.phases["peak"].get("ram", {}).items() if kind != "buffers")
    left = int((hardware.ram.value - used) * 0.9)
    return left if left > least.phases["peak"]["ram"].get("buffers", 0) else None


def _short(found: Placed, hardware: Hardware) -> dict[str, tuple[str, int]]:
    """For each tier that is too small: the phase in which most is missing, and by how many bytes."""
    room = capacity(hardware)
    missing: dict[str, tuple[str, int]] = {}
    for phase in PHASES:
        totals = {tier: sum(kinds.values()) for tier, kinds in found.phases[phase].items()}
        if hardware.unified:  # one memory: what the accelerator holds is part of it
            totals["ram"] = totals.get("ram", 0) + totals.get("gpu", 0) * max(hardware.gpus, 1)
        for tier, needed in totals.items():
            excess = needed - room.get(tier, 0)
            if excess > missing.get(tier, ("", 0))[1]:
                missing[tier] = (phase, excess)
    return missing


def capacity(hardware: Hardware) -> dict[str, int]:
    """Bytes of each tier that is there; of one accelerator."""
    return {tier: int(figure.value) for tier, figure in sizes(hardware).items()}


def _best(tried: list[_Candidate]) -> _Candidate:
    fitting = [candidate for candidate in tried if candidate.fits]
    if fitting:  # they come in the order of how much has moved
        enough = _SLOWER * min(map(_seconds, fitting))
        return next(candidate for candidate in fitting if _seconds(candidate) <= enough)
    placeable = [candidate for candidate in tried if candidate.found is not None]
    if not placeable:
        raise ValueError(tried[-1].why)
    return min(placeable, key=lambda candidate: sum(excess for _, excess in candidate.short.values()))


def _seconds(candidate: _Candidate) -> float:
    time = candidate.time
    if time is None:
        return float("inf")
    return time.pipelined if candidate.offload.overlap == "none" else time.overlapped


def _told(
    model: ModelSpec,
    chosen: _Candidate,
    tried: list[_Candidate],
    hardware: Hardware,
    run_tokens: float | None,
    loss: float | None,
) -> Plan:
    time, found = chosen.time, chosen.found
    if found is None:
        raise ValueError(chosen.why)
    if time is not None and run_tokens is not None:
        steps = max(1, -(-round(run_tokens) // time.tokens))
        hours = steps * _seconds(chosen) / 3600
        cost = None if hardware.price is None else hours * hardware.price.value
        time = replace(time, steps=steps, run_hours=hours, run_cost=cost)
    peak = {tier: sum(kinds.values()) for tier, kinds in found.phases["peak"].items()}
    targets = Targets(
        None if time is None else _seconds(chosen),
        peak.get("gpu"),
        peak.get("ram"),
        peak.get("disk"),
        loss,
        None if time is None else time.run_cost,
    )
    why_not, told = "" if chosen.fits else chosen.why, cautions(chosen.load, hardware, time)
    why = words.because(model, chosen.load, hardware, chosen.placement, chosen.offload, why_not, time, chosen.unknown, told)
    attempts = tuple(Tried(c.placement, c.load.checkpointing, c.fits, c.why) for c in tried)
    origins = {tier: figure.origin for tier, figure in sizes(hardware).items()}
    return Plan(
        chosen.fits,
        why,
        chosen.load,
        hardware,
        chosen.placement,
        chosen.offload,
        targets,
        capacity(hardware),
        found.phases,
        time,
        attempts,
        tuple(told),
        origins,
    )


def _wanted(hardware: Hardware, state: str, weights: str, gradients: str) -> Iterator[Placement]:
    for placement in _ON_GPU if hardware.gpus else _ON_CPU:
        asked = ((state, placement.state), (weights, placement.weights), (gradients, placement.gradients))
        if any(want not in ("auto", has) for want, has in asked):
            continue
        if hardware.disk is None and "disk" in (placement.state, placement.weights):
            continue
        yield placement
