"""An optimizer whose state is an engine's: torch's state format both ways, files, and going back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch.optim.optimizer import Optimizer

from offload_lab import checkpoint, saving, sharded
from offload_lab.engine import Engine
from offload_lab.entries import Zeros, in_memory
from offload_lab.pipeline import uninterrupted
from offload_lab.policy import Directory, OffloadPolicy
from offload_lab.storage.files import MANIFEST, holds_a_run

_SETTINGS = ("lr", "betas", "eps", "weight_decay", "maximize")


def _as_was(old: Any, new: float) -> Any:
    """`new` as a setting, in place where it is a tensor that somebody may hold."""
    return old.fill_(new) if isinstance(old, torch.Tensor) else new


class PersistentOptimizer(Optimizer):
    """What `OffloadAdam` is in between steps: a state that is saved, loaded, resumed, and taken back.

    A subclass sets `_engine` once it is built.
    """

    _engine: Engine | None

    # --- its engine and its groups ------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Return when no update is under way any more (`OffloadPolicy(overlap=…)`). Raises, once, what stopped it."""
        if self._engine is not None:
            self._engine.wait()

    def _usable(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("this optimizer was not built completely")
        self._engine.usable()
        return self._engine

    def _reachable(self) -> Engine:
        """The engine, which a step may have stopped, but nothing else."""
        if self._engine is None or self._engine.failed is None:
            return self._usable()
        failure, self._engine.failed = self._engine.failed, None
        try:
            return self._usable()
        finally:
            self._engine.failed = failure

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
            scratch.write(self._packed(scratch.zeros))

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
        other than "checkpoint"). The directory holds that step afterwards. Raises RuntimeError where there is none.

        After a step that failed (a full disk, say) this goes back to the last published step, and the optimizer can be used
        again."""
        engine = self._reachable()
        if engine.stepping.backward is not None:
            engine.stepping.backward.discard()
        if engine.failed is None:
            self.wait()
        else:  # it is known what stopped it
            engine.stepping.settle()
        self._apply_groups(uninterrupted(lambda: checkpoint.rollback(engine)))

    def publish(self) -> None:
        """Make the present step what the directory restores, with a durability of more than one step."""
        engine = self._usable()
        self.wait()
        uninterrupted(engine.stepping.execution.publish_rest)

    @classmethod
    def resume(cls, directory: Directory, params: Iterable[Any], **options: Any) -> Self:
        """The optimizer whose state is in `directory`, over `params`, which get their weights of then.

        `options` are those of the constructor; a policy in `offload=` is taken with this directory and existing="resume"
        (or "previous", if it says so). Of several directories the first is enough, as long as the others are where they were.
        Raises FileNotFoundError where the directory holds no run.
        """
        policy = options.pop("offload", None) or OffloadPolicy(tier="disk", directory=directory)
        existing = "previous" if policy.existing == "previous" else "resume"
        policy = replace(policy, tier="disk", directory=directory, existing=existing)
        first = policy.directories[0]
        if not holds_a_run(sharded.directory_of_rank(first)):
            raise FileNotFoundError(f"{str(first)!r} holds no optimizer state to resume (no {MANIFEST})")
        return cls(params, offload=policy, **options)
