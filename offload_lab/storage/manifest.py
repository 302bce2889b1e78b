"""The manifest: the one small file that says which step a directory holds and where each partition's state lies."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from offload_lab.partition import BLOCK, QUANTUM, Kind, Partition, Span
from offload_lab.storage.checksum import checksum
from offload_lab.storage.direct_io import StorageError, flush_folder
from offload_lab.storage.places import FINENESS

FORMAT, STRIPED = 2, 3


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
class Generation:
    """A published step: where its state lies and what it was taken with. `slots[i]` is the slot with partition i's state,
    None if it was never written; `sums[i]` the crc32c of each of that slot's chunks, in order."""

    step: int
    slots: list[int | None]
    sums: list[list[int] | None]
    parameter_steps: list[int]
    groups: list[dict[str, Any]]
    """The groups' settings (lr, betas, …), for resuming."""


@dataclass
class Manifest:
    """What a directory holds: the newest generation, the one before it (as long as nothing is written over it), and how
    both are laid out."""

    newest: Generation
    previous: Generation | None
    parameters: list[dict[str, Any]]
    """Shape and kind of each parameter, in the optimizer's order."""
    partitions: list[list[Any]]
    """Index, dtype and spans of each partition."""
    chunk: int
    """Bytes that a checksum covers."""
    pid: int = field(default_factory=os.getpid)
    format: int = FORMAT
    directories: list[str] = field(default_factory=list)
    """Where the state lies, if in several directories: the first is the manifest's own."""
    shares: list[int] = field(default_factory=lambda: [1])
    """How many of each sum(shares) chunks lie in each of these."""
    run: str = ""
    """An id that the other directories have, too, so that they are not mistaken."""

    @property
    def step(self) -> int:
        return self.newest.step

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
            generations = [self.newest] + ([self.previous] if self.previous is not None else [])
            counts = all(
                len(g.slots) == len(g.sums) <= len(partitions)
                and len(g.parameter_steps) <= len(parameters)
                and set(g.slots) <= {None, 0, 1}
                for g in generations
            )
            whole = len(self.newest.slots) == len(partitions) and len(self.newest.parameter_steps) == len(parameters)
            if halves or not counts or not whole:
                raise ValueError(f"it is not complete ({names[halves[0]] if halves else 'slots and steps'})")
            striped = len(self.shares) == max(1, len(self.directories)) and all(
                isinstance(share, int) and 0 < share <= FINENESS for share in self.shares
            )
            if not striped:
                raise ValueError(f"shares {self.shares} for {len(self.directories)} directories")
            if self.chunk <= 0 or self.chunk % BLOCK:
                raise ValueError(f"{self.chunk} bytes are no chunk")
        except (ValueError, TypeError, LookupError) as error:
            raise StorageError(
                errno.EINVAL, f"the manifest in {where!r} was damaged: {error}. Restore it from a copy, or start over."
            ) from error
        return partitions


_HEAD, _MIDDLE, _TAIL = b'{"crc32c": "', b'", "content": ', b"}"


def sealed(content: str) -> bytes:
    """The bytes of a manifest file: `content` (a JSON object) behind its own checksum, together JSON again."""
    text = content.encode()
    return _HEAD + f"{checksum(text):08x}".encode() + _MIDDLE + text + _TAIL


def encoded(manifest: Manifest, layout: str) -> str:
    """The content of a manifest file. `layout` is `encoded_layout` of its parameters and partitions, which a run encodes once:
    of thousands of parameters it is most of the text."""
    changing = {
        "format": manifest.format,
        "pid": manifest.pid,
        "chunk": manifest.chunk,
        "newest": vars(manifest.newest),
        "previous": None if manifest.previous is None else vars(manifest.previous),
    }
    if manifest.run:  # an edition that knows of one directory only must not take this for one of its own
        changing |= {"format": STRIPED, "directories": manifest.directories, "shares": manifest.shares, "run": manifest.run}
    return json.dumps(changing)[:-1] + ", " + layout[1:]


def encoded_layout(parameters: list[dict[str, Any]], partitions: list[list[Any]]) -> str:
    return json.dumps({"parameters": parameters, "partitions": partitions})


def publish(path: Path, content: str, step: int) -> None:
    """Replace the manifest in one step: afterwards a reader finds the old one or the new one, whole, even after a crash.

    Raises StorageError when the disk refuses; then the old one stands.
    """
    draft = path.with_suffix(".draft")
    try:
        with open(draft, "wb") as file:
            file.write(sealed(content))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        flush_folder(path.parent)  # the rename itself is on disk only when the folder is
    except OSError as error:
        raise StorageError(
            error.errno,
            f"publishing step {step} as {str(path)!r} failed: {error.strerror}; the step published before it still stands",
        ) from error


def load(path: Path) -> Manifest | None:
    """The manifest at `path`, or None where there is none. Raises StorageError naming the file when it is not readable
    as a manifest, when its checksum does not fit, and naming both versions when its format is another."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(errno.EIO, f"{str(path)!r} cannot be read: {error}") from error
    try:
        whole = json.loads(data)
        content = whole.get("content", whole)  # format 1 had no checksum around it
        version = content["format"]
        if version not in (FORMAT, STRIPED):
            raise StorageError(
                errno.EINVAL,
                f"{str(path)!r} has format {version}; this edition reads format {FORMAT} or {STRIPED}. "
                "Resume it with the edition that wrote it and save a state_dict().",
            )
        if data != sealed(data[len(_HEAD) + 8 + len(_MIDDLE) : -len(_TAIL)].decode()):
            raise StorageError(
                errno.EIO, f"{str(path)!r} was damaged: its checksum does not fit. Restore it from a copy, or start over."
            )
        newest, previous = Generation(**content.pop("newest")), content.pop("previous")
        return Manifest(newest, None if previous is None else Generation(**previous), **content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            errno.EINVAL,
            f"{str(path)!r} is not a manifest of optimizer state ({error}). If nothing in it is needed, delete the folder's "
            "offload.* files and start again.",
        ) from error
