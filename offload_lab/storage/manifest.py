"""The manifest: the one small file that says which step a directory holds and where each partition's state lies."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from offload_lab.partition import QUANTUM, Kind, Partition, Span
from offload_lab.storage.direct_io import StorageError

FORMAT = 1


def described_kind(kind: Kind) -> dict[str, Any]:
    """A record's kind as a manifest has it: what is not said is float32 moments without amsgrad."""
    named: dict[str, Any] = {"dtype": kind.dtype}
    if kind.state_dtype != "float32":
        named["state_dtype"] = kind.state_dtype
    if kind.amsgrad:
        named["amsgrad"] = True
    return named


def _kind(described: dict[str, Any]) -> Kind:
    return Kind(described["dtype"], described.get("state_dtype", "float32"), described.get("amsgrad", False))


def _readable(described: dict[str, Any]) -> str:
    more = [f"{name}={described[name]}" for name in ("state_dtype", "amsgrad") if name in described]
    return " ".join([described["dtype"], str(described["shape"]), *more])


@dataclass
class Manifest:
    """What a directory holds after `step` steps. `slots[i]` is the slot with partition i's newest state, None if it was
    never written."""

    step: int
    slots: list[int | None]
    parameter_steps: list[int]
    parameters: list[dict[str, Any]]
    """Shape and kind of each parameter, in the optimizer's order."""
    partitions: list[list[Any]]
    """Index, dtype and spans of each partition."""
    groups: list[dict[str, Any]]
    """The groups' settings (lr, betas, …), for resuming."""
    pid: int = field(default_factory=os.getpid)
    format: int = FORMAT

    def recorded(self, parameters: list[dict[str, Any]], names: list[str], where: str) -> list[Partition]:
        """The partitions, for a model of `parameters` (shape and dtype of each, with their `names` for messages).

        Raises ValueError when the directory `where` is of another model, StorageError when the partitions do not fit its own
        parameters: they become addresses, so nothing in them is taken on trust.
        """
        if len(self.parameters) != len(parameters):
            raise ValueError(
                f"{where!r} holds state of {len(self.parameters)} parameters, this optimizer has {len(parameters)}"
            )
        for name, held, mine in zip(names, self.parameters, parameters, strict=True):
            if held != mine:
                raise ValueError(f"{where!r} holds {name} as {_readable(held)}, here it is {_readable(mine)}")
        partitions = []
        covered = [0] * len(parameters)
        try:
            for index, dtype, rows in self.partitions:
                spans, offset, kinds = [], 0, set()
                for number, start, length in rows:
                    mine = parameters[number]
                    fits = start == covered[number] and 0 < length <= prod(mine["shape"]) - start
                    if number < 0 or not fits or mine["dtype"] != dtype:
                        raise ValueError(f"partition {index} does not fit {names[number]}")
                    spans.append(Span(number, start, length, offset))
                    kinds.add(_kind(mine))
                    covered[number] += length
                    offset += length
                if index != len(partitions) or not kinds:
                    raise ValueError(f"partition {index} is out of order or empty")
                if len(kinds) > 1:
                    raise ValueError(f"partition {index} holds parameters of several kinds")
                kind = kinds.pop()
                if kind.state_dtype == "int8" and any(span.start % QUANTUM for span in spans):
                    raise ValueError(f"partition {index} is cut within a block of {QUANTUM} elements")
                partitions.append(Partition(index, dtype, tuple(spans), kind.state_dtype, kind.amsgrad))
            halves = [n for n, done in enumerate(covered) if 0 < done < prod(parameters[n]["shape"])]
            counts = len(self.slots) == len(partitions) and len(self.parameter_steps) == len(parameters)
            if halves or not counts or not set(self.slots) <= {None, 0, 1}:
                raise ValueError(f"it is not complete ({names[halves[0]] if halves else 'slots and steps'})")
        except (ValueError, TypeError, LookupError) as error:
            raise StorageError(
                errno.EINVAL, f"the manifest in {where!r} was damaged: {error}. Restore it from a copy, or start over."
            ) from error
        return partitions


def publish(path: Path, manifest: Manifest) -> None:
    """Replace the manifest in one step: afterwards a reader finds the old one or the new one, whole, even after a crash.

    Raises StorageError when the disk refuses; then the old one stands.
    """
    draft = path.with_suffix(".draft")
    try:
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(asdict(manifest), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)  # the rename itself is on disk only when the directory is
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageError(
            error.errno,
            f"publishing step {manifest.step} as {str(path)!r} failed: {error.strerror}; the step before it still stands",
        ) from error


def load(path: Path) -> Manifest | None:
    """The manifest at `path`, or None where there is none. Raises StorageError naming the file when it is not readable
    as a manifest, and naming both versions when its format is another."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(errno.EIO, f"{str(path)!r} cannot be read: {error}") from error
    try:
        content = json.loads(text)
        version = content["format"]
        if version != FORMAT:
            raise StorageError(
                errno.EINVAL,
                f"{str(path)!r} has format {version}; this edition reads format {FORMAT}. "
                "Resume it with the edition that wrote it and save a state_dict().",
            )
        return Manifest(**content)
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            errno.EINVAL,
            f"{str(path)!r} is not a manifest of optimizer state ({error}). If nothing in it is needed, delete the folder's "
            "offload.* files and start again.",
        ) from error
