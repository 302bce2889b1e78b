"""From when on a monitor speaks up. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from offload_lab.health import checked
from offload_lab.health.detectors import Count, Detector, Level, NotFinite, Shift
from offload_lab.policy import parse_bytes

Kind = Literal[
    "step_time",
    "read_bandwidth",
    "write_bandwidth",
    "stall_share",
    "hit_share",
    "skipped",
    "not_finite",
    "loss",
    "disk_free",
    "wear",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Thresholds:
    """A field that is None turns its monitor off. Raises ValueError for a field out of range.

    A shift lasts for `hold` steps and is judged against the `window` steps before them; it must also exceed `sigmas` standard
    deviations of these, and their farthest tenth (see `detectors.Shift`, which gives the rate of false alarms).
    """

    step_time: float | None = 0.3
    """Rise of the time between two observations, as a share of what is normal."""

    bandwidth: float | None = 0.3
    """Fall of the bandwidth of disk reads, and of writes, as a share of what is normal."""

    stall_share: float | None = 0.2
    """Rise of the share of the update that waits for the disk (0.2: from 0.3 to 0.5, say)."""

    hit_share: float | None = 0.1
    """Fall of the share of the state's bytes that needed no read."""

    skipped: int | None = 1
    """Skipped steps among the last `window`. A GradScaler's own skips are none: it does not call the optimizer."""

    loss_sigmas: float | None = 10.0
    """Rise of one step's loss above the median of the last `window`, in standard deviations …"""

    loss_rise: float = 0.1
    """… and at least this share of the median, and half as far again as the farthest of the `window`: batches of two kinds
    are no spikes. A loss that is not finite is raised at once, unless `loss_sigmas` is None."""

    disk_free: int | str | None = "1GiB"
    """Bytes free where the state lies: the files are reserved, but saves and logs need room."""

    endurance: int | str | None = None
    """Bytes that may be written in the disk's life (TBW, from its data sheet), for `wear`."""

    wear: float | None = 0.8
    """Share of `endurance` that has been written."""

    written_before: int = 0
    """Bytes written to the disk before this run: what it says of itself (SMART), or earlier runs."""

    window: int = 50
    """Steps that say what is normal."""

    hold: int = 8
    """Steps that a shift must last."""

    sigmas: float = 4.0
    """Standard deviations that a shift must exceed."""

    def __post_init__(self) -> None:
        for name in ("step_time", "bandwidth", "stall_share", "hit_share", "loss_sigmas", "wear"):
            if getattr(self, name) is not None:
                checked.number("Thresholds", name, getattr(self, name), above=0)
        if self.bandwidth is not None and self.bandwidth >= 1:
            raise ValueError(f"Thresholds(bandwidth={self.bandwidth!r}): a fall is a share below 1")
        checked.number("Thresholds", "loss_rise", self.loss_rise, least=0)
        checked.number("Thresholds", "sigmas", self.sigmas, above=0)
        if self.skipped is not None:
            checked.whole("Thresholds", "skipped", self.skipped, 1)
        checked.whole("Thresholds", "window", self.window, 5)
        checked.whole("Thresholds", "hold", self.hold, 1)
        checked.whole("Thresholds", "written_before", self.written_before, 0)
        for name in ("disk_free", "endurance"):
            if getattr(self, name) is not None:
                try:
                    object.__setattr__(self, name, parse_bytes(getattr(self, name)))
                except ValueError as error:
                    raise ValueError(f"Thresholds({name}={getattr(self, name)!r}): {error}") from error

    def detectors(self) -> dict[Kind, Detector]:
        """A detector for each monitor that is on."""

        def shift(direction: Literal["up", "down"], least: float, scale: Literal["difference", "ratio"]) -> Shift:
            return Shift(direction, least=least, scale=scale, sigmas=self.sigmas, window=self.window, hold=self.hold)

        made: dict[Kind, Detector] = {}
        if self.step_time is not None:
            made["step_time"] = shift("up", self.step_time, "ratio")
        if self.bandwidth is not None:
            made["read_bandwidth"] = shift("down", self.bandwidth, "ratio")
            made["write_bandwidth"] = shift("down", self.bandwidth, "ratio")
        if self.stall_share is not None:
            made["stall_share"] = shift("up", self.stall_share, "difference")
        if self.hit_share is not None:
            made["hit_share"] = shift("down", self.hit_share, "difference")
        if self.skipped is not None:
            made["skipped"] = Count(self.skipped, self.window)
        if self.loss_sigmas is not None:
            made["not_finite"] = NotFinite()
            # A loss falls by itself, so the first window is no reference. One step is a spike: it can still be undone.
            made["loss"] = Shift(
                "up",
                least=self.loss_rise,
                scale="level",
                sigmas=self.loss_sigmas,
                window=self.window,
                hold=1,
                margin=1.5,
                farthest=1,
                anchored=False,
            )
        if self.disk_free is not None:
            made["disk_free"] = Level("down", float(self.disk_free), 1.1 * float(self.disk_free))
        if self.wear is not None and self.endurance is not None:
            made["wear"] = Level("up", self.wear, self.wear)
        return made

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; `from_dict` takes it back."""
        return asdict(self)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, given: Any) -> Thresholds:
        """Raises ValueError naming what is unknown or out of range."""
        return cls(**checked.known_fields(cls, given))
