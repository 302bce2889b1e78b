"""The engine under the optimizer: partitions of state in RAM and on disk, and the step that takes them from t to t + 1.

It knows parameters by number and settings by dict; what torch's optimizers promise to their users is in `optimizer.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from offload_lab import gradients, kernels, pipeline, update
from offload_lab.devices import HostView
from offload_lab.halves import low_halves
from offload_lab.partition import BLOCK, Partition, cut
from offload_lab.policy import OffloadPolicy
from offload_lab.residency import Residency, partition_size, place
from offload_lab.schedule import Item, Task, forward
from offload_lab.storage.files import StateFiles
from offload_lab.storage.manifest import Manifest
from offload_lab.storage.memory import Slab
from offload_lab.trace import Recorder

_SMALL = 1 << 16  # elements below which a second thread costs more than it brings


@dataclass
class Tracked:
    """One parameter as the engine follows it."""

    parameter: torch.Tensor
    name: str
    dtype: str
    step: int = 0
    seen: tuple[int, int] | None = None
    """Version counter and address after our own last write; anything else means that somebody edited the weight."""
    parts: tuple[int, ...] = ()
    """Partitions that hold its state."""
    loaded_master: torch.Tensor | None = None
    """A bfloat16 parameter's master from a checkpoint whose weights may be loaded only after it."""

    def now(self) -> tuple[int, int]:
        return self.parameter._version, self.parameter.data_ptr()

    def edited(self) -> bool:
        return self.seen is not None and self.seen != self.now()


class Engine:
    """State of `tracked` parameters under `policy`. `describe_groups()` gives the groups' settings for the manifest.

    `rows(part, …)`, `load(part)` and `store` are what `checkpoint.py` builds on; users call none of this.
    """

    def __init__(self, policy: OffloadPolicy, describe_groups: Callable[[], list[dict]]) -> None:
        self.policy = policy
        self.tracked: list[Tracked] = []
        self.partitions: list[Partition] = []
        self.steps = self.skipped_steps = self.bytes_read = self.bytes_written = 0
        self.trace = Recorder()
        self.closed: str | None = None
        self.failed: BaseException | None = None
        self._describe_groups = describe_groups
        self._size = 0
        self._residency: Residency | None = None
        self._slabs: list[Slab] = []
        self._records: dict[int, np.ndarray] = {}
        self._buffers: list[np.ndarray] = []
        self.threads = max(1, torch.get_num_threads())
        self.kernel = kernels.choose(policy.kernel)
        self.files: StateFiles | None = None
        if policy.tier == "disk":
            self.files = StateFiles(
                policy.directory, existing=policy.existing, direct=policy.direct_io, keeps_weights=policy.keeps_weights
            )

    # --- building -------------------------------------------------------------------------------------------------

    def follow(self, parameters: Iterable[tuple[torch.Tensor, str]]) -> None:
        """Take up more parameters. Those that need no gradient get state only once they have one.

        The first call of an engine that resumes takes over the partitions that its directory holds, however they were cut.
        """
        first = len(self.tracked)
        self.tracked += [Tracked(parameter, name, gradients.DTYPES[parameter.dtype]) for parameter, name in parameters]
        try:
            found = self.files.found if self.files is not None else None
            if found is not None and not self.partitions:
                held = found.recorded(self.described(), [t.name for t in self.tracked], str(self.files.directory))
                self._size = max((part.numel for part in held), default=0)
                self._install(held)
            wanted = range(first, len(self.tracked))
            needing = [number for number in wanted if self.tracked[number].parameter.requires_grad]
            self.provide([number for number in needing if not self.tracked[number].parts])
        except BaseException:
            del self.tracked[first:]  # or later parameters would be taken for these
            raise

    def provide(self, numbers: Sequence[int]) -> None:
        """Give state to parameters that have none yet: cut partitions, reserve files, allocate RAM. All zero at first."""
        shapes = [(number, self.tracked[number].parameter.numel(), self.tracked[number].dtype) for number in numbers]
        if not self._size:
            self._size = partition_size(sum(numel for _, numel, _ in shapes), self.policy)
        self._install(cut(shapes, self._size, first_index=len(self.partitions)))

    def _install(self, added: list[Partition]) -> None:
        if not added:
            return
        for kind in dict.fromkeys(part.kind for part in added):
            self.kernel.prepare(kind)
        partitions = self.partitions + added
        residency = place(partitions, self._size, self.policy, self._residency)
        resident = [part for part in added if part.index in residency.resident]
        slab = Slab(sum(self.record_bytes(part) for part in resident)) if resident else None
        try:
            more = residency.buffers - len(self._buffers)
            streams = Slab(more * residency.buffer_bytes) if more > 0 else None
            if self.files is not None:
                self.files.extend(added)
        except BaseException:
            if slab is not None:
                slab.close()
            raise
        if slab is not None:
            self._slabs.append(slab)
            at = 0
            for part in resident:
                self._records[part.index] = slab.bytes[at : at + self.record_bytes(part)]
                at += self.record_bytes(part)
        if streams is not None:
            self._slabs.append(streams)
            self._buffers += list(streams.bytes.reshape(more, residency.buffer_bytes))
        self.partitions, self._residency = partitions, residency
        for part in added:
            for number in dict.fromkeys(span.parameter for span in part.spans):
                self.tracked[number].parts += (part.index,)

    def record_bytes(self, part: Partition) -> int:
        return part.record_bytes(self.policy.keeps_weights)

    # --- the step -------------------------------------------------------------------------------------------------

    def usable(self) -> None:
        """Raises RuntimeError when this engine is closed, failed, or belongs to the process that this one was forked from."""
        if self.closed is not None:
            raise RuntimeError(f"this optimizer is closed: {self.closed}. Build a new one to go on.")
        if self.failed is not None:
            advice = 'build it again with existing="resume"' if self.policy.keeps_weights else "load your last checkpoint"
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

        Returns None, or why the step was skipped.
        """
        views: dict[int, HostView] = {}
        groups: dict[int, dict] = {}
        for number, group in settings:
            tracked = self.tracked[number]
            gradient = tracked.parameter.grad
            if gradient is None or tracked.parameter.numel() == 0:
                continue
            gradients.check_gradient(gradient, tracked.name)
            if gradients.DTYPES.get(tracked.parameter.dtype) != tracked.dtype:
                raise RuntimeError(
                    f"{tracked.name} was {tracked.dtype} when this optimizer was built and is "
                    f"{tracked.parameter.dtype} now; convert the model first, then build the optimizer"
                )
            views[number] = HostView(tracked.parameter, gradient)
            groups[number] = group
        if not gradients.all_finite(views.values(), self.kernel):
            self.skipped_steps += 1
            culprits = [self.tracked[n].name for n, view in views.items() if not gradients.all_finite([view], self.kernel)]
            others = f" (nor are {len(culprits) - 1} others)" if len(culprits) > 1 else ""
            return (
                f"step skipped: the gradient of {culprits[0]} is not finite{others}; nothing was changed. "
                f"Skipped so far: {self.skipped_steps}."
            )
        if not views:
            return None
        self.provide([number for number in views if not self.tracked[number].parts])
        scalars = {
            number: update.scalars(group, self.tracked[number].step + 1, decoupled=decoupled)
            for number, group in groups.items()
        }
        active = sorted({index for number in views for index in self.tracked[number].parts})
        try:
            self._run(active, views, scalars)
            for view in views.values():
                view.finish()
            self._publish(active, views)
        except BaseException as error:
            self.failed = error
            raise
        self._settle(views)
        return None

    def _run(self, active: Sequence[int], views: dict[int, HostView], scalars: dict[int, list[float]]) -> None:
        items = []
        for index in active:
            part, resident = self.partitions[index], index in self._records
            written = self.record_bytes(part) if self.files is not None and (not resident or self.policy.keeps_weights) else 0
            stored = self.files is not None and self.files.slots[index] is not None
            items.append(Item(index, part.state_bytes if stored and not resident else 0, written, resident))
        tasks = forward(items, max(1, len(self._buffers)))
        elements = sum(self.partitions[index].numel for index in active)
        io = self.policy.io_threads
        widths = {"cpu": self.threads if elements > _SMALL else 1, "disk-read": io, "disk-write": io}
        pipeline.run(tasks, lambda task: self._pieces(task, views, scalars, widths["cpu"]), widths, self.trace)
        self.bytes_read += sum(task.nbytes for task in tasks if task.kind == "read")
        self.bytes_written += sum(task.nbytes for task in tasks if task.kind == "write")

    def _pieces(self, task: Task, views, scalars, slices: int) -> list[pipeline.Piece]:
        part = self.partitions[task.partition]
        record = self._records[task.partition] if task.buffer is None else self._buffers[task.buffer]
        if task.kind == "update":
            return self._update_pieces(part, record, views, scalars, slices)
        if task.kind == "read" and task.nbytes == 0:  # never written: its state is all zero
            return [lambda: record[: part.state_bytes].fill(0)]
        transfer = self.files.read if task.kind == "read" else self.files.write
        chunk = max(BLOCK, self.policy.chunk_bytes // BLOCK * BLOCK)
        return [
            lambda at=at: transfer(part.index, record[at : min(at + chunk, task.nbytes)], at)
            for at in range(0, task.nbytes, chunk)
        ]

    def _update_pieces(self, part: Partition, record: np.ndarray, views, scalars, slices: int) -> list[pipeline.Piece]:
        table = update.table(part)
        values = np.zeros((len(part.spans), update.SCALAR_FIELDS), np.float32)
        held = []  # keeps host copies of parameters without a gradient alive until the pieces have run
        for row, span in enumerate(part.spans):
            tracked, view = self.tracked[span.parameter], views.get(span.parameter)
            if view is None:
                view = HostView(tracked.parameter, None)
                held.append(view)
            at = span.start * view.weight.element_size()
            gradient = wide = 0
            if view.gradient is not None:
                gradient = view.gradient.data_ptr() + span.start * view.gradient.element_size()
                wide = view.gradient.dtype != view.weight.dtype
            edited = tracked.edited()
            if edited and gradient and tracked.loaded_master is not None:
                here = slice(span.offset, span.offset + span.length)
                self.fields(part, record)[2][here] = low_halves(tracked.loaded_master, view.weight, span)
                edited = False
            table[row, update.WEIGHT_ADDRESS] = view.weight.data_ptr() + at
            table[row, update.GRADIENT_ADDRESS] = gradient
            table[row, update.EDITED], table[row, update.GRADIENT_FLOAT32] = edited, wide
            table[row, update.SEED] = update.seed(span.parameter, tracked.step + 1)
            if gradient:
                values[row] = scalars[span.parameter]
        fields = self.fields(part, record)
        loop = self.kernel.update
        per_piece = -(-part.numel // slices)
        return [
            lambda begin=begin, held=held: loop(table, values, *fields, begin, min(begin + per_piece, part.numel))
            for begin in range(0, part.numel, per_piece)
        ]

    def fields(self, part: Partition, record: np.ndarray) -> update.Fields:
        """Views of a record, in the order in which the update loop takes them."""
        return update.fields(part, record, self.policy.keeps_weights)

    def _publish(self, active: Sequence[int], views: dict[int, HostView]) -> None:
        if self.files is None:
            return
        written = [index for index in active if index not in self._records or self.policy.keeps_weights]
        slots = self.files.turned(written)
        if self.policy.keeps_weights:
            steps = [tracked.step + (number in views) for number, tracked in enumerate(self.tracked)]
            self.files.publish(self.manifest(self.steps + 1, slots, steps))
        else:
            self.files.slots = slots

    def manifest(self, step: int, slots: list[int | None], steps: list[int]) -> Manifest:
        return Manifest(
            step=step,
            slots=slots,
            parameter_steps=steps,
            parameters=self.described(),
            partitions=[[p.index, p.dtype, [[s.parameter, s.start, s.length] for s in p.spans]] for p in self.partitions],
            groups=self._describe_groups(),
        )

    def described(self) -> list[dict]:
        """Shape and dtype of each parameter, as a manifest has them."""
        return [{"shape": list(t.parameter.shape), "dtype": t.dtype} for t in self.tracked]

    def _settle(self, views: dict[int, HostView]) -> None:
        """Book the step: counts, and version counters (ours, so that autograd sees that the weights changed)."""
        self.steps += 1
        for number in views:
            tracked = self.tracked[number]
            tracked.step += 1
            tracked.loaded_master = None
            torch.autograd.graph.increment_version(tracked.parameter)
            tracked.seen = tracked.now()

    # --- state for checkpoint.py ----------------------------------------------------------------------------------

    def load(self, index: int, scratch: np.ndarray) -> np.ndarray:
        """A partition's newest record (state only): the resident one, or read into `scratch`."""
        part = self.partitions[index]
        if index in self._records:
            return self._records[index]
        if self.files is None or self.files.slots[index] is None:
            scratch[: part.state_bytes].fill(0)
        else:
            self.files.read(index, scratch[: part.state_bytes])
        return scratch

    def scratch(self) -> np.ndarray:
        """Room for the record of any partition that is not resident; only between steps, it is one of their buffers."""
        return self._buffers[0] if self._buffers else np.zeros(0, np.uint8)

    def memory(self) -> dict[str, int]:
        return {
            "ram": sum(slab.nbytes for slab in self._slabs),
            "disk": self.files.allocated() if self.files is not None else 0,
        }

    @property
    def resident(self) -> dict[int, np.ndarray]:
        """Records that stay in RAM, by partition."""
        return self._records

    def abandon(self) -> None:
        """Undo a construction that failed: give back RAM and files, but delete nothing that was there to be resumed."""
        if self.files is not None and self.files.found is None and not any(s is not None for s in self.files.slots):
            self.files.close(remove=True)
            self.files = None
        self.close("it was not built completely")

    def close(self, why: str) -> None:
        """Give back RAM and files. Twice is once."""
        if self.closed is not None:
            return
        self.closed = why
        self._records, self._buffers = {}, []
        for slab in self._slabs:
            slab.close()
        self._slabs = []
        if self.files is not None:
            self.files.close(remove=not self.policy.keeps_weights)
