"""Bytes by tier, kind and phase of one placement: what `planner.py` tries. Pure: no torch.

Three systems are predicted, each for what it is made for (`Placement.runs_with`):

- "torch": AdamW beside the weights, with float32 masters for a 16-bit model (`masters.py`);
- "offload_lab": OffloadAdamW, whose own bytes are those of `engine_bytes.py`; weights and gradients stay where the model is;
- "deepspeed": weights or gradients leave the accelerator. Bytes a parameter after Rajbhandari et al. 2021, "ZeRO-Infinity",
  section 3 (https://arxiv.org/abs/2104.07857): float32 master, moments and gradient take 16, beside the weight's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab.activations import activation_bytes
from offload_lab.engine_bytes import EngineBytes, engine_bytes
from offload_lab.models import ModelSpec, element_bytes
from offload_lab.plan import PHASES, Bytes, Load, Offload, Placement
from offload_lab.policy import OffloadPolicy

RUNTIME = {"gpu": 600_000_000, "ram": 1_000_000_000}
"""Assumed: the accelerator's context and libraries' workspaces; Python, torch and its libraries."""
LIVE_LAYERS = 2  # assumed: the layer that is computed and the one that is fetched meanwhile
SWAP_BUFFERS = 5  # DeepSpeed's `buffer_count`, default 5 (https://www.deepspeed.ai/docs/config-json/)


@dataclass(frozen=True)
class Placed:
    """Bytes of every phase, and of the engine where it is ours."""

    phases: dict[str, Bytes]
    engine: EngineBytes | None


class _Sum:
    """Bytes of one phase while they are added up."""

    def __init__(self) -> None:
        self.bytes: Bytes = {}

    def add(self, tier: str, kind: str, nbytes: int) -> _Sum:
        if nbytes:
            kinds = self.bytes.setdefault(tier, {})
            kinds[kind] = kinds.get(kind, 0) + nbytes
        return self

    def add_all(self, tier: str, kinds: dict[str, int]) -> _Sum:
        for kind, nbytes in kinds.items():
            self.add(tier, kind, nbytes)
        return self


def policy_of(placement: Placement, offload: Offload) -> OffloadPolicy:
    """The policy that a plan asks for, whose state is in RAM or on disk."""
    settings = {
        "ram_budget": offload.ram_budget,
        "partition_size": offload.partition_size,
        "depth": offload.depth,
        "state_dtype": offload.state_dtype,
        "gradients": offload.gradients,
        "overlap": offload.overlap,
    }
    if placement.state == "disk":
        settings |= {"directory": offload.directory or "offload-state", "durability": offload.durability}
    return OffloadPolicy(tier="disk" if placement.state == "disk" else "ram", **settings)


def placed(
    model: ModelSpec, load: Load, placement: Placement, offload: Offload, gpus: int, fused_attention: bool = True
) -> Placed:
    """All phases of `placement`. With several accelerators their bytes are those of one: what is kept is shared out
    equally (ZeRO stage 3, FSDP2); activations, the runtime and what is gathered for computing are each one's own.

    construction: the model is there, the optimizer built, nothing stepped. resume: the moment of taking up a run at which most
    is held. steady: between two steps, gradients not yet given up. peak: all that one step ever holds, counted together.
    Raises ValueError where a RAM budget cannot hold what it must.
    """
    home = "gpu" if gpus else "ram"  # where the model is computed
    engine: EngineBytes | None = None
    if placement.runs_with == "offload_lab":
        engine = engine_bytes(model, load.dtype, policy_of(placement, offload), linked=home == "gpu")
    weights = model.weight_bytes(load.dtype)
    element = element_bytes(load.dtype)
    n = model.parameters
    gradients = n * 4 if offload.gradients == "float32" else model.weight_bytes(load.dtype, trainable_only=True)
    shape = model.architecture
    kept = 0
    if shape is not None:
        kept = activation_bytes(shape, load.batch, load.sequence, element, load.checkpointing, fused_attention)
    phases = {name: _Sum() for name in PHASES}
    for phase in phases.values():
        phase.add("ram", "runtime", RUNTIME["ram"] * max(gpus, 1))  # a process for each accelerator
        if gpus:
            phase.add("gpu", "runtime", RUNTIME["gpu"] * gpus)
    phases["peak"].add(home, "activations", kept * max(gpus, 1))
    _add_weights(model, load, placement, home, weights, max(gpus, 1), phases)
    if home == placement.weights == "gpu":  # a checkpoint is read into RAM before it goes to the accelerator
        phases["construction"].add("ram", "copies", weights)
        phases["resume"].add("ram", "copies", 0 if placement.runs_with == "offload_lab" else weights)
    for name in ("steady", "peak"):
        if placement.gradients == home:
            phases[name].add(home, "gradients", gradients)
        else:  # given up one after the other while backward goes on
            live = model.layer_elements() + model.largest() if placement.runs_with == "deepspeed" else model.largest()
            phases[name].add(home, "gradients", min(gradients, gradients * live // n) * max(gpus, 1))
    if engine is not None:
        _add_engine(engine, max(gpus, 1), phases)
    elif placement.runs_with == "deepspeed":
        _add_deepspeed(model, placement, phases)
    else:
        _add_torch(model, load, placement.state, gradients, phases)
    found = {name: phase.bytes for name, phase in phases.items()}
    for kinds in (tiers.get("gpu", {}) for tiers in found.values()):
        for kind, nbytes in kinds.items():
            kinds[kind] = -(-nbytes // max(gpus, 1))
    return Placed(found, engine)


def _add_weights(
    model: ModelSpec, load: Load, placement: Placement, home: str, weights: int, ranks: int, phases: dict[str, _Sum]
) -> None:
    element = element_bytes(load.dtype)
    live = min(weights, (LIVE_LAYERS * model.layer_elements() + model.largest()) * element)
    for name, phase in phases.items():
        phase.add(placement.weights, "weights", weights)
        if placement.weights != home and name != "construction":
            phase.add(home, "weights", live * ranks)
        if placement.weights == "disk" and name != "construction":
            phase.add("ram", "buffers", SWAP_BUFFERS * model.largest() * element)
        if placement.weights == "ram" and home == "gpu":
            phase.add("ram", "pinned rounding", sum(pinned(w.numel * element) - w.numel * element for w in model.each()))

    if placement.weights == home == "gpu" and ranks > 1:
        phases["peak"].add(home, "buffers", gathered(model) * element * ranks)


def gathered(model: ModelSpec) -> int:
    """Elements that each of several accelerators holds beside its share while it computes: the weights of the layer that is
    computed and of the one that is fetched meanwhile, a layer's gradients before they are summed, and what belongs to no layer
    (embeddings and head), which stays from forward to backward."""
    layer, shape = model.layer_elements(), model.architecture
    every = model.parameters + model.frozen
    if shape is None:
        return min(every, (LIVE_LAYERS + 1) * layer)
    outside = 0 if shape.assumed else every - shape.layers * layer
    return min(LIVE_LAYERS * layer, shape.layers * layer) + layer + max(outside, 0)


def _add_engine(engine: EngineBytes, ranks: int, phases: dict[str, _Sum]) -> None:
    for phase in phases.values():
        phase.add_all("disk", engine.disk)
    # Memory of records and buffers is reserved at construction, and taken when a step or a resume first touches it.
    for name, buffers in (
        ("resume", min(engine.buffers, engine.largest_record)),
        *((n, engine.buffers) for n in ("steady", "peak")),
    ):
        phases[name].add_all("ram", engine.resident).add("ram", "buffers", buffers)
    for name in ("steady", "peak") if engine.staging else ():
        phases[name].add("ram", "staging", engine.staging * ranks)  # each has slabs of its own


def _add_torch(model: ModelSpec, load: Load, tier: str, gradients: int, phases: dict[str, _Sum]) -> None:
    n = model.parameters
    sixteen = sum(w.numel * w.times for w in model.weights if w.trainable and (w.dtype or load.dtype) != "float32")
    for name, phase in phases.items():
        phase.add(tier, "master", 4 * sixteen)
        if name != "construction":
            phase.add(tier, "moments", 8 * n)
    # float32 gradients take the place of 16-bit ones while the optimizer steps
    phases["peak"].add(tier, "copies", max(0, 4 * n - gradients))
    phases["resume"].add("ram", "copies", 8 * n + 4 * sixteen)  # the checkpoint, read as a whole


def _add_deepspeed(model: ModelSpec, placement: Placement, phases: dict[str, _Sum]) -> None:
    n = model.parameters
    for phase in phases.values():
        # The float32 gradient lies beside the state that it updates.
        phase.add(placement.state, "master", 4 * n).add(placement.state, "moments", 8 * n).add(
            placement.state, "gradients", 4 * n
        )
        if placement.state == "disk":
            phase.add("ram", "buffers", SWAP_BUFFERS * 4 * model.largest() * 4)  # master, two moments, gradient


def pinned(nbytes: int) -> int:
    """Bytes that torch takes for `nbytes` of pinned memory: the next power of two, because its allocator keeps free blocks by
    these (https://github.com/pytorch/pytorch/issues/95823)."""
    return 1 << max(nbytes - 1, 0).bit_length() if nbytes else 0
