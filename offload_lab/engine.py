"""The engine under the optimizer: partitions of state in RAM and on disk, and the step that takes them from t to t + 1.

It knows parameters by number and settings by dict; what torch's optimizers promise to their users is in `optimizer.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from offload_lab import crowd, gradients, kernels, update
from offload_lab.link import Link, link_of
from offload_lab.loops import Layout
from offload_lab.partition import BLOCK, Kind, Partition, cut, size_of
from offload_lab.policy import OffloadPolicy
from offload_lab.records import Records
from offload_lab.residency import beside_staging, partition_size, place, sizing, staged_bytes
from offload_lab.sharded import directory_of_rank
from offload_lab.staging import Staging
from offload_lab.stepping import Stepping
from offload_lab.storage.files import StateFiles
from offload_lab.storage.manifest import described_kind
from offload_lab.trace import Recorder
from offload_lab.tracked import Ledger, Tracked


class Engine:
    """State of `tracked` parameters under `policy`. `describe_groups()` gives the groups' settings for the manifest.

    `rows(part, …)`, `load(part)` and `store` are what `checkpoint.py` builds on; users call none of this.
    """

    def __init__(self, policy: OffloadPolicy, describe_groups: Callable[[], list[dict]]) -> None:
        self.policy = policy
        self.tracked: list[Tracked] = []
        self.ledger = Ledger()
        self.partitions: list[Partition] = []
        self.layouts: list[Layout] = []
        self.steps = self.skipped_steps = self.bytes_read = self.bytes_written = 0
        self.trace = Recorder()
        self.closed: str | None = None
        self.failed: BaseException | None = None
        self.describe_groups = describe_groups
        self._size = 0
        self.records = Records(policy)
        self.staging = Staging()
        self.bytes_needed = 0
        self.stepping = Stepping(self)
        self.threads = max(1, torch.get_num_threads())
        self.kernel = kernels.choose(policy.kernel)
        self.files: StateFiles | None = None
        if policy.tier == "disk":
            self.files = StateFiles(
                [directory_of_rank(directory) for directory in policy.directories],
                existing=policy.existing,
                direct=policy.direct_io,
                keeps_weights=policy.keeps_weights,
                chunk=max(BLOCK, policy.chunk_bytes // BLOCK * BLOCK),
            )
            self.files.whose = self.whose

    # --- building -------------------------------------------------------------------------------------------------

    def follow(self, parameters: Iterable[tuple[torch.Tensor, str, bool, str | None]]) -> None:
        """Take up more parameters: each with its name, whether its group is of amsgrad, and the tier that its group asks for,
        if any. Those that need no gradient get state only once they have one.

        The first call of an engine that resumes takes over the partitions that its directory holds, however they were cut.
        """
        self.wait()
        first = len(self.tracked)
        parameters = list(parameters)
        if self.policy.gradients == "float32":
            for parameter, name, *_ in parameters:
                gradients.accumulate_in_float32(parameter, name)
        self.ledger.resize(first + len(parameters))
        self.tracked += [
            Tracked(parameter, name, gradients.DTYPES[parameter.dtype], self.ledger, number, amsgrad, tier)
            for number, (parameter, name, amsgrad, tier) in enumerate(parameters, start=first)
        ]
        try:
            for tracked in self.tracked[first:]:
                if tracked.amsgrad and self.policy.state_dtype == "int8":
                    raise ValueError(
                        f"{tracked.name} is of amsgrad=True: a maximum rounded to 8 bits again at each step creeps away, "
                        'so state_dtype="int8" has no amsgrad. Use "bfloat16" or "float32".'
                    )
            found = self.files.found if self.files is not None else None
            if found is not None and not self.partitions:
                held = found.recorded(self.described(), [t.name for t in self.tracked], str(self.files.directory))
                self._size = max(map(size_of, held), default=0)
                self._install(held)
            wanted = range(first, len(self.tracked))
            needing = [number for number in wanted if self.tracked[number].parameter.requires_grad]
            self.provide([number for number in needing if not self.tracked[number].parts])
            if self.policy.overlap == "none" and crowd.is_one(tracked.numel for tracked in self.tracked):
                crowd.reads_compiled(self.kernel)  # compiled now, so that no step waits for it
        except BaseException:
            self.ledger.resize(first)
            del self.tracked[first:]  # or later parameters would be taken for these
            raise

    def provide(self, numbers: Sequence[int]) -> None:
        """Give state to parameters that have none yet: cut partitions, reserve files, allocate RAM. All zero at first."""
        shapes = [(number, self.tracked[number].numel, self.kind(number)) for number in numbers]
        if not self._size:
            policy = sizing(self.policy, any(self.link_of(number) is not None for number in numbers))
            self._size = partition_size(sum(numel for _, numel, _ in shapes), policy)
        for tier in ("ram", None, "disk"):  # a partition is of one tier
            here = [shape for shape in shapes if self.tracked[shape[0]].tier == tier]
            self._install(cut(here, self._size, first_index=len(self.partitions)))

    def _install(self, added: list[Partition]) -> None:
        if not added:
            return
        for kind in dict.fromkeys(part.kind for part in added):
            self.kernel.prepare(kind)
        partitions = self.partitions + added
        tiers = {part.index: {self.tracked[span.parameter].tier for span in part.spans} for part in partitions}
        stay, never = ({index for index, found in tiers.items() if found == {tier}} for tier in ("ram", "disk"))
        slab = max((self._staged_bytes(part, False) for part in partitions), default=0)
        residency = place(partitions, self._size, beside_staging(self.policy, slab), self.records.residency, stay, never)
        files = self.files
        self.records.extend(added, residency, lambda: files.extend(added) if files is not None else None)
        self.partitions = partitions
        self.layouts += [Layout(part) for part in added]
        for part in added:
            for number in dict.fromkeys(span.parameter for span in part.spans):
                self.tracked[number].parts += (part.index,)

    def link_of(self, number: int) -> Link | None:
        """The link over which parameter `number` is updated; None where it is in host memory, or has to be copied whole."""
        tensor = self.tracked[number].local
        return link_of(tensor) if tensor.is_contiguous() else None

    def _staged_bytes(self, part: Partition, wide: bool) -> int:
        linked = any(self.link_of(span.parameter) is not None for span in part.spans)
        return staged_bytes(part.dtype, part.numel, wide or self.policy.gradients == "float32") if linked else 0

    def reserve_staging(self, active: Sequence[int], wide: bool) -> None:
        """Make sure that the slabs are there for these partitions; `wide` where a 16-bit parameter has a float32 gradient."""
        needed = max((self._staged_bytes(self.partitions[index], wide) for index in active), default=0)
        if needed:
            links = {self.link_of(number) for index in active for number in self.layouts[index].distinct}
            self.staging.reserve(needed, {link for link in links if link is not None})

    def record_bytes(self, part: Partition) -> int:
        return part.record_bytes(self.policy.keeps_weights)

    # --- the step -------------------------------------------------------------------------------------------------

    def usable(self) -> None:
        """Raises RuntimeError when this engine is closed, failed, or belongs to the process that this one was forked from."""
        if self.closed is not None:
            raise RuntimeError(f"this optimizer is closed: {self.closed}. Build a new one to go on.")
        if self.failed is not None:
            advice = (
                'call rollback(), or build it again with existing="resume",'
                if self.policy.keeps_weights
                else "load your last checkpoint"
            )
            raise RuntimeError(
                f"this optimizer stopped after step {self.steps} because of: {self.failed}. The weights in memory may be "
                f"partly of the step after it; {advice} to go on from a whole step."
            ) from self.failed
        if self.files is not None and os.getpid() != self.files.owner_pid:
            raise RuntimeError(
                f"this optimizer belongs to process {self.files.owner_pid}; a forked process cannot step it, or the two would "
                "write over each other. Build one here, in another directory."
            )

    def step(self, settings: Sequence[tuple[int, dict]], decoupled: bool) -> str | None:
        """One step for `(parameter number, its group's settings)`. The state is that of t or t + 1, never between.

        Where the policy says so the step goes on after this returned. Returns None, or why the step was skipped.
        """
        return self.stepping.step(settings, decoupled)

    def wait(self) -> None:
        """Return when no step is under way. Raises, once, what stopped the one that was."""
        self.stepping.wait()

    def whose(self, partition: int) -> str:
        """What a partition holds, for messages."""
        names = [self.tracked[number].name for number in self.layouts[partition].distinct]
        return f"; it holds {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"

    def fields(self, part: Partition, record: np.ndarray) -> update.Fields:
        """Views of a record in the order in which the update loop takes them."""
        return update.fields(part, record, self.policy.keeps_weights)

    def layout_described(self) -> tuple[list[dict], list[list]]:
        """Parameters and partitions as a manifest has them."""
        partitions = [[p.index, p.dtype, [[s.parameter, s.start, s.length] for s in p.spans]] for p in self.partitions]
        return self.described(), partitions

    def described(self) -> list[dict]:
        """Shape and kind of each parameter, as a manifest has them."""
        return [
            {"shape": list(tracked.local.shape), **described_kind(self.kind(number))}
            for number, tracked in enumerate(self.tracked)
        ]

    def kind(self, number: int) -> Kind:
        """What records hold of parameter `number`."""
        tracked = self.tracked[number]
        return Kind(tracked.dtype, self.policy.state_dtype, tracked.amsgrad)

    # --- state for checkpoint.py ----------------------------------------------------------------------------------

    def load(self, index: int, scratch: np.ndarray) -> np.ndarray:
        """A partition's newest record (state only): the resident one, or read into `scratch`."""
        part = self.partitions[index]
        if index in self.resident:
            return self.resident[index]
        if self.files is None or self.files.slots[index] is None:
            scratch[: part.state_bytes].fill(0)
        else:
            self.files.read(index, scratch[: part.state_bytes])
        return scratch

    def scratch(self) -> np.ndarray:
        """Room for the record of any partition that is not resident; only between steps, it is one of their buffers.

        What the buffers held is on disk after this, and nothing counts as held.
        """
        self.wait()
        for index, (buffer, nbytes) in self.records.cache.debts().items():
            self.files.write(index, self.records.buffers[buffer][:nbytes])
            self.files.turn([index])
        self.records.cache.forget()
        return self.records.buffers[0] if self.records.buffers else np.zeros(0, np.uint8)

    def memory(self) -> dict[str, int]:
        return {
            "ram": self.records.nbytes + self.staging.nbytes,
            "disk": self.files.allocated() if self.files is not None else 0,
        }

    @property
    def resident(self) -> dict[int, np.ndarray]:
        """Records that stay in RAM, by partition."""
        return self.records.resident

    def abandon(self) -> None:
        """Undo a construction that failed: give back RAM and files, but delete nothing that was there to be resumed."""
        if self.files is not None and self.files.found is None and not any(s is not None for s in self.files.slots):
            self.files.close(remove=True)
            self.files = None
        self.close("it was not built completely")

    def close(self, why: str) -> None:
        """Give back RAM and files, after the step that is under way. Twice is once."""
        if self.closed is not None:
            return
        try:
            if self.stepping.backward is not None:
                self.stepping.backward.close()
            self.wait()
            if self.failed is None:
                self.stepping.execution.publish_rest()
        finally:
            self.closed, self.stepping.crowd = why, None
            self.records.close()
            self.staging.close()
            if self.files is not None:
                self.files.close(remove=not self.policy.keeps_weights)
