"""A parameter as the engine follows it, and the ledger of what is counted for each: in arrays, so that a step of thousands of
small parameters books them all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from offload_lab.sharded import is_sharded, local

_UNSEEN = -1  # no version counter is negative


class Ledger:
    """By parameter number: `steps` that it has taken; `versions` and `addresses`, version counter and address after our own
    last write (a version of -1: we have not written yet); and `masters`, those of a checkpoint whose weights may still come."""

    def __init__(self) -> None:
        self.steps, self.addresses = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.versions = np.zeros(0, np.int64)
        self.masters: dict[int, torch.Tensor] = {}

    def resize(self, count: int) -> None:
        """Have `count` entries: the first ones as they were, new ones untouched by any step."""
        kept = min(count, self.steps.size)
        for name, value in (("steps", 0), ("versions", _UNSEEN), ("addresses", 0)):
            grown = np.full(count, value, np.int64)
            grown[:kept] = getattr(self, name)[:kept]
            setattr(self, name, grown)
        self.masters = {number: master for number, master in self.masters.items() if number < count}


@dataclass
class Tracked:
    """One parameter as the engine follows it: the `number`th of `ledger`."""

    parameter: torch.Tensor
    name: str
    dtype: str
    ledger: Ledger
    number: int
    amsgrad: bool = False
    tier: str | None = None
    """"ram" or "disk" where its group says where its state lives; else the policy decides."""
    parts: tuple[int, ...] = ()
    """Partitions that hold its state."""

    def __post_init__(self) -> None:
        self.sharded = is_sharded(self.parameter)
        self.numel, self.torch_dtype = self.local.numel(), self.parameter.dtype

    @property
    def local(self) -> torch.Tensor:
        """What of the parameter is in this process; see `sharded.py`."""
        return local(self.parameter) if self.sharded else self.parameter

    @property
    def step(self) -> int:
        return int(self.ledger.steps[self.number])

    @step.setter
    def step(self, count: int) -> None:
        self.ledger.steps[self.number] = count

    @property
    def loaded_master(self) -> torch.Tensor | None:
        """A bfloat16 parameter's master from a checkpoint whose weights may be loaded only after it."""
        return self.ledger.masters.get(self.number)

    @loaded_master.setter
    def loaded_master(self, master: torch.Tensor | None) -> None:
        if master is None:
            self.ledger.masters.pop(self.number, None)
        else:
            self.ledger.masters[self.number] = master

    def now(self) -> tuple[int, int]:
        """Version counter and address."""
        tensor = local(self.parameter) if self.sharded else self.parameter
        return tensor._version, tensor.data_ptr()

    def note(self) -> None:
        """What is there now is our own write."""
        self.ledger.versions[self.number], self.ledger.addresses[self.number] = self.now()

    def edited(self) -> bool:
        """Whether somebody else wrote it, or put another tensor in its place, since our own last write."""
        version = self.ledger.versions[self.number]
        return bool(version != _UNSEEN and (version, self.ledger.addresses[self.number]) != self.now())
