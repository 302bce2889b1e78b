"""Small runs of lesson 9: a real monitor over made-up times, and a training whose files can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.health import Alarm, Monitor, Thresholds


def watched(times: Sequence[float], losses: Sequence[float] | None = None, **thresholds: Any) -> list[tuple[int, Alarm]]:
    """(step, alarm) for each alarm that a real monitor raises on made-up `times`, in seconds, and losses; steps from 1."""
    now, found = 0.0, []
    weight = torch.nn.Parameter(torch.ones(8))
    with OffloadAdamW([weight]) as optimizer:
        monitor = Monitor(optimizer, Thresholds(**thresholds), clock=lambda: now)
        for number, seconds in enumerate(times):
            weight.grad = torch.ones(8)
            optimizer.step()
            now += seconds
            raised = monitor.observe(losses[number] if losses else None)
            found += [(number + 1, alarm) for alarm in raised]
    return found


def trained(folder: Path, numel: int = 100_000) -> torch.Tensor:
    """Train two steps of `numel` bfloat16 parameters with the state in `folder`/state, and save a checkpoint beside it as
    torch does, `save.pt`; the weights."""
    weight = torch.nn.Parameter(torch.linspace(-1, 1, numel).bfloat16())
    policy = OffloadPolicy(tier="disk", directory=folder / "state")
    with OffloadAdamW([weight], lr=0.01, offload=policy) as optimizer:
        for _ in range(2):
            weight.grad = torch.full_like(weight, 0.5)
            optimizer.step()
        torch.save(optimizer.state_dict(), folder / "save.pt")
    return weight.detach()
