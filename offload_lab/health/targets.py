"""What a run must reach, and the comparison of what was measured with it. Pure: no torch."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from offload_lab.health import checked
from offload_lab.json_text import parsed
from offload_lab.policy import parse_bytes


@dataclass(frozen=True)
class Targets:
    """The most that a run may take. None: no target. The first six fields are those of a plan's targets, by name and unit.

    Raises ValueError for a field out of range, and where there is no target at all.
    """

    seconds_per_step: float | None = None
    """Median of the steps that count: forward, backward, update, and waiting for data."""

    peak_gpu_bytes: int | str | None = None
    """Most bytes that torch ever held on one accelerator (an int, or text such as "22GiB")."""

    peak_ram_bytes: int | str | None = None
    """Most bytes of the whole process that ever were in RAM, Python and libraries included."""

    disk_bytes: int | str | None = None
    """Bytes of the optimizer's files."""

    loss: float | None = None
    """A reference: the mean loss of the last steps may be at most `loss + loss_tolerance`. Lower is never a failure."""

    cost: float | None = None
    """US dollars for the whole run, `run_steps` steps long, on a machine of `price_per_hour`."""

    loss_tolerance: float = 0.0
    """In units of the loss."""

    loss_steps: int = 5
    """How many of the last steps the mean is of."""

    run_steps: int | None = None
    """Steps of the whole run; `cost` needs it."""

    price_per_hour: float | None = None
    """US dollars an hour of the machine; `cost` needs it."""

    def __post_init__(self) -> None:
        for name in ("seconds_per_step", "cost"):
            if getattr(self, name) is not None:
                checked.number("Targets", name, getattr(self, name), above=0)
        for name in ("peak_gpu_bytes", "peak_ram_bytes", "disk_bytes"):
            if getattr(self, name) is not None:
                try:
                    object.__setattr__(self, name, parse_bytes(getattr(self, name)))
                except ValueError as error:
                    raise ValueError(f"Targets({name}={getattr(self, name)!r}): {error}") from error
        if self.loss is not None:
            checked.number("Targets", "loss", self.loss)
        checked.number("Targets", "loss_tolerance", self.loss_tolerance, least=0)
        checked.whole("Targets", "loss_steps", self.loss_steps, 1)
        if self.run_steps is not None:
            checked.whole("Targets", "run_steps", self.run_steps, 1)
        if self.price_per_hour is not None:
            checked.number("Targets", "price_per_hour", self.price_per_hour, least=0)
        if self.cost is not None and (self.run_steps is None or self.price_per_hour is None):
            raise ValueError("Targets(cost=…) needs run_steps= and price_per_hour= as well: a cost is time × price")
        if all(getattr(self, name) is None for name in NAMES):
            raise ValueError(f"Targets: no target is set; set one of {', '.join(NAMES)}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; `from_dict` takes it back."""
        return asdict(self)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, given: Any) -> Targets:
        """From a dict of the fields, or from a plan, whose targets, steps and price are taken.

        Raises ValueError naming what is unknown or out of range.
        """
        if isinstance(given, Mapping) and "targets" in given:
            return cls.from_dict(_of_plan(given))
        return cls(**checked.known_fields(cls, given))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Targets:
        """From a JSON file. Raises OSError where it can't be read, ValueError naming the file where it says something else."""
        try:
            return cls.from_dict(parsed(Path(path).read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{str(path)!r}: {error}") from error


NAMES = ("seconds_per_step", "peak_gpu_bytes", "peak_ram_bytes", "disk_bytes", "loss", "cost")


def _of_plan(plan: Mapping[str, Any]) -> dict[str, Any]:
    targets, time, hardware = (plan.get(key) or {} for key in ("targets", "time", "hardware"))
    for key, found in (("targets", targets), ("time", time), ("hardware", hardware)):
        if not isinstance(found, Mapping):
            raise ValueError(f"this is no plan: its {key!r} is not a JSON object")
    price = hardware.get("price") or {}
    more = {"run_steps": time.get("steps"), "price_per_hour": price.get("value") if isinstance(price, Mapping) else None}
    return {name: value for name, value in more.items() if value is not None} | dict(targets)


@dataclass(frozen=True)
class Measured:
    """What a run was seen to take. None: not known here (no accelerator; a system that does not say)."""

    seconds: tuple[float, ...]
    """Of each step that counts."""
    losses: tuple[float, ...]
    """Of every step."""
    peak_ram_bytes: int | None = None
    peak_gpu_bytes: int | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True)
class Check:
    """One target and what was measured."""

    name: str
    target: float
    """The most that passes; of a loss with its tolerance."""
    measured: float | None
    passed: bool
    text: str


def compare(targets: Targets, measured: Measured) -> list[Check]:
    """One check for each target that is set. What could not be measured, or is not finite, does not pass.

    The cost is `run_steps` × the mean seconds a step × the price: slow steps are paid for, so it is no median.
    """
    seconds = sorted(measured.seconds)
    last = measured.losses[-targets.loss_steps :]
    mean_seconds = sum(seconds) / len(seconds) if seconds else None
    found: dict[str, float | None] = {
        "seconds_per_step": median(seconds) if seconds else None,
        "peak_gpu_bytes": measured.peak_gpu_bytes,
        "peak_ram_bytes": measured.peak_ram_bytes,
        "disk_bytes": measured.disk_bytes,
        "loss": sum(last) / len(last) if last else None,
        "cost": None,
    }
    if mean_seconds is not None and targets.run_steps is not None and targets.price_per_hour is not None:
        found["cost"] = targets.run_steps * mean_seconds * targets.price_per_hour / 3600
    return [_check(targets, name, found[name]) for name in NAMES if getattr(targets, name) is not None]


def _check(targets: Targets, name: str, value: float | None) -> Check:
    limit = getattr(targets, name) + (targets.loss_tolerance if name == "loss" else 0)
    if value is None:
        told = f"{name}: could not be measured here; at most {_shown(name, limit)} is asked for"
        return Check(name, limit, None, False, told)
    passed = math.isfinite(value) and value <= limit
    told = f"{name}: {_shown(name, value)} measured, at most {_shown(name, limit)} is asked for"
    if name == "loss":
        last = f"mean of the last {targets.loss_steps} steps"
        told += f" ({targets.loss:g} and a tolerance of {targets.loss_tolerance:g}; {last})"
    return Check(name, limit, value, passed, told)


def _shown(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{value:,.0f} bytes"
    return f"{value:.4g} s" if name == "seconds_per_step" else f"{value:.2f} USD" if name == "cost" else f"{value:.5g}"


def median(ordered: list[float]) -> float:
    """Of numbers in order, at least one."""
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
