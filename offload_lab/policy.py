"""OffloadPolicy: where optimizer state lives, how much RAM it may take, and how durable a step is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

    from offload_lab.schedule import Task
    from offload_lab.work import Work

Directory = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_UNITS = {"": 1, "B": 1} | {
    prefix + unit: base**power for power, prefix in enumerate("KMGT", start=1) for unit, base in (("B", 1000), ("iB", 1024))
}


def parse_bytes(value: int | str) -> int:
    """A number of bytes from an int or from text such as "300MiB" (1024²) or "2 GB" (1000³).

    Raises ValueError for anything else, and for a number that is not positive.
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f'a size is a whole number of bytes or text such as "300MiB", not {value!r}')
    if isinstance(value, int):
        nbytes = value
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        if match is None or match[2] not in _UNITS:
            raise ValueError(f'cannot read {value!r} as a size; write for example "300MiB" or "2GB"')
        nbytes = int(float(match[1]) * _UNITS[match[2]])
    if nbytes <= 0:
        raise ValueError(f"a size is more than zero bytes, not {value!r}")
    return nbytes


@dataclass(frozen=True)
class OffloadPolicy:
    """How `OffloadAdamW` keeps its state. Every field is checked at once; nothing is allocated or created here."""

    tier: Literal["ram", "disk"] = "ram"
    """"ram": all state in memory. "disk": in files, streamed through a few buffers."""

    directory: Directory | None = None
    """Where the files of the disk tier live; made when missing. One optimizer a directory. Needed by, and only by, "disk".
    Several, on disks of their own: the state is striped over them in proportion to their measured speed."""

    ram_budget: int | str | None = None
    """Most bytes of RAM that state and buffers may take ("300MiB" or an int). The disk tier keeps as many partitions in
    RAM as fit beside its buffers, and streams the rest. None: buffers only on the disk tier, no limit on the RAM tier."""

    partition_size: int | None = None
    """Elements a partition. None: chosen from the model's size and the budget, at most 4 Mi."""

    depth: int = 4
    """Buffers of the disk tier: one being read, one updated, one written, and one to even them out."""

    io_threads: int = 4
    """Threads that read, and as many others that write, while a step runs."""

    chunk_bytes: int | str = "4MiB"
    """Bytes of one read or write call."""

    order: Literal["forward", "alternating"] = "forward"
    """Order in which steps visit partitions: always up, or up and down in turn, which meets first what is still in the
    buffers."""

    residency: Literal["pinned", "none", "lru", "furthest"] = "pinned"
    """What `ram_budget` is used for beyond the `depth` buffers. "pinned": the same partitions stay in RAM always. "lru" and
    "furthest": more buffers, of which the least recently used, or the one whose next use is furthest away, is given up.
    "none": nothing."""

    overlap: Literal["none", "forward", "backward"] = "none"
    """"none": a step is over when `step()` returns. "forward": `step()` returns at once and the update goes on during the
    next forward; whoever reads a weight waits for that weight. The next step's first reads are made meanwhile.
    "backward": a partition is updated as soon as backward has brought its gradients, and what is left at `step()` goes on
    during the next forward. Nothing that needs all gradients first (clipping, GradScaler) can be had then, and it needs
    durability="step", from which it can take a step back. Each step begins with empty buffers: of the residencies, only
    "pinned" saves reads."""

    direct_io: Literal["auto", "off"] = "auto"
    """"auto": past the page cache where the file system can, else through it (`stats()["direct_io"]` says which)."""

    durability: Literal["step", "checkpoint"] | int = "step"
    """"step": after every step the directory alone can restore optimizer and weights, also after `kill -9`; files stay
    on close. A number N: after every Nth step, and on close; the steps between write no weights and nothing that stays in
    RAM. "checkpoint": the files are scratch space, removed on close; save `state_dict()` yourself."""

    existing: Literal["replace", "resume", "previous", "refuse"] = "replace"
    """What to do when the directory holds an earlier run: start over (warns and names the step given up), take it up
    where it stopped, or at the published step before that ("previous", for a newest one that was damaged), or raise
    FileExistsError."""

    kernel: Literal["auto", "numba", "torch"] = "auto"
    """Which update loops run. "auto": those compiled by numba, else torch's operations (`stats()["kernel"]` says which and
    why). "numba": RuntimeError at construction where they cannot run. Results are the same bits."""

    gradients: Literal["parameter", "float32"] = "parameter"
    """What `.grad` is: of the parameter's dtype, as torch has it, or float32, so that a sum over many backwards is not
    rounded to 16 bits each time (4 instead of 2 bytes a parameter; needs torch 2.9 for 16-bit parameters)."""

    state_dtype: Literal["float32", "bfloat16", "int8"] = "float32"
    """What the moments are kept in. "bfloat16" and "int8" (a scale for each 256 elements) take a half and a quarter of the
    bytes, and are other algorithms than AdamW: `verify` shows by how much they differ for a model."""

    schedule: Callable[[Work], Sequence[Task]] | None = None
    """A function that makes the list of tasks of each step, in place of the engine's own: see `work.py` for how to write one,
    and `schedulers.py` for some. It changes when things happen, never a bit of the result: what it returns is checked before
    anything runs (ScheduleError names the task that is wrong). `order` is then the order in which it is told the partitions.
    `depth` is how many buffers it has; with a `ram_budget`, and residency "lru" or "furthest", as many as the budget holds."""

    why: str = field(default="", compare=False)
    """Where the policy was chosen by `auto`: what was measured, and what followed from it."""

    @classmethod
    def auto(
        cls,
        parameters: Iterable[torch.Tensor],
        *,
        directory: Directory | None = None,
        ram_budget: int | str | None = None,
        durability: Literal["step", "checkpoint"] = "step",
        seconds: float = 30.0,
    ) -> OffloadPolicy:
        """A policy for `parameters`: RAM where their state fits into `ram_budget` (None: half of what is free), else disk,
        with partition size, depth, threads and chunk measured on files in `directory`, in about `seconds`.

        `.why` says what was seen. Raises ValueError where the state does not fit and there is no directory.
        """
        from offload_lab.auto import choose  # it measures with an optimizer, which takes a policy

        return choose(parameters, directory, ram_budget, durability, seconds)

    def __post_init__(self) -> None:
        self._one_of("tier", "ram", "disk")
        self._one_of("order", "forward", "alternating")
        self._one_of("residency", "pinned", "none", "lru", "furthest")
        self._one_of("overlap", "none", "forward", "backward")
        if self.overlap == "backward" and self.publish_every != 1:
            raise ValueError(
                'OffloadPolicy(overlap="backward") needs tier="disk" and durability="step": what backward began can only be '
                'taken back (a gradient that is not finite) from a published step. overlap="forward" works without.'
            )
        self._one_of("gradients", "parameter", "float32")
        self._one_of("direct_io", "auto", "off")
        self._one_of("kernel", "auto", "numba", "torch")
        self._one_of("state_dtype", "float32", "bfloat16", "int8")
        if isinstance(self.durability, bool) or not (isinstance(self.durability, int) and self.durability >= 1):
            self._one_of("durability", "step", "checkpoint")
        self._one_of("existing", "replace", "resume", "previous", "refuse")
        if self.schedule is not None and not callable(self.schedule):
            raise ValueError(f"OffloadPolicy(schedule={self.schedule!r}): a function that makes a step's tasks, or None")
        for name, least in (("depth", 2), ("io_threads", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"OffloadPolicy({name}={value!r}): a whole number of at least {least} is needed")
        size = self.partition_size
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise ValueError(f"OffloadPolicy(partition_size={size!r}): a whole number of elements of at least 1, or None")
        for name in ("ram_budget", "chunk_bytes"):
            value = getattr(self, name)
            if value is not None or name == "chunk_bytes":
                try:
                    object.__setattr__(self, name, parse_bytes(value))
                except ValueError as error:
                    raise ValueError(f"OffloadPolicy({name}={value!r}): {error}") from None
        self._check_directory()

    def _one_of(self, name: str, *choices: str) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise ValueError(f"OffloadPolicy({name}={value!r}): one of {', '.join(map(repr, choices))} is needed")

    def _check_directory(self) -> None:
        if self.tier == "ram":
            if self.directory is not None:
                raise ValueError(
                    f'OffloadPolicy(tier="ram", directory={str(self.directory)!r}) contradicts itself: '
                    'the RAM tier writes no files. Leave the directory out, or say tier="disk".'
                )
            if self.existing != "replace" or self.durability != "step":
                raise ValueError(
                    "OffloadPolicy: existing= and durability= are about the files of the disk tier; "
                    'leave them out, or say tier="disk".'
                )
            return
        if self.directory is None:
            raise ValueError('OffloadPolicy(tier="disk") needs directory=…, a folder on the disk that shall be used')
        if self.durability == "checkpoint" and self.existing in ("resume", "previous"):
            raise ValueError(
                f'OffloadPolicy(durability="checkpoint", existing={self.existing!r}) contradicts itself: scratch files are '
                'removed on close and cannot be taken up again. Use durability="step", or load a state_dict().'
            )
        given = self.directory
        listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        if not listed or not all(isinstance(entry, (str, os.PathLike)) for entry in listed):
            raise ValueError(f"OffloadPolicy(directory={given!r}): a path, or several, are needed")
        paths = tuple(map(Path, listed))
        if len({os.path.realpath(path) for path in paths}) < len(paths):
            raise ValueError(f"OffloadPolicy(directory={given!r}): the same directory is named twice")
        object.__setattr__(self, "directory", paths[0] if len(paths) == 1 else paths)

    @property
    def directories(self) -> tuple[Path, ...]:
        """`directory` as a tuple, whether it is one, several or none."""
        if self.directory is None:
            return ()
        return self.directory if isinstance(self.directory, tuple) else (Path(self.directory),)

    @property
    def publish_every(self) -> int | None:
        """How many steps it is from one that the directory can restore to the next; None where it restores none."""
        if not self.keeps_weights:
            return None
        return 1 if self.durability == "step" else int(self.durability)

    @property
    def keeps_weights(self) -> bool:
        """Whether records on disk hold the weights too, so that the directory alone restores the model."""
        return self.tier == "disk" and self.durability != "checkpoint"
