"""Which model the Colab lab trains: one whose AdamW does not fit on the card, and whose weights and gradients do. Pure.

Every figure is predicted, by `offload_lab.state_bytes`. Parameter counts follow from a model's shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from offload_lab.partition import STATE_BYTES
from offload_lab.state_bytes import readable, training_bytes
from quizzes.say import _

GUARD = 0.6
"""Of the memory that is free, what the state may take: the rest is Python's, torch's, and a model's while it is loaded."""
_DISK_GUARD = 0.6  # a checkpoint is written beside it
_ACTIVATIONS = 1_500_000_000  # on a card: room for activations of a small batch, and what its driver takes
_BEYOND = 1.02  # AdamW shall miss the card by more than a rounding
_LIMIT = 14  # bytes a parameter: what plays the card where there is none
_DTYPES = ("float32", "bfloat16")  # in this order: with float32 it is torch's AdamW as it comes, without masters


@dataclass(frozen=True)
class Shape:
    """A GPT-NeoX of the hub: layers, width, and rows of each of its two embeddings."""

    name: str
    layers: int
    width: int
    rows: int = 50_304

    @property
    def parameters(self) -> int:
        """A block has 12 width² weights, 9 width biases and 4 width of two layer norms; one norm more comes last."""
        return self.layers * (12 * self.width**2 + 13 * self.width) + 2 * self.width + 2 * self.rows * self.width


# Biderman et al., "Pythia: A Suite for Analyzing Large Language Models Across Training and Scaling", 2023: shapes of table 1.
PYTHIA = (
    Shape("EleutherAI/pythia-70m", 6, 512),
    Shape("EleutherAI/pythia-160m", 12, 768),
    Shape("EleutherAI/pythia-410m", 24, 1024),
    Shape("EleutherAI/pythia-1b", 16, 2048),
    Shape("EleutherAI/pythia-1.4b", 24, 2048),
    Shape("EleutherAI/pythia-2.8b", 32, 2560),
    Shape("EleutherAI/pythia-6.9b", 32, 4096, 50_432),
    Shape("EleutherAI/pythia-12b", 36, 5120, 50_688),
)


@dataclass(frozen=True)
class Room:
    """What a machine has, in bytes. `card` is 0, and `device` "cpu", where it has no accelerator."""

    device: str
    name: str
    card: int
    card_free: int
    ram_free: int
    disk_free: int
    sixteen_bit: bool = True
    """Whether the accelerator computes in bfloat16."""

    def __str__(self) -> str:
        if self.card:
            told = _("GPU    {name}: {total} of memory, {free} free")
            first = told.format(name=self.name, total=readable(self.card), free=readable(self.card_free))
        else:
            first = _("GPU    none: the same cells run on the CPU, with a smaller model, and a hard limit plays the card")
        rest = _("RAM    {ram} free\ndisk   {disk} free in this folder")
        return first + "\n" + rest.format(ram=readable(self.ram_free), disk=readable(self.disk_free))


@dataclass(frozen=True)
class Choice:
    """A model and how it is trained. `card` is what the card holds, or the limit that plays it, in bytes."""

    model: str
    parameters: int
    dtype: str
    device: str
    card: int
    ram_budget: int | None
    """Most bytes of state in RAM; None: all of it fits."""
    layers: int = 0
    width: int = 0
    """Of a TinyGPT; 0 for a model of the hub."""
    context: int = 64
    batch: int = 4
    lr: float = 1e-3
    buffers: int = 8_000_000
    """Bytes of RAM that the disk tier may take."""

    @property
    def pretrained(self) -> bool:
        return not self.layers

    @property
    def state(self) -> int:
        """Bytes of optimizer state."""
        return STATE_BYTES[self.dtype] * self.parameters

    @property
    def on_card(self) -> Mapping[str, int]:
        """What the card has to hold, in bytes, activations left out: with plain AdamW, and with the state elsewhere."""
        adamw = training_bytes(self.parameters, self.dtype, "adamw").peak_bytes
        return {"AdamW": adamw, "offloaded": beside_state(self.parameters, self.dtype)}

    def __str__(self) -> str:
        whence = _("pretrained, from the hub") if self.pretrained else _("random weights: it learns to read from nothing")
        lines = [
            _("{model}, {count:,} parameters in {dtype} ({whence})").format(
                model=self.model, count=self.parameters, dtype=self.dtype, whence=whence
            )
        ]
        for name, needed in self.on_card.items():
            verdict = _("fits") if needed < self.card else _("does not fit")
            told = _("{name:10} {needed:>8} on a card of {card}: {verdict}")
            lines.append(told.format(name=name, needed=readable(needed), card=readable(self.card), verdict=verdict))
        disk = training_bytes(self.parameters, self.dtype, "disk").disk_bytes
        told = _("state      {state:>8} in RAM, or {disk} on the disk")
        lines.append(told.format(state=readable(self.state), disk=readable(disk)))
        if self.ram_budget is not None:
            told = _("           of it {budget} may stay in RAM, the rest streams: more would be over 60 % of what is free")
            lines.append(told.format(budget=readable(self.ram_budget)))
        return "\n".join([*lines, _("           (predicted, without activations)")])


def beside_state(parameters: int, dtype: str) -> int:
    """Bytes of weights and gradients."""
    kinds = training_bytes(parameters, dtype, "ram").ram
    return kinds["weights"] + kinds["gradients"]


def choose(room: Room, download: bool = False) -> Choice:
    """The smallest model that does not fit with AdamW, and does when its state is elsewhere.

    With `download` a pretrained one of the hub, where one fits; else a TinyGPT with random weights, made to the card's measure.
    Raises ValueError where the disk has no room for its state.
    """
    if not room.card:
        return _on_cpu(room, download)
    if download:
        for shape, dtype in _candidates(room):
            if _fits(shape.parameters, dtype, room):
                return _made(room, shape.name, shape.parameters, dtype, context=256, batch=1, lr=1e-5)
    layers, width, context = 1, 2048 if room.card > 4_000_000_000 else 512, 256
    while training_bytes(tiny(layers, width, context), "float32", "adamw").steady_bytes < _BEYOND * room.card:
        layers += 1
    parameters = tiny(layers, width, context)
    if not _fits(parameters, "float32", room):
        disk = training_bytes(parameters, "float32", "disk").disk_bytes
        said = _("a model that AdamW cannot train on this card needs {disk} of disk and a card that is nearly empty; there are "
                 "{free} and {card}. Make room, or restart the runtime.")  # fmt: skip
        raise ValueError(said.format(disk=readable(disk), free=readable(room.disk_free), card=readable(room.card_free)))
    return _made(room, "TinyGPT", parameters, "float32", layers=layers, width=width, context=context, batch=2, lr=3e-4)


def tiny(layers: int, width: int, context: int) -> int:
    """Parameters of a TinyGPT over bytes (`offload_lab.training`)."""
    return layers * (12 * width**2 + 2 * width) + (256 + context + 1) * width


def _candidates(room: Room) -> Iterator[tuple[Shape, str]]:
    for dtype in _DTYPES if room.sixteen_bit else _DTYPES[:1]:
        for shape in PYTHIA:
            yield shape, dtype


def _fits(parameters: int, dtype: str, room: Room) -> bool:
    """Whether AdamW does not fit on the card, and weights and gradients do, and their state on the disk."""
    with_adamw = training_bytes(parameters, dtype, "adamw").steady_bytes
    offloaded = beside_state(parameters, dtype) + min(_ACTIVATIONS, room.card // 4)
    on_disk = training_bytes(parameters, dtype, "disk").disk_bytes
    return with_adamw > _BEYOND * room.card and offloaded < room.card_free and on_disk < _DISK_GUARD * room.disk_free


def _made(room: Room, model: str, parameters: int, dtype: str, **more: Any) -> Choice:
    budget = int(GUARD * room.ram_free)
    ram_budget = None if STATE_BYTES[dtype] * parameters <= budget else budget
    more.setdefault("buffers", 256_000_000)
    return Choice(model, parameters, dtype, room.device, more.pop("card", room.card), ram_budget, **more)


def _on_cpu(room: Room, download: bool) -> Choice:
    if download:
        shape = PYTHIA[0]
        named = {"context": 64, "batch": 1, "lr": 1e-5, "buffers": 64_000_000}
        return _made(room, shape.name, shape.parameters, "float32", card=_LIMIT * shape.parameters, **named)
    layers, width, context = 4, 384, 64
    parameters = tiny(layers, width, context)
    shape_of = {"layers": layers, "width": width, "context": context, "batch": 2, "buffers": 8_000_000}
    return _made(room, "TinyGPT", parameters, "float32", card=_LIMIT * parameters, **shape_of)
