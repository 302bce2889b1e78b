"""OffloadAdam and OffloadAdamW: `torch.optim.Optimizer`s whose state lives in RAM or on disk."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import math
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from offload_lab import checkpoint, gradients, report, sharded
from offload_lab.backward import BackwardUpdates
from offload_lab.engine import Engine
from offload_lab.groups import check_group, check_overlap, without_duplicates
from offload_lab.persistent import PersistentOptimizer
from offload_lab.pipeline import uninterrupted
from offload_lab.policy import OffloadPolicy
from offload_lab.schedule import Task
from offload_lab.trace import Recorder
from offload_lab.verify import Verdict, verify_optimizer

_live: weakref.WeakValueDictionary[str, OffloadAdam] = weakref.WeakValueDictionary()


class OffloadAdam(PersistentOptimizer):
    """`torch.optim.Adam` (L2 weight decay, default 0) with its state where `offload` says.

    Arguments and defaults are torch's; `foreach`, `fused` and `capturable` choose among torch's own kernels and `foreach`
    and `fused` are accepted and ignored here. Raises TypeError for a parameter whose state can't be kept (complex,
    float64, sparse), ValueError for a setting that is out of range, contradictory or not supported (`capturable`,
    `differentiable`; `amsgrad` with moments in 8 bits), DirectoryInUse where another optimizer works in the directory,
    StorageError where the disk refuses. A step whose gradients are not all finite changes nothing, warns, and counts in
    `stats()["skipped_steps"]`.
    """

    _decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
        offload: OffloadPolicy | None = None,
    ) -> None:
        self._engine: Engine | None = None
        self._known: tuple[list[tuple[dict[str, Any], int]], list[tuple[int, dict[str, Any]]]] = ([], [])
        self._decoupled = self._decoupled or decoupled_weight_decay
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": self._decoupled,
        }
        policy = OffloadPolicy() if offload is None else offload
        if not isinstance(policy, OffloadPolicy):
            raise TypeError(f"offload= takes an OffloadPolicy, not {type(policy).__name__}")
        # torch imports this with the first optimizer, for a second or more, and a Ctrl-C in there can be lost: mpmath, which it
        # brings along, catches everything around an import of its own.
        uninterrupted(lambda: importlib.import_module("torch._dynamo"))
        super().__init__(params, defaults)
        if policy.tier == "ram" and any(group.get("tier") == "disk" for group in self.param_groups):
            raise ValueError(
                'a parameter group asks for tier="disk", and the policy names no directory: build the optimizer with '
                'OffloadPolicy(tier="disk", directory=…, ram_budget=…) and give the groups that stay in RAM tier="ram"'
            )
        check_overlap(self._named())
        for directory in policy.directories:
            self._take_over(sharded.directory_of_rank(directory))
        myself = weakref.ref(self)  # the engine must not keep the optimizer alive, or it would never be collected
        engine = Engine(policy, lambda: myself()._describe_groups())
        try:
            engine.follow(self._followed())
            if engine.files is not None and engine.files.found is not None:
                checkpoint.resume(engine, engine.files.found)
                self._apply_groups(engine.files.found.newest.groups)
        except BaseException:
            engine.abandon()
            raise
        if policy.overlap == "backward":
            engine.stepping.backward = BackwardUpdates(engine.stepping, lambda: myself()._numbered(), self._decoupled)
        self._engine = engine
        self._mark_state()
        # Closes when the optimizer is collected, and at the end of the process, without keeping the optimizer alive.
        weakref.finalize(self, engine.close, "it was garbage-collected")
        if engine.files is not None:
            for directory in engine.files.directories:
                _live[str(directory)] = self

    # --- construction ---------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, as `torch.optim.Optimizer.add_param_group`; its state is made room for at once."""
        known = len(self.param_groups)
        if self._engine is not None:
            self._engine.usable()
        super().add_param_group(without_duplicates(param_group))
        group = self.param_groups[known]
        try:
            check_group(group)
            for name, parameter in self._named()[-len(group["params"]) :] if group["params"] else []:
                gradients.check_parameter(parameter, name)
            if self._engine is not None:
                check_overlap(self._named())
                self._engine.follow(self._followed()[len(self._engine.tracked) :])
                if self._engine.stepping.backward is not None:
                    self._engine.stepping.backward.follow()
        except BaseException:
            del self.param_groups[known]
            raise

    def _followed(self) -> list[tuple[torch.Tensor, str, bool, str | None]]:
        """Every parameter in order as the engine follows it: with its name, whether its group is of amsgrad, and its tier."""
        groups = [group for group in self.param_groups for _ in group["params"]]
        return [
            (parameter, name, bool(group["amsgrad"]), "ram" if group.get("tier") == "device" else group.get("tier"))
            for (name, parameter), group in zip(self._named(), groups, strict=True)
        ]

    def _take_over(self, directory: Path) -> None:
        """Close an optimizer of this process that works in `directory`, where it is plainly the one being replaced: it has
        our parameters, or this is an interactive session in which a cell is run again."""
        other = _live.get(os.path.abspath(directory))
        if other is None or other._engine is None or other._engine.closed is not None:
            return
        mine = {id(parameter) for _, parameter in self._named()}
        interactive = hasattr(sys, "ps1") or hasattr(builtins, "__IPYTHON__")
        if interactive or mine & {id(parameter) for _, parameter in other._named()}:
            warnings.warn(
                f"the optimizer that worked in {str(directory)!r} was still open; it is closed now, and this one takes over",
                stacklevel=3,
            )
            other._engine.close("another optimizer was built in its directory")

    # --- stepping -------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. Ctrl-C during it takes effect after it: the step is whole.

        Returns what `closure` returned. Raises RuntimeError when closed or after a failure, StorageError when the disk
        refuses; the last published step then stands in the directory.
        """
        engine = self._usable()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        numbered = self._numbered()
        skipped = uninterrupted(lambda: engine.step(numbered, self._decoupled))
        if engine.tracked and engine.tracked[0].sharded and not self.state:
            self._mark_state()
        if skipped:
            warnings.warn(skipped, stacklevel=2)
        return loss

    def _numbered(self) -> list[tuple[int, dict[str, Any]]]:
        """Every parameter's number, with its group: the same list as long as these groups have as many parameters."""
        counts = [len(group["params"]) for group in self.param_groups]
        known, numbered = self._known
        if counts != [count for _, count in known] or any(
            group is not one for group, (one, _) in zip(self.param_groups, known, strict=True)
        ):
            known = list(zip(self.param_groups, counts, strict=True))
            numbered = list(enumerate(group for group in self.param_groups for _ in group["params"]))
            self._known = known, numbered
        return numbered

    def accumulate(self) -> contextlib.AbstractContextManager[None]:
        """Around every backward before a step but the last, with overlap="backward"; otherwise it does nothing.

        >>> with optimizer.accumulate(): loss(first_half).backward()
        """
        backward = self._usable().stepping.backward
        return contextlib.nullcontext() if backward is None else backward.paused()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As `torch.optim.Optimizer.zero_grad`. None is set without a look at the gradients, which an update that is still
        under way may be reading; zeros are written only after it. A step that backward began (overlap="backward") and that
        `step()` did not end is taken back."""
        if self._engine is not None:
            self._engine.stepping.scale = 1.0
        if self._engine is not None and self._engine.stepping.backward is not None:
            uninterrupted(self._engine.stepping.backward.discard)
        if not set_to_none:
            self.wait()
            return super().zero_grad(set_to_none=False)
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Clip the next step: as `torch.nn.utils.clip_grad_norm_` over all parameters, but the gradients stay as they are
        and are scaled inside the update, in float32. Returns their norm before clipping (0-d, float32).

        `norm_type` is 2 or infinity. A norm that is not finite clips nothing: that step is skipped. Raises ValueError for
        another norm, RuntimeError with overlap="backward", which has used the gradients up by now.
        """
        engine = self._usable()
        if engine.policy.overlap == "backward":
            raise RuntimeError(
                'clipping needs all gradients before the first update, and overlap="backward" updates during backward. '
                'Use overlap="forward", which clips exactly.'
            )
        self.wait()
        present = [parameter.grad for group in self.param_groups for parameter in group["params"]]
        norm = gradients.total_norm([gradient for gradient in present if gradient is not None], float(norm_type))
        if math.isfinite(norm):
            engine.stepping.scale = min(1.0, float(max_norm) / (norm + 1e-6))  # torch's formula
        return torch.tensor(norm, dtype=torch.float32)

    # --- looking and closing --------------------------------------------------------------------------------------

    def memory(self) -> dict[str, int]:
        """Bytes that the state takes now: {"ram": records and buffers, "disk": blocks of the files}."""
        return self._engine.memory() if self._engine is not None else {"ram": 0, "disk": 0}

    def stats(self, *, wait: bool = True) -> dict[str, Any]:
        """What runs, where every byte is, and what the last step moved and waited for; see `report.stats`. After the step
        that is under way; with `wait=False` at once, and the last step is then the last one that is over."""
        if wait:
            self.wait()
        return report.stats(self._usable())

    def __repr__(self) -> str:
        """Groups and settings as torch shows them, then the state and the last step, for a person."""
        groups = super().__repr__()
        if self._engine is None or self._engine.closed is not None:
            return f"{groups}\nclosed" if self._engine is not None else groups
        return f"{groups}\n{report.text(report.stats(self._engine))}"

    def verify(self, model: torch.nn.Module, batch_or_loss: Any, steps: int = 5) -> Verdict:
        """Go on from here for `steps` steps, on copies, beside `torch.optim` and float64, and say how far apart they are.

        `model` has this optimizer's parameters; `batch_or_loss` is what `offload_lab.verify` takes. Neither the model nor
        this optimizer is changed. Raises ValueError where a parameter is not the model's, or where there is no gradient.
        """
        self.wait()
        return verify_optimizer(self, self._usable().policy, model, batch_or_loss, steps)

    @property
    def trace(self) -> Recorder:
        """What each task of the newest steps did, and when."""
        return self._usable().trace

    @property
    def last_tasks(self) -> list[list[Task]]:
        """The tasks of the last step, as `simulate` takes them. Two lists where backward began the step: what it began (not
        all of which it may have run), and the rest. After the step that is under way."""
        self.wait()
        return [list(tasks) for tasks in self._usable().stepping.execution.ran]

    def close(self) -> None:
        """Give back RAM and files; after this only `close()` may be called. Files of durability "step" stay."""
        if self._engine is not None:
            self._engine.close("close() was called")

    def __enter__(self) -> OffloadAdam:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} owns memory and files and can't be pickled or copied; save state_dict(), build a new "
            "one, and load it there"
        )


class OffloadAdamW(OffloadAdam):
    """`torch.optim.AdamW` (decoupled weight decay, default 0.01) with its state where `offload` says. See OffloadAdam.

    >>> policy = OffloadPolicy(tier="disk", directory="state", ram_budget="300MiB")
    >>> with OffloadAdamW(model.parameters(), lr=3e-4, offload=policy) as optimizer: ...
    """

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        offload: OffloadPolicy | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            offload=offload,
        )
