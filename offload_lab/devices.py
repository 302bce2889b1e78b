"""Parameters and gradients as the update loop needs them: contiguous, in host memory, at an address, now or partition by
partition."""

from __future__ import annotations

from typing import Any

import torch

from offload_lab.link import Link, link_of


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
    link: Link | None = None

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


class LinkedView:
    """As `HostView`, for a contiguous parameter on an accelerator, of which a partition is in host memory at a time: its
    `weight` and `gradient` (flat, on the device) pass through `Staging` over `link`, once the device has passed `after`."""

    __slots__ = ("after", "gradient", "gradient_address", "link", "weight", "wide")
    words = 0  # it has no address in host memory
    copied = True

    def __init__(self, parameter: torch.Tensor, gradient: torch.Tensor | None, link: Link, after: Any) -> None:
        # An alias with a version counter of its own: the step is booked on the parameter's before it is carried out.
        self.weight = parameter.data.view(-1)
        self.link, self.after = link, after
        self.wide = gradient is not None and gradient.dtype is torch.float32 and parameter.dtype is not torch.float32
        self.gradient: torch.Tensor | None = None
        if gradient is not None:
            dtype = torch.float32 if self.wide else parameter.dtype
            self.gradient = gradient.detach().resolve_neg().to(parameter.device, dtype).reshape(-1)
        self.gradient_address = -1 if gradient is not None else 0  # there is one, somewhere else

    def finish(self) -> None:
        """Let go of the gradient."""
        self.gradient = None


View = HostView | LinkedView


class Views:
    """Makes the views of one moment: what the accelerators have been told to do until now comes before every copy."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[Link, Any]] = {}

    def of(self, parameter: torch.Tensor, gradient: torch.Tensor | None) -> View:
        link = link_of(parameter)
        if link is None or not parameter.is_contiguous():
            return HostView(parameter, gradient)
        if id(link) not in self._marks:
            self._marks[id(link)] = (link, link.now())
        return LinkedView(parameter, gradient, link, self._marks[id(link)][1])
