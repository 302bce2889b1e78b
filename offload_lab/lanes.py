"""The lanes of a machine as the simulator sees them: how fast each moves bytes, and which of them share a device. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from offload_lab.hardware import Figure, Hardware

UNTIMED = ("backward", "forward")
"""Lanes that move nothing: how long their tasks take is for the caller of `simulate` to say."""


@dataclass(frozen=True)
class Device:
    """What one lane, or two, move bytes through. `rates`: lane -> bytes a second while it is alone.

    Two lanes that are busy at once get `together / 2` each, but no more than they have alone. That is a half-duplex device, or
    the one memory of a CPU and an accelerator.
    """

    name: str
    rates: Mapping[str, float]
    together: float = 0.0

    def rate(self, lane: str, busy: Collection[str]) -> float:
        """Bytes a second that `lane` gets while the lanes `busy`, itself among them, move something."""
        others = [other for other in self.rates if other != lane and other in busy]
        return min(self.rates[lane], self.together / 2) if others else self.rates[lane]

    def least_seconds(self, nbytes: Mapping[str, float]) -> float:
        """No order of moves gets `nbytes` (lane -> bytes) through this device in less.

        Proof. Let both lanes be busy for x seconds, each at m = min(its rate r, together / 2), and each alone for the rest:
        then bytes B = m x + r a of each lane take x + a + a' = B / r + B' / r' + x (1 - m / r - m' / r') seconds. That is
        linear in x, so it is least at an end: x = 0, or the largest x for which no lane has moved more than it has.
        """
        alone = {lane: nbytes.get(lane, 0.0) / rate for lane, rate in self.rates.items()}
        apart = sum(alone.values())
        if len(self.rates) < 2:
            return apart
        mixed = {lane: min(rate, self.together / 2) for lane, rate in self.rates.items()}
        longest = min(nbytes.get(lane, 0.0) / rate for lane, rate in mixed.items())
        saved = sum(mixed[lane] / rate for lane, rate in self.rates.items()) - 1
        return apart - longest * max(saved, 0.0)


def _figure(hardware: Hardware, name: str, lane: str) -> float:
    figure: Figure | None = getattr(hardware, name)
    if figure is None:
        raise ValueError(f"tasks of lane {lane!r} move bytes, and hardware {hardware.name!r} has no figure {name}")
    if figure.value <= 0:
        raise ValueError(f"tasks of lane {lane!r} move bytes, and {name} of hardware {hardware.name!r} is {figure.value:g}")
    return float(figure.value)


def devices(hardware: Hardware, moving: Collection[str]) -> list[Device]:
    """The devices through which the lanes `moving` move bytes.

    A half-duplex disk moves `disk_mixed` bytes a second while both directions are busy; where that is not known, what time
    shared equally by bytes gives, 2 / (1 / read + 1 / write). On a machine with one memory (`unified`), the lanes "cpu" and
    "accelerator" share its bandwidth. Raises ValueError for a lane that moves nothing, or whose
    figure `hardware` does not have.
    """
    found: list[Device] = []
    pairs: Sequence[tuple[str, tuple[tuple[str, str], ...], str, str | None]] = (
        ("disk", (("disk-read", "disk_read"), ("disk-write", "disk_write")), hardware.disk_duplex, "disk_mixed"),
        ("link", (("host-to-device", "host_to_device"), ("device-to-host", "device_to_host")), hardware.link_duplex, None),
        ("memory", (("cpu", "dram_bandwidth"),), "full", None),
        ("accelerator", (("accelerator", "gpu_bandwidth"),), "full", None),
    )
    left = set(moving)
    if hardware.unified and left >= {"cpu", "accelerator"}:
        # One memory for both: its bandwidth is the larger of the two figures, for either side alone may draw less than all.
        sides = {
            lane: _figure(hardware, name, lane) for lane, name in (("cpu", "dram_bandwidth"), ("accelerator", "gpu_bandwidth"))
        }
        found.append(Device("memory", sides, max(sides.values())))
        left.difference_update(sides)
    for name, lanes, duplex, mixed in pairs:
        here = {lane: _figure(hardware, figure, lane) for lane, figure in lanes if lane in left}
        left.difference_update(here)
        if duplex == "half" and len(here) == 2:
            both = 2 / sum(1 / rate for rate in here.values())
            if mixed is not None and getattr(hardware, mixed) is not None:
                both = _figure(hardware, mixed, " and ".join(here))
            found.append(Device(name, here, both))
        else:
            found += [Device(name if len(lanes) == 1 else lane, {lane: rate}) for lane, rate in here.items()]
    if left:
        lane = min(left)
        what = "moves nothing: its tasks have 0 bytes, and seconds=…" if lane in UNTIMED else "is not one that this knows"
        raise ValueError(f"lane {lane!r} has tasks that move bytes, but it {what}")
    return found
