"""What a schedule function is told of a step, and the list in which it puts its tasks. Pure: no torch, no threads.

    def my_schedule(work: Work) -> TaskList:
        tasks = TaskList()
        written = None
        for item in work.items:
            read = tasks.read(item, buffer=0, after=written)
            update = tasks.update(item, buffer=0, after=read)
            written = tasks.write(item, buffer=0, after=update)
        return tasks

runs in the simulator, `simulate(my_schedule(work), hardware)`, and on the engine, `OffloadPolicy(…, schedule=my_schedule)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from offload_lab.schedule import Item, Kind, Lane, Task

After = int | None | Iterable[int | None]
"""Numbers of earlier tasks to wait for. None is no task: what `read` and `write` return where there is nothing to do."""


@dataclass(frozen=True)
class Work:
    """One step as a schedule function is told it."""

    items: tuple[Item, ...]
    """The partitions to update, each once: in the order that the policy asks for, or, with `gradients`, in the one in which
    backward is expected to bring them."""

    buffers: int
    """Buffers 0 … buffers - 1, each with room for any one partition."""

    number: int = 0
    """Of the step, counted from 0."""

    held: Mapping[int, int] = field(default_factory=dict)
    """Partition -> the buffer that holds its newest state already, least recently used first. It need not be read."""

    owed: Mapping[int, int] = field(default_factory=dict)
    """Of those in `held`: partition -> bytes that were changed and are not on disk yet. Its buffer may be used otherwise,
    and the partition read, only after `TaskList.settle`."""

    may_owe: bool = False
    """Whether what was updated may stay in its buffer without being written. False where each step has to be on disk."""

    gradients: bool = False
    """Whether the step runs during backward: then each update waits for its `TaskList.gradient` as well."""

    @property
    def streamed(self) -> list[Item]:
        """The items that go through buffers: all that are not resident."""
        return [item for item in self.items if not item.resident]


class TaskList(list[Task]):
    """Tasks in the order in which their lanes start them. Each method appends one and returns its number.

    Nothing is added by itself: a task waits for what `after` says, and for its turn in its lane. What is missing there is a
    race, which the engine refuses to run (see `validation.py`).
    """

    def read(self, item: Item, buffer: int | None, after: After = ()) -> int | None:
        """Bring the state of `item` from disk into `buffer`. Nothing, and None, for an item that is resident."""
        if item.resident:
            return None
        return self.put("read", "disk-read", item.partition, item.read_bytes, after, buffer)

    def gradient(self, item: Item) -> int:
        """Ends when backward has brought the gradients of `item`."""
        return self.put("gradient", "backward", item.partition, 0)

    def update(self, item: Item, buffer: int | None, after: After = ()) -> int:
        """Take the state of `item`, which lies in `buffer` unless it is resident, from step t to t + 1."""
        return self.put("update", "cpu", item.partition, item.update_bytes, after, None if item.resident else buffer)

    def write(self, item: Item, buffer: int | None, after: After = ()) -> int | None:
        """Bring the state of `item` from `buffer` to disk. Nothing, and None, for an item of which nothing is written."""
        if not item.write_bytes:
            return None
        buffers = None if item.resident else buffer
        return self.put("write", "disk-write", item.partition, item.write_bytes, after, buffers)

    def settle(self, work: Work, partition: int, after: After = ()) -> int | None:
        """Write what earlier steps left unwritten of `partition`. Nothing, and None, where they left nothing."""
        if partition not in work.owed:
            return None
        return self.put("write", "disk-write", partition, work.owed[partition], after, work.held[partition])

    def forward(self, item: Item, after: After = ()) -> int:
        """The next forward through the weights of `item`. Only the simulator runs it; in a real run this is the user's
        model, whose every weight waits for its own update (`OffloadPolicy(overlap="forward")`)."""
        return self.put("forward", "forward", item.partition, 0, after)

    def put(self, kind: Kind, lane: Lane, partition: int, nbytes: int, after: After = (), buffer: int | None = None) -> int:
        """Any task. Lanes of an accelerator ("fetch" in "device-to-host", "send" in "host-to-device", "compute" in
        "accelerator") are run by the simulator only."""
        waits = (after,) if after is None or isinstance(after, int) else after
        number = len(self)
        numbers = tuple(dict.fromkeys(other for other in waits if other is not None))
        self.append(Task(number, kind, lane, partition, nbytes, numbers, buffer))
        return number


Schedule = Callable[[Work], Sequence[Task]]
"""A schedule function: from the work of a step to its tasks. It is called once for each step and keeps nothing itself,
unless it wants to: `Work` says what the buffers hold."""
