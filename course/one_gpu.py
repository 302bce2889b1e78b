"""The Colab lab's machine, model and text. What is decided is decided in `fitting.py`; here it is measured and loaded.

No test of this project runs on a GPU: the functions that are named `_gpu_…` hold all lines that need one. They were tried
with a stand-in for `torch.cuda` only.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course.fitting import Choice, Room, choose
from offload_lab.auto import available_memory
from offload_lab.demo_child import is_out_of_memory
from offload_lab.meter import Reading
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus
from quizzes.say import N_, _

_CHARACTERS = 200_000  # of the text: more is not read in a lesson
TIERS = (N_("card"), N_("RAM"), N_("disk"))


class LabError(RuntimeError):
    """A model cannot be had; the message says why, and what to do."""


def room(folder: str | Path = ".") -> Room:
    """What this machine has now, measured; its disk is that of `folder`."""
    free = {"ram_free": available_memory(), "disk_free": shutil.disk_usage(folder).free}
    if not torch.cuda.is_available():
        return Room("cpu", "", 0, 0, **free)
    return Room("cuda", **_gpu_room(), **free)


def fetched(choice: Choice, here: Room) -> Choice:
    """`choice`, once its model is in the hub's cache on this machine; nothing is fetched for a model with random weights.

    Where it cannot be had, says why, and gives the model with random weights instead.
    """
    if not choice.pretrained:
        return choice
    try:
        _hub(choice)
    except LabError as error:
        print(_("{error}\nA model with random weights takes its place.").format(error=error))
        return choose(here)
    return choice


def load(choice: Choice) -> tuple[nn.Module, Iterator[tuple[torch.Tensor, torch.Tensor]]]:
    """The model where it is trained, and its batches, (inputs, targets) without end, each (batch, context) int64.

    The same choice gives the same weights and the same batches every time. Raises LabError where the model cannot be had.
    """
    if choice.pretrained:
        model, text = _hub(choice)
    else:
        heads = max(1, choice.width // 64)
        shape = GPTConfig(choice.layers, choice.width, heads, choice.context, dtype=getattr(torch, choice.dtype))
        model, text = TinyGPT(shape), corpus()
    batches = Batches(text, choice.batch, choice.context)
    if choice.device != "cpu":
        model = model.to(choice.device)
    return model, _on(batches, choice.device)


def _on(batches: Batches, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for inputs, targets in batches:
        yield inputs.to(device), targets.to(device)


class Logits(nn.Module):
    """A model of the hub, called as a TinyGPT is: int64 (batch, length) in, float32 logits (batch, length, vocabulary) out."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=inputs, use_cache=False).logits.float()


def _hub(choice: Choice) -> tuple[nn.Module, torch.Tensor]:
    """Model and text, as numbers of its tokens. `choice.model` is a name on the hub, or a folder. Raises LabError."""
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        said = _("{model} needs transformers, which is not installed ({error}). On Colab it is there; else pip install "
                 "transformers, or leave DOWNLOAD = False.")  # fmt: skip
        raise LabError(said.format(model=choice.model, error=error)) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(choice.model)
        inner = AutoModelForCausalLM.from_pretrained(choice.model)
    except (OSError, ValueError) as error:  # no network, no such model, a file that is damaged
        lines = str(error).strip().splitlines()
        said = _("{model} cannot be had: {why}")
        raise LabError(said.format(model=choice.model, why=lines[0] if lines else type(error).__name__)) from error
    text = corpus()[:_CHARACTERS].numpy().tobytes().decode(errors="replace")
    # Piece by piece, as a fast tokenizer wants it, and without its warning that a piece is longer than the model's context.
    numbers = [number for piece in text.split("\n\n") for number in tokenizer(piece + "\n\n", verbose=False)["input_ids"]]
    return Logits(inner.to(getattr(torch, choice.dtype))).train(), torch.tensor(numbers)


def let_go(model: nn.Module, optimizer: Any = None) -> None:
    """Give a model's memory back, whoever still holds the model. Closes `optimizer`, if it can be closed."""
    if hasattr(optimizer, "close"):
        optimizer.close()
    for parameter in model.parameters():
        parameter.grad = None
        parameter.data = parameter.data.new_empty(0)
    gc.collect()
    if torch.cuda.is_available():
        _gpu_empty_cache()


def is_full(error: BaseException) -> bool:
    """Whether an error says that a card's memory, or this process's, has no more room."""
    return isinstance(error, torch.OutOfMemoryError) or is_out_of_memory(error)


@dataclass(frozen=True)
class Held:
    """The most bytes at any moment, tier by tier. What lies with the model is counted as the card's, which without a GPU is
    played by this process's own memory."""

    card: int
    ram: int
    disk: int


def tiers(readings: list[Reading]) -> Held:
    """Of the readings of a training whose model is on the card."""
    return Held(
        max((reading.ram - reading.optimizer_ram for reading in readings), default=0),
        max((reading.optimizer_ram for reading in readings), default=0),
        max((reading.optimizer_disk for reading in readings), default=0),
    )


def over_time(readings: list[Reading]) -> dict[str, list[tuple[float, float]]]:
    """Megabytes over seconds, tier by tier, as `course.curves.Curves` draws them."""
    card, ram, disk = (_(tier) for tier in TIERS)
    return {
        card: [(reading.seconds, (reading.ram - reading.optimizer_ram) / 1e6) for reading in readings],
        ram: [(reading.seconds, reading.optimizer_ram / 1e6) for reading in readings],
        disk: [(reading.seconds, reading.optimizer_disk / 1e6) for reading in readings],
    }


# --- what needs a GPU: not run by any test on one -------------------------------------------------------------------------


def _gpu_room() -> dict[str, Any]:
    free, total = torch.cuda.mem_get_info()
    # Older cards pretend: they compute in bfloat16, many times slower.
    native = torch.cuda.get_device_capability() >= (8, 0)
    return {"name": torch.cuda.get_device_name(), "card": total, "card_free": free, "sixteen_bit": native}


def _gpu_empty_cache() -> None:
    torch.cuda.empty_cache()


def _gpu_peak() -> int:
    return torch.cuda.max_memory_allocated()
