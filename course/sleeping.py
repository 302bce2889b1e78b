"""A model whose layers wait instead of computing: compute that has a device of its own, for a machine that has none.

What it trains is real: bfloat16 weights with gradients, through autograd, so that the engine meets what it would meet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

from offload_lab.trace import Event


class _Layer(torch.autograd.Function):
    """Reads its weight when it starts; its gradient is there when it ends. Backward takes twice as long as forward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, model: SleepingModel, number: int) -> torch.Tensor:
        ctx.model, ctx.number = model, number
        weight.data_ptr()  # what launching a kernel does; weights that are pending were waited for before this
        model._compute("forward", number, model.seconds)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[Any, ...]:
        ctx.model._compute("backward", ctx.number, 2 * ctx.model.seconds)
        return upstream, ctx.model.gradients[ctx.number].clone(), None, None


class SleepingModel:
    """`layers` bfloat16 weights of `numel` elements. A forward waits `seconds` a layer, a backward twice that.

    `events` says when: lanes "forward" and "backward", and the layer as the partition. Same weights for the same seed.
    """

    def __init__(self, layers: int, numel: int, seconds: float = 0.0, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        draws = [torch.randn(2, numel, generator=generator).bfloat16() for _ in range(layers)]
        self.weights = [torch.nn.Parameter(draw[0].clone()) for draw in draws]
        self.gradients = [draw[1].clone() for draw in draws]
        self.seconds = seconds
        self.events: list[Event] = []

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return iter(self.weights)

    def forward(self) -> torch.Tensor:
        x = torch.zeros((), requires_grad=True)
        for number, weight in enumerate(self.weights):
            x = _Layer.apply(x, weight, self, number)
        return x

    def train_step(self, optimizer: Any) -> None:
        """Forward, backward, step."""
        optimizer.zero_grad()
        self.forward().backward()
        optimizer.step()

    def _compute(self, lane: str, number: int, seconds: float) -> None:
        begun = time.perf_counter()
        time.sleep(seconds)
        self.events.append(Event(lane, lane, number, begun, time.perf_counter(), 0))
