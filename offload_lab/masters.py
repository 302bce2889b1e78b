"""The usual way to train a 16-bit model with torch's own AdamW: float32 masters, kept beside it in RAM.

This is what offloading is compared with. For a bfloat16 model it takes 2 (weight) + 2 (gradient) + 4 (master) + 4 + 4
(moments) bytes a parameter, and 4 more for float32 gradients while it steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class MasterWeights:
    """`factory(masters)` builds the optimizer over float32 copies of `parameters`; `step()` carries gradients to them and
    weights back, rounded to nearest even. float32 parameters are their own masters."""

    def __init__(
        self, parameters: Iterable[torch.Tensor], factory: Callable[[list[torch.Tensor]], torch.optim.Optimizer]
    ) -> None:
        self._parameters = list(parameters)
        self._masters = [
            parameter
            if parameter.dtype == torch.float32
            else torch.nn.Parameter(parameter.detach().float(), requires_grad=parameter.requires_grad)
            for parameter in self._parameters
        ]
        self.optimizer = factory(self._masters)
        self._gradient_bytes = 0

    @torch.no_grad()
    def step(self) -> None:
        """One step of the optimizer. Each 16-bit gradient is given up as soon as its float32 copy exists."""
        copies = [(p, m) for p, m in zip(self._parameters, self._masters, strict=True) if p is not m]
        for parameter, master in copies:
            master.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None
            self._gradient_bytes += _nbytes(master) if master.grad is not None else 0
        self.optimizer.step()
        for parameter, master in copies:
            parameter.copy_(master)
            master.grad = None
        self._gradient_bytes = 0

    def zero_grad(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def memory(self) -> dict[str, int]:
        """Bytes of masters, of their gradients while a step runs, and of the optimizer's tensors: {"ram": …, "disk": 0}."""
        copies = [m for p, m in zip(self._parameters, self._masters, strict=True) if p is not m]
        # Counted by `step`: a meter calls this from its own thread, and reading `master.grad` there crashes the process.
        return {"ram": sum(map(_nbytes, copies)) + self._gradient_bytes + state_bytes(self.optimizer), "disk": 0}


def _nbytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def state_bytes(optimizer: Any) -> int:
    """Bytes of the state tensors of a torch optimizer; step counts, one scalar a parameter, are left out."""
    tensors = [value for entry in list(optimizer.state.values()) for value in list(entry.values())]
    return sum(_nbytes(t) for t in tensors if isinstance(t, torch.Tensor) and t.dim() > 0)
