"""What a monitor sees after a step, from `optimizer.stats()`, the clock and the file system."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STALLS = ("disk reads", "disk writes")


@dataclass(frozen=True)
class Figures:
    """After one step. None: not known, or there is none (no disk tier; no new step since the last look)."""

    step: int | None = None
    """Steps that the state has had."""
    loss: float | None = None
    step_time: float | None = None
    """Seconds between the last observation and this one: forward, backward, update, and waiting for data."""
    update_time: float | None = None
    """Seconds of the last update that is over."""
    read_bandwidth: float | None = None
    """Bytes a second, while disk reads ran."""
    write_bandwidth: float | None = None
    stall_share: float | None = None
    """Share of the update in which nothing was updated, because the disk was reading or writing."""
    hit_share: float | None = None
    """Share of the state's bytes that needed no read, since the last observation."""
    skipped: int = 0
    """Steps skipped since the last observation."""
    skipped_steps: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    disk_free: int | None = None
    """Bytes free, on the fullest of the disks."""
    wear: float | None = None
    """Share of the disk's endurance that has been written, with what was before this run."""


class Reader:
    """Reads the figures of `optimizer`, and what changed since it read last.

    An optimizer without `stats()` (torch's own) has only loss and step time.
    """

    def __init__(
        self,
        optimizer: Any,
        endurance: int | None = None,
        written_before: int = 0,
        disk_usage: Callable[[str], Any] = shutil.disk_usage,
    ) -> None:
        self._optimizer, self._endurance, self._before, self._usage = optimizer, endurance, written_before, disk_usage
        self._last: dict[str, Any] = {}
        if hasattr(optimizer, "stats"):
            self._last = optimizer.stats(wait=False)
        self.directories = [entry["path"] for entry in self._last.get("directories", [])]

    def read(self, loss: float | None, step_time: float | None) -> Figures:
        """Does not wait for a step that is under way. Raises RuntimeError where the optimizer is closed or has failed."""
        if not self._last:
            return Figures(loss=loss, step_time=step_time)
        before, now = self._last, self._optimizer.stats(wait=False)
        self._last = now
        step, on_disk = now["last_step"], bool(self.directories)
        if step is None or step == before["last_step"]:
            step = {"seconds": None, "bandwidth": {}, "waited": None}
        needed, read = (now[key] - before[key] for key in ("bytes_needed", "bytes_read"))
        return Figures(
            step=now["steps"],
            loss=loss,
            step_time=step_time,
            update_time=step["seconds"],
            read_bandwidth=step["bandwidth"].get("disk reads"),
            write_bandwidth=step["bandwidth"].get("disk writes"),
            stall_share=sum(step["waited"][what] for what in STALLS) if on_disk and step["waited"] is not None else None,
            # A deferred step may have counted what it needs and not yet what it read.
            hit_share=min(max(1 - read / needed, 0.0), 1.0) if on_disk and needed > 0 else None,
            skipped=now["skipped_steps"] - before["skipped_steps"],
            skipped_steps=now["skipped_steps"],
            bytes_read=now["bytes_read"],
            bytes_written=now["bytes_written"],
            ram_bytes=now["ram_bytes"],
            disk_bytes=now["disk_bytes"],
            disk_free=min((self._usage(str(Path(path))).free for path in self.directories), default=None),
            wear=(self._before + now["bytes_written"]) / self._endurance if self._endurance and on_disk else None,
        )
