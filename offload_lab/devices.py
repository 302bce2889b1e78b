"""Parameters and gradients as the update loop needs them: contiguous, in host memory, at an address."""

from __future__ import annotations

import torch


def in_host_memory(tensor: torch.Tensor) -> bool:
    """Whether the update loop can work on `tensor` where it is."""
    return tensor.device.type == "cpu" and tensor.is_contiguous()


class HostView:
    """One parameter and its gradient for the length of one step.

    Where both are contiguous in host memory these are the tensors themselves; where one is on an accelerator, strided, or
    of another dtype, it is a host copy, and `finish` carries the new weight back. The gradient is of the weight's dtype or
    float32.
    """

    def __init__(self, parameter: torch.Tensor, gradient: torch.Tensor | None) -> None:
        weight = parameter.detach()
        # An alias with a version counter of its own: the step is booked on the parameter's before it is carried out.
        self._target = parameter.data
        self._copied = not in_host_memory(weight)
        self.weight = weight.to("cpu", memory_format=torch.contiguous_format).contiguous() if self._copied else weight
        self.gradient: torch.Tensor | None = None
        if gradient is not None:
            gradient = gradient.detach()
            dtype = torch.float32 if gradient.dtype == torch.float32 else weight.dtype  # float32 is more exact, never less
            if gradient.dtype != dtype or not in_host_memory(gradient) or gradient.is_neg():
                gradient = gradient.resolve_neg().to("cpu", dtype).contiguous()
            self.gradient = gradient

    def finish(self) -> None:
        """Carry the new weight to the parameter, if it was updated in a copy, and let go of the gradient."""
        if self._copied and self.gradient is not None:
            with torch.no_grad():
                self._target.copy_(self.weight)
        self.gradient = None
