"""A plan as data: what trains where, what it is predicted to take, and the targets that a run is held to. Pure: no torch.

`offload_lab.planner.plan` makes one; `offload-lab plan … --json > plan.json` writes it, and exports and the gate read it.
Every figure in it is *predicted*, from the figures of `hardware`, each of which says whether it was measured, is from a data
sheet, or is assumed.

The file is one JSON object. Bytes and seconds are plain numbers; what is not known or not there is null:

    {
      "format": 1,
      "fits": true,                          whether every phase fits on every tier
      "why": "…",                            sentences: what does not work, what had to move, what bounds the step
      "model": {"name": "llama-2-13b", "parameters": 13015864320, "dtype": "bfloat16", "batch": 1, "sequence": 2048, …},
      "hardware": {…},                       Hardware.to_dict()
      "placement": {"state": "disk", "weights": "gpu", "gradients": "gpu", "runs_with": "offload_lab"},
      "offload": {"directory": "state", "ram_budget": 8589934592, …},    as OffloadPolicy has them
      "targets": {"seconds_per_step": 9.1, "peak_gpu_bytes": …, "peak_ram_bytes": …, "loss": null, …},
      "capacity": {"gpu": 25769803776, "ram": …, "disk": …},             bytes of each tier; gpu: of one accelerator
      "capacity_from": {"gpu": "given", "ram": "assumed", …},            or "measured", or "data sheet"
      "warnings": ["…", …],                  sentences that `why` has as well: what was assumed, what is slow and why
      "tiers": {"gpu": {"weights": …, "gradients": …}, "ram": {…}, "disk": {…}},      bytes by kind at the peak
      "phases": {"construction": {"gpu": {…}, …}, "resume": {…}, "steady": {…}, "peak": {…}},    the same, for each phase
      "time": {"lanes": {"compute": 1.2, "disk": 8.9, …}, "bound_by": "disk", …},
      "tried": [{"placement": {…}, "checkpointing": "none", "fits": false, "why": "…"}, …]   faster ones first
    }
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from offload_lab.hardware import Hardware
from offload_lab.json_text import parsed

FORMAT = 1
Tier = Literal["gpu", "ram", "disk"]
TIERS: tuple[Tier, ...] = ("gpu", "ram", "disk")
Kind = Literal[
    "weights",
    "gradients",
    "master",
    "moments",
    "activations",
    "buffers",
    "copies",
    "record padding",
    "second generation",
    "pinned rounding",
    "runtime",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Phase = Literal["construction", "resume", "steady", "peak"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Bytes = dict[str, dict[str, int]]
"""Tier -> kind -> bytes. A tier or kind that takes nothing is left out."""


@dataclass(frozen=True)
class Load:
    """What is trained: a model and what one step feeds it."""

    name: str
    parameters: int
    """Trainable ones; a tied one counts once."""
    dtype: Literal["float32", "bfloat16", "float16"]
    batch: int
    """Sequences of one forward, on one accelerator."""
    sequence: int
    """Tokens of one sequence."""
    accumulation: int = 1
    """Forwards and backwards a step."""
    checkpointing: Literal["none", "full"] = "none"
    """"full": only each layer's input is kept for backward, and the layer is computed again."""
    frozen: int = 0
    """Parameters that take their weight's bytes and nothing else."""
    layers: int | None = None
    width: int | None = None

    def tokens(self, gpus: int = 1) -> int:
        """Tokens a step, over all accelerators."""
        return self.batch * self.sequence * self.accumulation * max(gpus, 1)


@dataclass(frozen=True)
class Placement:
    """Where the three large things live between their uses."""

    state: Tier
    """Masters and moments."""
    weights: Tier
    gradients: Tier
    runs_with: Literal["torch", "offload_lab", "deepspeed"] = "offload_lab"
    """"torch": its own AdamW beside the weights. "offload_lab": OffloadAdamW, weights where the model is. "deepspeed": also
    weights or gradients are moved away from the accelerator (ZeRO-Offload, ZeRO-Infinity; FSDP2 does it for RAM)."""

    def __str__(self) -> str:
        """state on disk, gradients in RAM, weights on the accelerator"""
        at = {"gpu": "on the accelerator", "ram": "in RAM", "disk": "on disk"}
        return f"state {at[self.state]}, gradients {at[self.gradients]}, weights {at[self.weights]}"


@dataclass(frozen=True)
class Offload:
    """The settings of OffloadPolicy that the plan rests on, by the same names."""

    directory: str | None = None
    """Where state lies on disk; None where none does."""
    ram_budget: int | None = None
    """Bytes of RAM for buffers and what of the state stays in RAM."""
    partition_size: int | None = None
    """Elements; None: the engine's own choice."""
    depth: int = 4
    durability: str | int = "step"
    state_dtype: Literal["float32", "bfloat16", "int8"] = "float32"
    gradients: Literal["parameter", "float32"] = "parameter"
    overlap: Literal["none", "forward", "backward"] = "none"


@dataclass(frozen=True)
class Targets:
    """What a run must reach to be as planned. None: no target."""

    seconds_per_step: float | None = None
    peak_gpu_bytes: int | None = None
    """Of one accelerator."""
    peak_ram_bytes: int | None = None
    disk_bytes: int | None = None
    loss: float | None = None
    """At most this; given by the user, no planner knows it."""
    cost: float | None = None
    """US dollars for the run."""


@dataclass(frozen=True)
class Time:
    """Seconds of one step, each lane on its own and together."""

    lanes: dict[str, float]
    """Lane -> seconds that it is busy: compute, link-down, link-up, dram, disk (or disk-read and disk-write), between (several
    accelerators with wires of their own; else what they send each other is part of the link's lanes)."""
    one_after_another: float
    """Nothing overlaps: the sum of the lanes. This and the next two have `fixed` in them."""
    pipelined: float
    """Compute, then an update whose reads, arithmetic and writes overlap: overlap="none"."""
    overlapped: float
    """The update is also hidden behind computing, as far as it can be: the bound of the slowest lane."""
    bound_by: str
    tokens: int
    """Tokens of this step."""
    tokens_to_hide: int | None
    """Tokens a step from which on computing takes longer than the update; None where the two share a lane."""
    disk_written: int = 0
    """Bytes a step."""
    disk_read: int = 0
    wear: float | None = None
    """Share of the disk's life (its TBW) that a thousand steps write away; None where it is not known."""
    steps: int | None = None
    """Steps of the whole run, where its tokens were given."""
    run_hours: float | None = None
    run_cost: float | None = None
    """US dollars, where the hardware has a price an hour."""
    fixed: float = 0.0
    """Seconds beside all lanes: a step, each of its tensors and publishing take them however few bytes they move."""
    between: int = 0
    """Bytes a step that each of several accelerators sends to the others (`between.py`)."""


@dataclass(frozen=True)
class Tried:
    """A placement that was considered, and what became of it."""

    placement: Placement
    checkpointing: Literal["none", "full"]
    fits: bool
    why: str


@dataclass(frozen=True)
class Plan:
    """See the module's own text."""

    fits: bool
    why: str
    model: Load
    hardware: Hardware
    placement: Placement
    offload: Offload
    targets: Targets
    capacity: dict[str, int]
    phases: dict[str, Bytes]
    """Phase -> tier -> kind -> bytes."""
    time: Time | None
    """None where a bandwidth that it needs is not known; `why` names it."""
    tried: tuple[Tried, ...] = field(default=())
    warnings: tuple[str, ...] = ()
    """What a person should know before trusting the figures; `why` has them too."""
    capacity_from: dict[str, str] = field(default_factory=dict)
    """Tier -> where its size is from: "given", "measured", "data sheet" or "assumed"."""

    @property
    def tiers(self) -> Bytes:
        """Bytes by kind on each tier at the peak."""
        return self.phases["peak"]

    @property
    def seconds_per_step(self) -> float | None:
        """Predicted for the overlap that the plan asks for."""
        if self.time is None:
            return None
        return self.time.pipelined if self.offload.overlap == "none" else self.time.overlapped

    def __str__(self) -> str:
        from offload_lab.plan_words import text  # which is about plans

        return text(self)

    def total(self, tier: str, phase: str = "peak") -> int:
        """Bytes on `tier` in `phase`."""
        return sum(self.phases[phase].get(tier, {}).values())

    def to_dict(self) -> dict[str, Any]:
        """As the file has it; `from_dict` takes it back."""
        out: dict[str, Any] = {"format": FORMAT, "fits": self.fits, "why": self.why, "model": asdict(self.model)}
        out |= {"hardware": self.hardware.to_dict(), "placement": asdict(self.placement), "offload": asdict(self.offload)}
        out |= {"targets": asdict(self.targets), "capacity": self.capacity, "tiers": self.tiers, "phases": self.phases}
        out |= {"warnings": list(self.warnings), "capacity_from": self.capacity_from}
        out |= {"time": None if self.time is None else asdict(self.time), "tried": [asdict(tried) for tried in self.tried]}
        return out

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Plan:
        """Raises ValueError naming the field that is missing, unknown or of the wrong kind."""
        if not isinstance(given, Mapping):
            raise ValueError(f"a plan is a JSON object, not {type(given).__name__}; write one with: offload-lab plan … --json")
        if given.get("format") != FORMAT:
            raise ValueError(
                f"format={given.get('format')!r}: this edition reads plans of format {FORMAT}; make the plan again with: "
                "offload-lab plan … --json"
            )
        values = {name: value for name, value in given.items() if name not in ("format", "tiers")}
        hardware = values.get("hardware")
        if isinstance(hardware, Mapping):
            values["hardware"] = Hardware.from_dict(hardware)
        read = _read(cls, values, "plan")
        missing = [phase for phase in PHASES if phase not in read.phases]
        if missing:
            raise ValueError(f"plan.phases has no {', '.join(missing)}; it needs {', '.join(PHASES)}")
        return read

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan in `text`. Raises ValueError where it is no JSON, or no plan."""
        try:
            given = parsed(text)
        except ValueError as error:
            raise ValueError(f"this is no plan: {error}") from None
        return cls.from_dict(given)


def _read(cls: type, given: Mapping[str, Any], where: str) -> Any:
    hints = get_type_hints(cls)
    unknown, known = sorted(set(given) - set(hints)), ", ".join(hints)
    if unknown:
        raise ValueError(f"{where} has no field {', '.join(unknown)}; it has {known}")
    values = {name: _value(hints[name], value, f"{where}.{name}") for name, value in given.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"{where} is incomplete: {error}") from None


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` as `hint` wants it, or ValueError naming `where`."""
    if get_origin(hint) in (UnionType, Union):
        options = get_args(hint)
        if value is None and type(None) in options:
            return None
        for option in options:
            if option is not type(None):
                try:
                    return _value(option, value, where)
                except ValueError as error:
                    last = error
        raise last
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{where}={value!r}: one of {', '.join(map(repr, get_args(hint)))} is needed")
        return value
    if get_origin(hint) is dict:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}={value!r}: an object is needed")
        return {key: _value(get_args(hint)[1], item, f"{where}.{key}") for key, item in value.items()}
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}={value!r}: a list is needed")
        return tuple(_value(get_args(hint)[0], item, f"{where}[{n}]") for n, item in enumerate(value))
    if hint is Hardware:
        if not isinstance(value, Hardware):
            raise ValueError(f"{where}={value!r}: an object as of offload-lab measure --json is needed")
        return value
    if hasattr(hint, "__dataclass_fields__"):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}={value!r}: an object is needed")
        return _read(hint, value, where)
    allowed = (int, float) if hint is float else (hint,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{where}={value!r}: {hint.__name__} is needed")
    if hint in (int, float) and not (0 <= value < float("inf")):
        raise ValueError(f"{where}={value!r}: a finite number of at least 0 is needed")
    return value
