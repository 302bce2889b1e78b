"""The small GPT, its text and the loop that the lessons and the demonstration share.

The model reads bytes, so it needs no tokenizer; the text is the help that ships with Python, so it needs no download.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pydoc_data import topics
from typing import Any

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a TinyGPT. `dtype` is that of its weights; it computes in float32 whatever they are."""

    layers: int = 2
    width: int = 128
    heads: int = 4
    context: int = 64
    dtype: torch.dtype = torch.float32
    vocabulary: int = 256
    tied: bool = True
    """Whether the head is the byte embedding, one Parameter in two places, or has weights of its own."""

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "context", "vocabulary"):
            if getattr(self, name) < 1:
                raise ValueError(f"GPTConfig({name}={getattr(self, name)}): at least 1 is needed")
        if self.width % self.heads:
            raise ValueError(f"GPTConfig: width={self.width} cannot be shared by heads={self.heads}; make it a multiple")


class _CastLinear(torch.autograd.Function):
    """`inputs @ weight.T` in float32, keeping only the inputs and the stored weight for backward.

    The weight is cast where it is used, twice, so that no float32 copy of a 16-bit weight waits for backward. float32
    arithmetic because bfloat16 matrix products are slow on processors without them, and so that the losses of runs that
    keep their state in different places can be compared to the last digits.
    """

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(inputs, weight)
        return functional.linear(inputs, weight.float())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        inputs, weight = ctx.saved_tensors
        wanted_inputs, wanted_weight = ctx.needs_input_grad
        to_inputs = gradient @ weight.float() if wanted_inputs else None
        to_weight = None
        if wanted_weight:
            to_weight = (gradient.flatten(0, -2).T @ inputs.flatten(0, -2)).to(weight.dtype)
        return to_inputs, to_weight


class CastLinear(nn.Module):
    """A linear layer without bias: weight (outputs, inputs) in its own dtype, float32 in and out."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return _CastLinear.apply(inputs, self.weight)


class CastNorm(nn.Module):
    """Layer normalisation over the last dimension with a gain in its own dtype, float32 in and out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(inputs, self.gain.shape, self.gain.float())


class Block(nn.Module):
    """Attention to what came before, then a two-layer network, each added to the stream: 12 · width² weights and two gains."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = CastNorm(width), CastNorm(width)
        self.qkv, self.out = CastLinear(width, 3 * width), CastLinear(width, width)
        self.up, self.down = CastLinear(width, 4 * width), CastLinear(4 * width, width)

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        batch, length, width = stream.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(stream)).split(width, dim=2)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        stream = stream + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return stream + self.down(functional.gelu(self.up(self.norm2(stream))))


class TinyGPT(nn.Module):
    """A GPT over bytes: (batch, length) int64 in, logits (batch, length, vocabulary) float32 out.

    The same seed gives the same weights; those of a 16-bit model are the float32 ones, rounded.
    """

    def __init__(self, config: GPTConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.bytes = nn.Parameter(torch.empty(config.vocabulary, config.width))
        self.places = nn.Parameter(torch.empty(config.context, config.width))
        self.blocks = nn.ModuleList(Block(config.width, config.heads) for _ in range(config.layers))
        self.norm = CastNorm(config.width)
        self.head = CastLinear(config.width, config.vocabulary)
        if config.tied:
            self.head.weight = self.bytes
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.dim() == 2:
                    # Layers that write into the stream start smaller, so that depth does not blow it up (as in GPT-2).
                    depth = 2 * config.layers if name.endswith(("out.weight", "down.weight")) else 1
                    parameter.normal_(0, 0.02 / depth**0.5, generator=generator)
        self.to(config.dtype)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        length = inputs.shape[1]
        if length > self.config.context:
            raise ValueError(f"{length} bytes do not fit into this model's context of {self.config.context}")
        stream = functional.embedding(inputs, self.bytes).float() + self.places[:length].float()
        for block in self.blocks:
            stream = block(stream)
        return self.head(self.norm(stream))

    def parameter_count(self) -> int:
        """Trainable elements, each tied weight once."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


def corpus() -> torch.Tensor:
    """The help texts of Python itself, as uint8 bytes; in the order of their names, so that it is the same every time."""
    text = "\n\n".join(f"{name}\n{body}" for name, body in sorted(topics.topics.items()))
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


class Batches:
    """An endless iterator over (inputs, targets), each (batch, context) int64; the same sequence for the same seed."""

    def __init__(self, text: torch.Tensor, batch: int, context: int, seed: int = 0) -> None:
        if len(text) <= context + 1:
            raise ValueError(f"a text of {len(text)} bytes is too short for a context of {context}")
        self._text, self._batch, self._context = text, batch, context
        self._generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return self

    def __next__(self) -> tuple[torch.Tensor, torch.Tensor]:
        starts = torch.randint(len(self._text) - self._context - 1, (self._batch,), generator=self._generator)
        rows = torch.stack([self._text[start : start + self._context + 1] for start in starts]).long()
        return rows[:, :-1], rows[:, 1:]


def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy a byte, in nats, as a float32 scalar."""
    return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def train(
    model: nn.Module,
    optimizer: Any,
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]],
    steps: int,
    *,
    on_step: Callable[[int, float], None] | None = None,
    stop: threading.Event | None = None,
    meter: Any = None,
) -> list[float]:
    """Train for `steps`; return the loss of each. `on_step(step, loss)` is called after each, counting from 1.

    `stop` ends it between two steps. A `meter` (offload_lab.meter.Meter) counts the activations. What `on_step` raises is
    raised here.
    """
    losses: list[float] = []
    for step in range(1, steps + 1):
        if stop is not None and stop.is_set():
            break
        inputs, targets = next(batches)
        optimizer.zero_grad()
        with meter.watching() if meter is not None else nullcontext():
            loss = loss_of(model, inputs, targets)
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
        del loss
        if on_step is not None:
            on_step(step, losses[-1])
    return losses
