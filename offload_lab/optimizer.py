"""OffloadAdam and OffloadAdamW: `torch.optim.Optimizer`s whose state lives in RAM or on disk."""

from __future__ import annotations

import builtins
import contextlib
import math
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import Optimizer

from offload_lab import checkpoint, gradients, report, saving, sharded
from offload_lab.backward import BackwardUpdates
from offload_lab.engine import Engine
from offload_lab.entries import Zeros, in_memory
from offload_lab.groups import check_group, check_overlap, without_duplicates
from offload_lab.pipeline import uninterrupted
from offload_lab.policy import OffloadPolicy
from offload_lab.storage.files import MANIFEST, holds_a_run
from offload_lab.trace import Recorder
from offload_lab.verify import Verdict, verify_optimizer

_SETTINGS = ("lr", "betas", "eps", "weight_decay", "maximize")
_live: weakref.WeakValueDictionary[str, OffloadAdam] = weakref.WeakValueDictionary()


def _as_was(old: Any, new: float) -> Any:
    """`new` as a setting, in place where it is a tensor that somebody may hold."""
    return old.fill_(new) if isinstance(old, torch.Tensor) else new


class OffloadAdam(Optimizer):
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
        super().__init__(params, defaults)
        if policy.tier == "ram" and any(group.get("tier") == "disk" for group in self.param_groups):
            raise ValueError(
                'a parameter group asks for tier="disk", and the policy names no directory: build the optimizer with '
                'OffloadPolicy(tier="disk", directory=…, ram_budget=…) and give the groups that stay in RAM tier="ram"'
            )
        check_overlap(self._named())
        if policy.directory is not None:
            self._take_over(sharded.directory_of_rank(policy.directory))
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
            _live[str(engine.files.directory)] = self

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

    def _named(self) -> list[tuple[str, torch.Tensor]]:
        """Every parameter in order, with the name that messages use."""
        return [
            (
                group["param_names"][i] if "param_names" in group else f"parameter {i} of group {g} {tuple(parameter.shape)}",
                parameter,
            )
            for g, group in enumerate(self.param_groups)
            for i, parameter in enumerate(group["params"])
        ]

    def _followed(self) -> list[tuple[torch.Tensor, str, bool, str | None]]:
        """Every parameter in order as the engine follows it: with its name, whether its group is of amsgrad, and its tier."""
        groups = [group for group in self.param_groups for _ in group["params"]]
        return [
            (parameter, name, bool(group["amsgrad"]), group.get("tier"))
            for (name, parameter), group in zip(self._named(), groups, strict=True)
        ]

    def _describe_groups(self) -> list[dict[str, Any]]:
        return [
            {
                name: [float(beta) for beta in group[name]]
                if name == "betas"
                else float(group[name])
                if isinstance(group[name], torch.Tensor)
                else group[name]
                for name in _SETTINGS
            }
            for group in self.param_groups
        ]

    def _apply_groups(self, saved: list[dict[str, Any]]) -> None:
        for group, settings in zip(self.param_groups, saved, strict=False):
            for name, value in settings.items():
                if name == "betas":
                    group[name] = tuple(_as_was(old, new) for old, new in zip(group[name], value, strict=True))
                else:
                    group[name] = _as_was(group[name], value)

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
        """Every parameter's number, with its group."""
        return list(enumerate(group for group in self.param_groups for _ in group["params"]))

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

    def wait(self) -> None:
        """Return when no update is under way any more (`OffloadPolicy(overlap=…)`). Raises, once, what stopped it."""
        if self._engine is not None:
            self._engine.wait()

    def _usable(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("this optimizer was not built completely")
        self._engine.usable()
        return self._engine

    # --- torch's state format -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State in the format of `torch.optim.AdamW.state_dict()`, as host tensors of their own; 16-bit parameters have
        their float32 `master` beside the moments. Takes RAM for the whole state."""
        return self._packed(in_memory)

    def _packed(self, zeros: Zeros) -> dict[str, Any]:
        exported = checkpoint.export(self._usable(), zeros)
        parameters = [parameter for _, parameter in self._named()]
        self.state.clear()
        for number, entry in exported.items():
            parameter = parameters[number]
            self.state[parameter] = {name: sharded.like(parameter, value) for name, value in entry.items()}
        try:
            return super().state_dict()
        finally:
            self.state.clear()
            self._mark_state()

    def _mark_state(self) -> None:
        """`torch.distributed.checkpoint` takes an optimizer with an empty `state` for a new one, and makes a step of zeros to
        fill it. One entry tells it that ours is elsewhere."""
        if self._engine is not None and any(tracked.sharded and tracked.step for tracked in self._engine.tracked):
            self.state[self.param_groups[0]["params"][0]]["offloaded"] = True

    def save(self, path: str | os.PathLike[str]) -> None:
        """`torch.save(self.state_dict(), path)`, but with one partition of extra memory, whatever the state takes. What was
        at `path` is replaced in one step; after an error it is still there. `torch.optim.AdamW` loads the file, too."""
        target = Path(path)
        with saving.Scratch(target) as scratch:
            saving.write(self._packed(scratch.zeros), target)

    def load(self, path: str | os.PathLike[str]) -> None:
        """`load_state_dict` of a file of `save` or of `torch.save`, of which no more is in memory than is being looked at."""
        self.load_state_dict(saving.read(Path(path)))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a checkpoint of this class or of `torch.optim.AdamW`: settings, step counts, moments, and masters
        where they round to the weights. State stays in its tier. Raises ValueError when the checkpoint does not fit;
        nothing is changed then."""
        engine = self._usable()
        packed = [number for group in state_dict["param_groups"] for number in group["params"]]
        if len(packed) != len(engine.tracked):
            raise ValueError(f"the checkpoint has {len(packed)} parameters, this optimizer has {len(engine.tracked)}")
        state = {
            place: {name: sharded.local(value) for name, value in state_dict["state"][key].items()}
            for place, key in enumerate(packed)
            if key in state_dict["state"]
        }
        checkpoint.check(engine, state)
        built = [bool(group["amsgrad"]) for group in self.param_groups]
        tiers = [group.get("tier") for group in self.param_groups]
        for number, (group, amsgrad) in enumerate(zip(state_dict["param_groups"], built, strict=False)):
            if bool(group.get("amsgrad", amsgrad)) != amsgrad:
                raise ValueError(
                    f"group {number} of the checkpoint is of amsgrad={not amsgrad}, this optimizer's was built with "
                    f"amsgrad={amsgrad}, and its state has no room for another kind. Build it with amsgrad={not amsgrad}."
                )
        super().load_state_dict({**state_dict, "state": {}})
        for number, group in enumerate(self.param_groups):
            missing = [name for name in self.defaults if name not in group]
            if missing:
                warnings.warn(
                    f"the checkpoint's group {number} has no {', '.join(missing)}; the defaults of this optimizer stand",
                    stacklevel=2,
                )
                group.update({name: self.defaults[name] for name in missing})
            group.pop("tier", None)
            if tiers[number] is not None:  # a checkpoint does not move state
                group["tier"] = tiers[number]
            group["amsgrad"] = built[number]  # where the checkpoint does not say it, the group's own, not the default
        uninterrupted(lambda: checkpoint.restore(engine, state))
        self._mark_state()

    def rollback(self) -> None:
        """Go back to the published step before the present one, weights and settings included (disk tier with a durability
        other than "checkpoint"). The directory holds that step afterwards. Raises RuntimeError where there is none."""
        engine = self._usable()
        if engine.stepping.backward is not None:
            engine.stepping.backward.discard()
        self.wait()
        self._apply_groups(uninterrupted(lambda: checkpoint.rollback(engine)))

    def publish(self) -> None:
        """Make the present step what the directory restores, with a durability of more than one step."""
        engine = self._usable()
        self.wait()
        uninterrupted(engine.stepping.execution.publish_rest)

    @classmethod
    def resume(cls, directory: str | os.PathLike[str], params: Iterable[Any], **options: Any) -> OffloadAdam:
        """The optimizer whose state is in `directory`, over `params`, which get their weights of then.

        `options` are those of the constructor; a policy in `offload=` is taken with this directory and existing="resume".
        Raises FileNotFoundError where the directory holds no run.
        """
        if not holds_a_run(directory):
            raise FileNotFoundError(f"{str(directory)!r} holds no optimizer state to resume (no {MANIFEST})")
        policy = options.pop("offload", None) or OffloadPolicy(tier="disk", directory=directory)
        return cls(params, offload=replace(policy, tier="disk", directory=directory, existing="resume"), **options)

    # --- looking and closing --------------------------------------------------------------------------------------

    def memory(self) -> dict[str, int]:
        """Bytes that the state takes now: {"ram": records and buffers, "disk": blocks of the files}."""
        return self._engine.memory() if self._engine is not None else {"ram": 0, "disk": 0}

    def stats(self) -> dict[str, Any]:
        """What runs, where every byte is, and what the last step moved and waited for; see `report.stats`. After the step
        that is under way."""
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
