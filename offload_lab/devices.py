"""Parameters and gradients as the update loop needs them: contiguous, in host memory, at an address."""

from __future__ import annotations

import torch


def in_host_memory(tensor: torch.Tensor) -> bool:
    """Whether the update loop can work on `tensor` where it is."""
    return tensor.is_cpu and tensor.is_contiguous()


class HostView:
    """One parameter and its gradient for the length of one step: their addresses, and what keeps these alive.

    Where both are contiguous in host memory these are the tensors' own; where one is on an accelerator, strided, or of
    another dtype, a host copy's, and `finish` carries the new weight back. The gradient is of the weight's dtype or float32
    (`wide`: a 16-bit parameter's is float32). `gradient_address` is 0 where there is none.
    """

    __slots__ = ("_copy", "_target", "gradient", "gradient_address", "wide", "words")

    def __init__(self, parameter: torch.Tensor, gradient: torch.Tensor | None) -> None:
        self._copy: torch.Tensor | None = None
        if not in_host_memory(parameter):
            self._copy = parameter.detach().to("cpu", memory_format=torch.contiguous_format).contiguous()
            # An alias with a version counter of its own: the step is booked on the parameter's before it is carried out.
            self._target = parameter.data
        self.words = (parameter if self._copy is None else self._copy).data_ptr()
        self.gradient: torch.Tensor | None = None
        self.gradient_address, self.wide = 0, False
        if gradient is not None:
            dtype = parameter.dtype
            self.wide = gradient.dtype is torch.float32 and dtype is not torch.float32
            if (
                not in_host_memory(gradient)
                or (gradient.dtype is not dtype and not self.wide)  # float32 is more exact, never less
                or gradient.is_neg()
            ):
                dtype = torch.float32 if self.wide else dtype
                gradient = gradient.detach().resolve_neg().to("cpu", dtype).contiguous()
            self.gradient = gradient
            self.gradient_address = gradient.data_ptr()

    @property
    def copied(self) -> bool:
        """Whether the weight is updated in a copy."""
        return self._copy is not None

    def finish(self) -> None:
        """Carry the new weight to the parameter, if it was updated in a copy, and let go of the gradient."""
        if self._copy is not None and self.gradient is not None:
            with torch.no_grad():
                self._target.copy_(self._copy)
        self.gradient = None
