"""The many small parameters of a model, taken up all at once: what a step must know of each is a number in an array.

A step asks each parameter for its gradient, and both for what they are now, whatever they were before: nothing that could have
changed is remembered. Their gradients are copied into one, which is checked at once. Where anything is not as it was when the
crowd was made (another dtype, a gradient that is sparse, strided or on a device), the step takes every parameter up by itself,
which can do all that, or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from offload_lab import gradients, update, walk
from offload_lab.devices import in_host_memory
from offload_lab.job import Job
from offload_lab.kernels import Kernel
from offload_lab.loops import in_a_row
from offload_lab.reading import Attributes, Reader, Reading

if TYPE_CHECKING:
    from offload_lab.engine import Engine
    from offload_lab.tracked import Tracked

SMALL = 1 << 10  # elements; to copy the gradient of a larger one costs as much as to look at it
MOST = 1 << 20  # elements of all: 4 MiB of gradients
LEAST = 16  # members: of fewer nobody would notice

_PLAIN = (torch.nn.Parameter, torch.Tensor)


def _belongs(engine: Engine, tracked: Tracked) -> bool:
    parameter = tracked.parameter
    if tracked.sharded or not tracked.parts or not 0 < tracked.numel <= SMALL or type(parameter) not in _PLAIN:
        return False
    if not parameter.is_leaf or not in_host_memory(parameter) or engine.link_of(tracked.number) is not None:
        return False
    gradient = parameter.grad
    return (
        parameter.dtype is tracked.torch_dtype
        and parameter.numel() == tracked.numel
        and type(gradient) is torch.Tensor
        and gradient.layout is torch.strided
        and gradient.dtype in (tracked.torch_dtype, torch.float32)
    )


class Crowd:
    """The members among `settings` (parameter numbers with their groups), and `others`, the settings of all others."""

    def __init__(self, engine: Engine, settings: Sequence[tuple[int, dict]], members: Sequence[tuple[int, dict]]) -> None:
        self.settings = settings
        inside = {number for number, _ in members}
        self.others = [(number, group) for number, group in settings if number not in inside]
        self.numbers = np.array([number for number, _ in members])
        self._where = in_a_row(self.numbers)
        self._engine, self._inside = engine, inside
        tracked = [engine.tracked[number] for number, _ in members]
        dtypes = [one.parameter.grad.dtype for one in tracked]
        self._wide = np.array([dtype is not one.torch_dtype for one, dtype in zip(tracked, dtypes, strict=True)])
        kind = walk.Walk if reads_compiled(engine.kernel) else Attributes
        self._reader: Reader = kind([one.parameter for one in tracked], dtypes)
        groups: dict[int, tuple[dict, list[int]]] = {}
        for i, (_, group) in enumerate(members):
            groups.setdefault(id(group), (group, []))[1].append(i)
        self._groups = [
            (group, bool(tracked[where[0]].amsgrad), np.array(where), in_a_row(self.numbers[where]))
            for group, where in groups.values()
        ]
        self._parts = [one.parts for one in tracked]
        self._all_parts = set().union(*self._parts)
        self._beside: dict[int, list[int]] = {}

    def take(self, kernel: Kernel) -> Taken | None:
        """The members as they are now; None where they have to be taken up one by one: also where a gradient is not finite,
        because then somebody wants to know whose it is."""
        if self._engine.ledger.masters or any(one[0]["amsgrad"] != one[1] for one in self._groups):
            return None
        reading = self._reader.read()
        if reading is None or not gradients.all_finite(reading.copies, kernel):
            return None
        return Taken(self, reading)

    def __len__(self) -> int:
        return len(self._inside)

    @property
    def how(self) -> str:
        """How the members are read, and why, for a person."""
        if isinstance(self._reader, walk.Walk):
            return "by a compiled loop"
        return f"attribute by attribute: {walk.why_not() if self._engine.kernel.compiles else self._engine.kernel.name}"

    def beside(self, index: int) -> list[int]:
        """The parameters in partition `index` that are no members."""
        if index not in self._beside:
            self._beside[index] = [n for n in self._engine.layouts[index].distinct if n not in self._inside]
        return self._beside[index]


class Taken:
    """The members of a crowd for the length of one step."""

    def __init__(self, crowd: Crowd, reading: Reading) -> None:
        self.crowd, self._reading = crowd, reading
        self._present = reading.gradients != 0
        self._all = bool(self._present.all())
        self.stepped: np.ndarray = crowd.numbers if self._all else crowd.numbers[self._present]
        """Numbers of those with a gradient."""

    def parts(self) -> set[int]:
        """Partitions that hold state of one with a gradient."""
        if self._all:
            return self.crowd._all_parts
        return {index for i in np.flatnonzero(self._present) for index in self.crowd._parts[i]}

    def put(self, job: Job, *, decoupled: bool, scale: float) -> None:
        """Take them up in `job`, and book the step: counts and version counters."""
        crowd, reading, where = self.crowd, self._reading, self.crowd._where
        ledger = crowd._engine.ledger
        job.weights[where], job.gradients[where] = reading.places, reading.gradients
        job.wide[where] = crowd._wide
        seen = ledger.versions[where]
        job.edited[where] = (seen >= 0) & ((seen != reading.versions) | (ledger.addresses[where] != reading.weights))
        job.copies = reading.copies
        for group, _, members, numbers in crowd._groups:
            if not self._all:
                numbers = crowd.numbers[members[self._present[members]]]
            steps = ledger.steps[numbers]
            if steps.size and (steps == steps[0]).all():
                job.scalars[numbers] = update.scalars(group, int(steps[0]) + 1, decoupled=decoupled, scale=scale)
                continue
            numbers = np.arange(len(ledger.steps))[numbers]
            for step in np.unique(steps).tolist():
                job.scalars[numbers[steps == step]] = update.scalars(group, step + 1, decoupled=decoupled, scale=scale)
        versions = crowd._reader.bump(self._present)
        stepped, these = (where, slice(None)) if self._all else (self.stepped, self._present)
        ledger.versions[stepped], ledger.addresses[stepped] = versions[these], reading.weights[these]
        ledger.steps[stepped] += 1

    def carry(self) -> None:
        """After the update: where weights were packed for it, they go back to where they belong."""
        self.crowd._reader.carry(self._present)


def is_one(sizes: Iterable[int]) -> bool:
    """Whether parameters of these sizes (elements) may make a crowd."""
    return sum(0 < numel <= SMALL for numel in sizes) >= LEAST


def reads_compiled(kernel: Kernel) -> bool:
    """Whether crowds are read by a compiled loop. The first call of a process makes it ready."""
    return kernel.compiles and walk.why_not() is None


def gather(engine: Engine, settings: Sequence[tuple[int, dict]]) -> Crowd | None:
    """The crowd among `settings` as they are now; None where it would be small."""
    budget = engine.policy.ram_budget
    most = MOST if budget is None else min(MOST, int(budget) // 400)  # at most 8 bytes each: 2 % of what was given
    members, elements = [], 0
    for number, group in settings:
        tracked = engine.tracked[number]
        if _belongs(engine, tracked) and elements + tracked.numel <= most:
            members.append((number, group))
            elements += tracked.numel
    return Crowd(engine, settings, members) if len(members) >= LEAST else None
