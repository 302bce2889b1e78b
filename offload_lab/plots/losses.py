"""The loss of each step of a run that may go on for days, in bounded memory. Pure."""

from __future__ import annotations

import threading


class Losses:
    """The first and the last loss, how many there were, and at most `limit` of them, evenly spaced from the first.

    When `limit` is passed every second one goes, and from then on only every second new one is kept, as `meter.Sampler` does
    with readings. One thread may add while another reads.
    """

    def __init__(self, limit: int = 2000) -> None:
        if limit < 2:
            raise ValueError(f"limit={limit!r}: at least 2 are needed, or nothing is left to thin out")
        self._limit = limit
        self._kept: list[float] = []
        self._apart = 1
        self._last: float | None = None
        self._count = 0
        self._lock = threading.Lock()

    def add(self, loss: float) -> None:
        with self._lock:
            if self._count % self._apart == 0:
                self._kept.append(loss)
                if len(self._kept) > self._limit:
                    self._kept = self._kept[::2]
                    self._apart *= 2
            self._last = loss
            self._count += 1

    def __len__(self) -> int:
        """Steps there were, kept or not."""
        with self._lock:
            return self._count

    @property
    def apart(self) -> int:
        """Steps between two that are kept: a power of two, 1 until there are more than `limit`."""
        with self._lock:
            return self._apart

    @property
    def kept(self) -> list[float]:
        """Losses of steps 1, 1 + apart, 1 + 2 · apart, …"""
        with self._lock:
            return list(self._kept)

    def __str__(self) -> str:
        """3 steps, loss 5.00 to 3.00; nothing where there was no step."""
        with self._lock:
            if self._last is None:
                return ""
            steps = f"{self._count} step{'s' if self._count > 1 else ''}"
            return f"{steps}, loss {self._kept[0]:.2f} to {self._last:.2f}"
