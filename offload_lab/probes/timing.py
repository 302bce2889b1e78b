"""The same piece of work again and again until its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable


def repeat(work: Callable[[], object], seconds: float, least: int = 3) -> list[float]:
    """Seconds that each call of `work` took: as many calls as begin within `seconds`, at least `least`. One call before them
    warms up and is not counted; it is within the time."""
    end = time.perf_counter() + seconds
    work()
    taken: list[float] = []
    while len(taken) < least or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def spread(rates: list[float], unit: str = "GB/s", scale: float = 1e9) -> str:
    """How many there were, and the slowest and the fastest, for a figure's note: its value is their median."""
    return f"median of {len(rates)}, {min(rates) / scale:.2f} to {max(rates) / scale:.2f} {unit}"
