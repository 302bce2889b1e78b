"""What a monitor says when a figure leaves its range, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from offload_lab.health.detectors import Signal
from offload_lab.health.thresholds import Kind

Action = Literal["none", "pause", "rollback"]
ACTIONS: tuple[Action, ...] = ("none", "pause", "rollback")


@dataclass(frozen=True)
class Alarm:
    """One figure has left its range ("raised") or is back in it ("cleared")."""

    kind: Kind
    state: Literal["raised", "cleared"]
    step: int | None
    when: str
    """UTC, ISO 8601."""
    value: float
    reference: float
    """What is normal, or the bound itself where it is absolute."""
    bound: float
    message: str
    action: Action = "none"
    """What the monitor did."""


def _seconds(value: float) -> str:
    return f"{value:.4g} s"


def _rate(value: float) -> str:
    return f"{value / 1e6:,.1f} MB/s"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _bytes(value: float) -> str:
    return f"{value:,.0f} bytes"


_WORDS: dict[Kind, tuple[str, Callable[[float], str], str]] = {
    "step_time": ("time between two steps", _seconds, "Look at stats()['last_step']['waited'], and for another process."),
    "read_bandwidth": ("disk reads", _rate, "Another process may use the disk, or it is warm, worn or nearly full."),
    "write_bandwidth": ("disk writes", _rate, "The disk's fast cache may be full, or another process uses it."),
    "stall_share": ("share of the update that waits for the disk", _share, "A larger ram_budget keeps more state in RAM."),
    "hit_share": ("share of the state that needed no read", _share, "Something else may have taken the buffers' place."),
    "skipped": ("skipped steps", "{:.0f}".format, "Their gradients were not finite; look at the batch and at the loss."),
    "not_finite": ("loss", "{}".format, "Go back to a published step with rollback(), and lower the learning rate."),
    "loss": ("loss", "{:.5g}".format, "Look at the batch; rollback() undoes the step that it made."),
    "disk_free": ("free space where the state lies", _bytes, "Free some: saves will fail when it is full."),
    "wear": ("share of the disk's endurance that is used up", _share, "durability=N writes less than every step does."),
}


def words(kind: Kind, signal: Signal) -> str:
    """One or two sentences for a person: the figure, what is normal, and what to do."""
    what, shown, advice = _WORDS[kind]
    now = f"{kind}: {what} {shown(signal.value)}"
    if kind == "not_finite":
        return f"{now}. {advice}" if signal.kind == "raised" else f"{now}, finite again"
    bound = f"the bound is {shown(signal.bound)}"
    normal = "" if kind in ("skipped", "disk_free", "wear") else f"normal is {shown(signal.reference)}, "
    return f"{now}; {normal}{bound}. {advice}" if signal.kind == "raised" else f"{now}, back within {shown(signal.bound)}"
