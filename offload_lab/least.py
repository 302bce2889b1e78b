"""What no schedule can do better: least time and least memory of a step's work, proved. Pure.

`bounds.py` bounds one list of tasks; this bounds all lists that `validation.py` lets pass, so that a schedule can be scored as
a share of it, on any machine. Lanes are of width 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from offload_lab.hardware import Hardware
from offload_lab.lanes import Device, devices
from offload_lab.schedule import Item
from offload_lab.work import Work


@dataclass(frozen=True)
class _Part:
    """A partition: what must be done to it, in seconds alone on the machine (0 where it need not be done), and in bytes.

    `read` and `write` count what is done in any case; `maybe_read` and `maybe_write` what only the sum of all counts, because
    some partitions are spared it and nobody knows which.
    """

    streams: bool
    is_read: bool  # or may be
    read: float
    update: float
    write: float
    maybe_read: float
    maybe_write: float
    read_bytes: int
    write_bytes: int
    size: int
    """Bytes that it has in its buffer at least."""


class Least:
    """Bounds of one step. `held_unknown`: for a step that is not the first. Then any partitions may lie in the buffers when it
    begins, at most one in each; `work.held` is still what the first step began with.

    Let partition p take r, u and w seconds to read, update and write. What must be read: all that streams, but for those in
    `work.held`; where that is unknown, for as many as there are buffers, which saves at most the largest. What must be
    written: all that has something to write; with `work.may_owe`, what lies in the buffers at the end need not be, which
    again saves at most the largest.
    """

    def __init__(
        self, work: Work, hardware: Hardware, seconds: Mapping[str, float] | None = None, *, held_unknown: bool = False
    ) -> None:
        self._work, self._extra = work, dict(seconds or {})
        named = (("disk-read", "read_bytes"), ("disk-write", "write_bytes"), ("cpu", "update_bytes"))
        moving = {lane for lane, name in named if any(getattr(item, name) for item in work.items)}
        self._machine = devices(hardware, moving)
        self._rates = {lane: device.rates[lane] for device in self._machine for lane in device.rates}
        self._parts = [self._part(item, held_unknown) for item in work.items]
        self._spared_reads = work.buffers if held_unknown else 0
        self._spared_writes = work.buffers if work.may_owe else 0

    def _part(self, item: Item, held_unknown: bool) -> _Part:
        work, streams = self._work, not item.resident
        is_read = streams and (held_unknown or item.partition not in work.held)
        certainly_written = item.write_bytes > 0 and not (streams and work.may_owe)
        reading = self._alone("read", "disk-read", item.read_bytes) if is_read else 0.0
        writing = self._alone("write", "disk-write", item.write_bytes) if item.write_bytes else 0.0
        return _Part(
            streams,
            is_read,
            0.0 if held_unknown else reading,
            self._alone("update", "cpu", item.update_bytes),
            writing if certainly_written else 0.0,
            reading if held_unknown else 0.0,
            0.0 if certainly_written else writing,
            item.read_bytes if is_read else 0,
            item.write_bytes,
            # What lay in a buffer from the start may never be moved: then the simulator does not know how large it is.
            max(
                item.read_bytes if streams and item.partition not in work.held else 0,
                item.write_bytes if streams and certainly_written else 0,
            ),
        )

    def _alone(self, kind: str, lane: str, nbytes: int) -> float:
        return self._extra.get(kind, 0.0) + (nbytes / self._rates[lane] if nbytes else 0.0)

    @property
    def seconds(self) -> float:
        """No valid schedule ends sooner in the simulator. The end is at least each of these:

        - the disk: no order gets the bytes through it in less than `Device.least_seconds`;
        - the reads: they run one after the other; the partition that is read last is then updated and written: sum of r +
          smallest u + w of those that are read (or may be: where none is, this says no more than any one partition);
        - the writes: likewise; the partition that is written first was read and updated before: smallest r + u + sum of w;
        - the update: one runs at a time. Before the first, its partition was read; after the last, its partition is written:
          smallest r + sum of u + smallest w;
        - the buffers: a buffer serves one partition at a time, and partition p for r + u + w at least, since its tasks run one
          after the other: sum of r + u + w of all that stream, over the number of buffers;
        - any one partition: r + u + w;
        - the gradients, where there are any: they come one after the other, and after the last one follow u and w of its own
          partition.

        In these sums, what may be spared is left out; in "smallest" and "any one", whatever might be spared counts 0.
        """
        parts = self._parts
        if not parts:
            return 0.0
        reading = sum(part.read for part in parts) + _but(self._spared_reads, (part.maybe_read for part in parts))
        writing = sum(part.write for part in parts) + _but(self._spared_writes, (part.maybe_write for part in parts))
        updating = sum(part.update for part in parts)
        streaming = sum(part.read + part.update + part.write for part in parts if part.streams)
        streaming += _but(self._spared_reads, (part.maybe_read for part in parts))
        bounds = [
            *(self._through(device) for device in self._machine),
            reading,
            writing,
            min(part.read for part in parts) + updating + min(part.write for part in parts),
            max(part.read + part.update + part.write for part in parts),
            streaming / self._work.buffers if streaming else 0.0,
        ]
        if any(part.is_read for part in parts):
            bounds.append(reading + min(part.update + part.write for part in parts if part.is_read))
        if writing:
            bounds.append(min(part.read + part.update for part in parts if part.write_bytes) + writing)
        if self._work.gradients:
            gradients = self._extra.get("gradient", 0.0) * len(parts)
            bounds.append(gradients + min(part.update + part.write for part in parts))
        return max(bounds)

    def _through(self, device: Device) -> float:
        streams = [part for part in self._parts if part.streams]
        others = sum(part.write_bytes for part in self._parts if not part.streams)
        moved = {
            "disk-read": _but(self._spared_reads, (part.read_bytes for part in self._parts)),
            "disk-write": others + _but(self._spared_writes, (part.write_bytes for part in streams)),
        }
        return device.least_seconds({lane: moved[lane] for lane in device.rates if lane in moved})

    @property
    def largest(self) -> int:
        """No valid schedule has less in its buffers at its peak: while a partition is updated it lies in one, with all that
        is read of it, and all that is written, where it has to be; so the largest does."""
        return max((part.size for part in self._parts), default=0)

    @property
    def byte_seconds(self) -> float:
        """What lies in the buffers, summed over time, is at least this: partition p is in one for r + u + w, with its bytes."""
        certain = sum(part.size * (part.read + part.update + part.write) for part in self._parts)
        return certain + _but(self._spared_reads, (part.size * part.maybe_read for part in self._parts))


def _but(count: int, values: Iterable[float]) -> float:
    """The sum of `values` without the `count` largest."""
    return sum(sorted(values)[: -count or None])
