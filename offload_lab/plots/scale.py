"""From readings to coordinates: ticks, and the readings that are worth drawing. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from offload_lab.state_bytes import readable

if TYPE_CHECKING:
    from offload_lab.meter import Reading


def ticks(largest: float, wanted: int = 5) -> list[float]:
    """Round numbers from 0 up to `largest`, about `wanted` of them, 1, 2 or 5 times a power of ten apart."""
    if largest <= 0:
        return [0.0]
    rough = largest / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    apart = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [number * apart for number in range(int(largest / apart * (1 + 1e-9)) + 1)]


@lru_cache(maxsize=4096)
def byte_label(nbytes: float) -> str:
    """As the tables have it: 250 MB. 0 is 0."""
    return (readable(abs(nbytes)) if abs(nbytes) < 1e18 else f"{abs(nbytes) / 1e15:.3g} PB") if nbytes else "0"


def second_label(seconds: float) -> str:
    """Three digits and a unit: 12.3 ms, 1.5 s, 2.5 h. 0 is 0 s."""
    size = abs(seconds)
    for unit, least, below in (("ns", 1e-9, 1e-6), ("µs", 1e-6, 1e-3), ("ms", 1e-3, 1.0), ("s", 1.0, 600.0)):
        if 0 < size < below * 0.9995:
            return f"{_three(seconds / least)} {unit}"
    for unit, least, below in (("min", 60.0, 7200.0), ("h", 3600.0, 172_800.0), ("d", 86_400.0, math.inf)):
        if 0 < size < below:
            return f"{_three(seconds / least)} {unit}"
    return "0 s"


def share_label(share: float) -> str:
    """Whole percent; what is less than one but not nothing is "< 1 %"."""
    if 0 < share < 0.01:
        return "< 1 %"
    return f"{share * 100:.0f} %" if abs(share) < 1000 else f"{share:.3g} ×"


def _three(value: float) -> str:
    return f"{value:.0f}" if 99.95 <= abs(value) < 1e6 else f"{value:.3g}"


def thinned(readings: Sequence[Reading], buckets: int) -> list[Reading]:
    """At most 2 · `buckets` + 2 of the readings: of each equal span of time the lowest and the highest in RAM.

    So a peak that lasted one reading is still drawn, and so is the fall after it.
    """
    if len(readings) <= 2 * buckets:
        return list(readings)
    first, last = readings[0], readings[-1]
    per_second = buckets / (last.seconds - first.seconds or 1.0)
    low: list[Reading | None] = [None] * buckets
    high: list[Reading | None] = [None] * buckets
    # Without key functions: this loop is most of what an update of the live view costs.
    for reading in readings:
        bucket = min(int((reading.seconds - first.seconds) * per_second), buckets - 1)
        lowest, highest = low[bucket], high[bucket]
        if lowest is None or highest is None:
            low[bucket] = high[bucket] = reading
        elif reading.ram < lowest.ram:
            low[bucket] = reading
        elif reading.ram > highest.ram:
            high[bucket] = reading
    chosen = {id(reading): reading for reading in (first, last, *low, *high) if reading is not None}
    return sorted(chosen.values(), key=lambda reading: reading.seconds)


def fullest(readings: Sequence[Reading]) -> Reading:
    """The first reading at which RAM held the most."""
    return max(readings, key=attrgetter("ram"))


def spread(wanted: Sequence[float], apart: float, lowest: float, highest: float) -> list[float]:
    """The positions nearest to `wanted`, which rise, that are `apart` from each other and within the two ends."""
    placed: list[float] = []
    for position in wanted:
        placed.append(max(position, placed[-1] + apart if placed else lowest))
    ceiling = highest
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], ceiling)
        ceiling = placed[index] - apart
    return placed
