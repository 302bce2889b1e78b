"""What no schedule can do better: least time and least memory of a step's work, proved. Pure.

`bounds.py` bounds one list of tasks; this bounds all lists that `validation.py` lets pass, so that a schedule can be scored as
a share of it, on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offload_lab.hardware import Hardware
from offload_lab.lanes import Device, devices
from offload_lab.schedule import Item
from offload_lab.work import Work


def least_seconds(work: Work, hardware: Hardware, seconds: Mapping[str, float] | None = None) -> float:
    """No valid schedule of `work` ends sooner in the simulator, with lanes of width 1 and the same `seconds`.

    Let partition p take r, u and w seconds to read, update and write, each alone on the machine (0 where it need not be
    done). What must be read: all that is streamed, but for those in `work.held`. What must be written: all that has something
    to write; with `work.may_owe`, those of them that stream may be left in the buffers, and most is saved by the largest, one
    for each buffer. The end is at least each of these:

    - the disk: no order gets the bytes through it in less than `Device.least_seconds`, and each lane takes the sum of its own
      tasks;
    - the update: one update runs at a time. Before the first, its partition was read; after the last, its partition is written
      (unless it may be owed): smallest r + sum of u + smallest w;
    - the reads: the partition that is read last is then updated and written: sum of r + smallest u + w of those that are read;
    - the writes: the partition that is written first was read and updated before: smallest r + u + sum of w;
    - the buffers: a partition that is read, updated and written takes a buffer for r + u + w at least, and a buffer serves
      one partition at a time: their sum over the number of buffers;
    - any one partition: r + u + w;
    - the gradients, where there are any: they come one after the other, and after the last one follow u and w of its own
      partition.
    """
    extra = dict(seconds or {})
    if not work.items:
        return 0.0
    everything = [("disk-read", "read_bytes"), ("disk-write", "write_bytes"), ("cpu", "update_bytes")]
    moving = {lane for lane, name in everything if any(getattr(item, name) for item in work.items)}
    machine = devices(hardware, moving)
    rates = {lane: device.rates[lane] for device in machine for lane in device.rates}

    def alone(kind: str, lane: str, nbytes: int) -> float:
        return extra.get(kind, 0.0) + (nbytes / rates[lane] if nbytes else 0.0)

    read = {item.partition: alone("read", "disk-read", item.read_bytes) for item in work.items if _is_read(item, work)}
    update = {item.partition: alone("update", "cpu", item.update_bytes) for item in work.items}
    write = {item.partition: alone("write", "disk-write", item.write_bytes) for item in work.items if item.write_bytes}
    owing = work.may_owe and any(not item.resident for item in work.items)
    streams = {item.partition for item in work.items if not item.resident}
    left = _largest([took for partition, took in write.items() if partition in streams], work.buffers if owing else 0)
    writing = sum(write.values()) - left
    # Of one partition: what comes before its update, and what has to come after it.
    before = {partition: read.get(partition, 0.0) for partition in update}
    after = {p: 0.0 if owing and p in streams else write.get(p, 0.0) for p in update}
    bounds = [
        *_disk(machine, work, owing),
        sum(read.values()),
        writing,
        min(before.values()) + sum(update.values()) + min(after.values()),
        max(before[p] + update[p] + after[p] for p in update),
    ]
    if read:
        bounds.append(sum(read.values()) + min(update[p] + after[p] for p in read))
        whole = sum(before[p] + update[p] + after[p] for p in read)
        bounds.append(whole / work.buffers)
    if write and not owing:
        bounds.append(min(before[p] + update[p] for p in write) + writing)
    if work.gradients:
        bounds.append(extra.get("gradient", 0.0) * len(update) + min(update[p] + after[p] for p in update))
    return max(bounds)


def _is_read(item: Item, work: Work) -> bool:
    return not item.resident and item.partition not in work.held


def _largest(values: Sequence[float], count: int) -> float:
    return sum(sorted(values, reverse=True)[:count])


def _disk(machine: Sequence[Device], work: Work, owing: bool) -> list[float]:
    reads = sum(item.read_bytes for item in work.items if _is_read(item, work))
    written = sum(item.write_bytes for item in work.items)
    if owing:
        written -= int(_largest([item.write_bytes for item in work.items if not item.resident], work.buffers))
    return [device.least_seconds({"disk-read": reads, "disk-write": written}) for device in machine]


def least_bytes(work: Work) -> int:
    """No valid schedule of `work` has less in its buffers at its peak: while a partition that streams is updated it lies in
    one, with all that is read of it, and all that is written, where it has to be; so the largest does."""
    sizes = [max(item.read_bytes, 0 if work.may_owe else item.write_bytes) for item in work.streamed]
    return max(sizes, default=0)


def least_held(work: Work) -> Work:
    """`work` as it would be at best in a step that is not the first, whatever the steps before did: for `least_seconds` only.

    At most one partition lies in each buffer when a step begins, so at most that many need not be read. To leave out the
    largest is to leave out the most.
    """
    largest = sorted(work.streamed, key=lambda item: -item.read_bytes)[: work.buffers]
    held = {item.partition: buffer for buffer, item in enumerate(largest)}
    return Work(work.items, work.buffers, work.number, held, {}, work.may_owe, work.gradients)
