"""Parameters whose update is still on its way: whoever reads one waits for it, and nobody else does.

While a parameter is pending its class is `PendingParameter`, whose `__torch_function__` sees every torch function and method
before it runs: a module's forward, `state_dict()`, `.data`, `numpy()`, `copy_()`. It waits for that parameter, gives it its
class back, and lets the call go on. Whatever touches a weight is thereby held back exactly as long as it must be, with no
hook in the model. Two things pass unseen: an alias of the weight made before the step (a view, `.data`, a NumPy array), and
compiled code (`torch.compile`), for which the optimizer does not defer at all; what is compiled while a step is under way waits
for it before it is traced.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import torch

# What can be asked of a parameter without looking at its values. Reading `.grad` is not among these: the update reads that
# memory too, and the next thing somebody does with it may be to overwrite it.
_HARMLESS = {
    getter
    for name in ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf", "grad_fn", "ndim", "itemsize")
    for getter in [getattr(torch.Tensor, name).__get__]
} | {
    torch.Tensor.requires_grad.__set__,
    torch.Tensor.grad.__set__,
    torch.Tensor.grad.__delete__,
    torch.Tensor.numel,
    torch.Tensor.dim,
    torch.Tensor.size,
    torch.Tensor.stride,
    torch.Tensor.element_size,
    torch.Tensor.is_contiguous,
    torch.Tensor.is_floating_point,
    torch.Tensor.is_complex,
    torch.Tensor.__len__,
    torch.Tensor.__hash__,
}
_PLAIN = (torch.nn.Parameter, torch.Tensor)


class PendingParameter(torch.nn.Parameter):
    """A parameter in waiting. Nothing of this class is ever made: `defer` lends it to a parameter, the first reader ends it."""

    _offload_wait: tuple[type, Callable[[], None], Any, str | None]

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _HARMLESS:
            _settle_all((args, kwargs))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)


class _PendingTensor(torch.Tensor):
    __torch_function__ = PendingParameter.__torch_function__


def can_wait(parameter: torch.Tensor) -> bool:
    """Whether readers of `parameter` can be made to wait: not with a class of the user's own (a DTensor, say)."""
    return type(parameter) in _PLAIN or "_offload_wait" in parameter.__dict__


def compiler_in_use() -> bool:
    """Whether `torch.compile` was called in this process: what it compiles reads parameters without asking."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    return compiler is not None and any(backend is not None for backend in compiler.cached_backends.values())


def before_compiling(work: Callable[..., None]) -> None:
    """Let `torch.compile` call `work` before it traces anything: its tracer cannot look at a parameter that waits. To be said
    again with each step, since `torch.compiler.reset` makes it forget."""
    handler = importlib.import_module("torch._dynamo.callback").callback_handler  # every optimizer of torch has imported it
    if work not in handler.start_callbacks:
        handler.register_start_callback(work)


def defer(parameter: torch.Tensor, wait: Callable[[], None], refuse: str | None = None) -> None:
    """Make every reader of `parameter` call `wait()` first, once; and every backward that adds to its gradient, since a
    graph that is older than the step may do that without reading the weight. With `refuse`, readers get a RuntimeError
    that says so, until `allow`."""
    give_back(parameter)
    guard = None
    if parameter.requires_grad and refuse is None:
        guard = parameter.register_hook(lambda gradient: settle(parameter))
    parameter._offload_wait = (type(parameter), wait, guard, refuse)
    parameter.__class__ = PendingParameter if isinstance(parameter, torch.nn.Parameter) else _PendingTensor


def settle(parameter: torch.Tensor) -> None:
    """Wait for `parameter`, if it is pending, and give it its class back. Raises what `wait` raises, once."""
    pending = parameter.__dict__.get("_offload_wait")
    if pending is None:
        return
    _, wait, _, refuse = pending
    if refuse is not None:
        raise RuntimeError(refuse)
    try:
        wait()
    except KeyboardInterrupt:  # the update goes on, and so does the need to wait for it
        raise
    except BaseException:
        give_back(parameter)
        raise
    give_back(parameter)


def give_back(parameter: torch.Tensor) -> None:
    """Let everybody read `parameter` from now on."""
    pending = parameter.__dict__.pop("_offload_wait", None)
    if pending is None:
        return
    parameter.__class__, _, guard, _ = pending
    if guard is not None:
        guard.remove()


def allow(parameter: torch.Tensor) -> None:
    """Let those who read `parameter` wait for it, where they were refused."""
    pending = parameter.__dict__.get("_offload_wait")
    if pending is not None:
        defer(parameter, pending[1])


def _settle_all(value: Any) -> None:
    if isinstance(value, torch.Tensor):
        settle(value)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            _settle_all(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            _settle_all(entry)
