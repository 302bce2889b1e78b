"""From readings to coordinates: ticks, and the readings that are worth drawing. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from offload_lab.meter import Reading
from offload_lab.state_bytes import readable


def ticks(largest: float, wanted: int = 5) -> list[float]:
    """Round numbers from 0 up to `largest`, about `wanted` of them, 1, 2 or 5 times a power of ten apart."""
    if largest <= 0:
        return [0.0]
    rough = largest / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    apart = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [number * apart for number in range(int(largest / apart * (1 + 1e-9)) + 1)]


def byte_label(nbytes: float) -> str:
    """As the tables have it: 250 MB. 0 is 0."""
    return readable(abs(nbytes)) if nbytes else "0"


def thinned(readings: Sequence[Reading], buckets: int) -> list[Reading]:
    """At most 2 · `buckets` + 2 of the readings: of each equal span of time the lowest and the highest in RAM.

    So a peak that lasted one reading is still drawn, and so is the fall after it.
    """
    if len(readings) <= 2 * buckets:
        return list(readings)
    first, last = readings[0], readings[-1]
    span = (last.seconds - first.seconds) / buckets or 1.0
    kept: dict[int, tuple[Reading, Reading]] = {}
    for reading in readings:
        bucket = min(int((reading.seconds - first.seconds) / span), buckets - 1)
        low, high = kept.get(bucket, (reading, reading))
        kept[bucket] = (min(low, reading, key=_ram), max(high, reading, key=_ram))
    chosen = {id(reading): reading for pair in kept.values() for reading in pair}
    chosen |= {id(first): first, id(last): last}
    return sorted(chosen.values(), key=lambda reading: reading.seconds)


def fullest(readings: Sequence[Reading]) -> Reading:
    """The first reading at which RAM held the most."""
    return max(readings, key=_ram)


def _ram(reading: Reading) -> int:
    return reading.ram


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
