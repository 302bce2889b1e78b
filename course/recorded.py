"""What a program of `offload_lab.races` does, written down instead of done: its steps, what each touches and waits for, and
how long it would take. Pure: no thread, no data, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from offload_lab.revealer import Program
from offload_lab.trace import Event

MS = {"read": 30, "update": 15, "write": 25, "fetch": 20}
"""Milliseconds of one step of each kind, made up: those of lesson 4. Zeroing and publishing take none."""

_LANES = {"read": "disk-read", "update": "cpu", "write": "disk-write", "fetch": "device-to-host"}


class Step(NamedTuple):
    """One thing that a program does. `reads` and `writes` name places, such as "buffer-0"; `after` holds the numbers of
    earlier steps that have ended for certain when this one begins (and with each of these, all that it began after)."""

    name: str
    reads: frozenset[str]
    writes: frozenset[str]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Recorded:
    """`steps` in the order in which the program began them; `events` of a machine whose lanes do one thing at a time."""

    steps: tuple[Step, ...]
    events: tuple[Event, ...]

    @property
    def ms(self) -> float:
        """Until all is over, simulated."""
        return 1000 * max((event.end for event in self.events), default=0.0)


class _Pending:
    def __init__(self, recorder: _Recorder, number: int, end: float) -> None:
        self._recorder, self._number, self._end = recorder, number, end

    def wait(self) -> None:
        self._recorder.waited(self._number, self._end)


class _Recorder:
    """Has the methods of a `Bench`."""

    def __init__(self, ms: Mapping[str, float], partitions: int) -> None:
        self.partitions = range(partitions)
        self.steps: list[Step] = []
        self.events: list[Event] = []
        self._ms, self._free, self._now = ms, dict[str, float](), 0.0
        self._ended: list[int] = []  # what is known to be over, as few numbers as say it
        self._before: list[set[int]] = []  # of each step all that it began after

    def waited(self, number: int, end: float) -> None:
        self._now = max(self._now, end)
        if number in self._ended or any(number in self._before[other] for other in self._ended):
            return
        self._ended = [other for other in self._ended if other not in self._before[number]] + [number]

    def _begin(self, kind: str, name: str, partition: int, reads: Iterable[str], writes: Iterable[str]) -> _Pending:
        number, after = len(self.steps), tuple(sorted(self._ended))
        self.steps.append(Step(name, frozenset(reads), frozenset(writes), after))
        self._before.append(set(after).union(*(self._before[other] for other in after)))
        lane = _LANES.get(kind)
        start = max(self._now, self._free.get(lane or "", 0.0))
        end = start + self._ms.get(kind, 0.0)
        if lane is not None:
            self._free[lane] = end
            self.events.append(Event(kind, lane, partition, start / 1000, end / 1000, 0))
        return _Pending(self, number, end)

    def read(self, partition: int, buffer: int) -> _Pending:
        name = f"read of partition {partition} into buffer {buffer}"
        return self._begin("read", name, partition, [f"disk-{partition}"], [f"buffer-{buffer}"])

    def write(self, partition: int, buffer: int) -> _Pending:
        name = f"write of partition {partition} from buffer {buffer}"
        return self._begin("write", name, partition, [f"buffer-{buffer}"], [f"disk-{partition}"])

    def fetch(self, partition: int) -> _Pending:
        return self._begin("fetch", f"fetch of gradient {partition}", partition, [], [f"gradient-{partition}"])

    def update_later(self, partition: int, buffer: int) -> _Pending:
        places = [f"buffer-{buffer}", f"gradient-{partition}"]
        return self._begin("update", f"update of partition {partition} in buffer {buffer}", partition, places, places[:1])

    def update(self, partition: int, buffer: int) -> None:
        self.update_later(partition, buffer).wait()

    def zero_gradient(self, partition: int) -> None:
        self._begin("zero", f"zeroing of gradient {partition}", partition, [], [f"gradient-{partition}"]).wait()

    def publish(self) -> None:
        self._begin("publish", "publishing", -1, [f"disk-{partition}" for partition in self.partitions], []).wait()


def recorded(program: Program, ms: Mapping[str, float] = MS, partitions: int = 5) -> Recorded:
    """Run `program` on a bench that only writes down. Raises what the program raises, AttributeError for a program that looks
    at the data of its bench."""
    recorder: Any = _Recorder(ms, partitions)
    program(recorder)
    return Recorded(tuple(recorder.steps), tuple(recorder.events))


def text(steps: Sequence[Step]) -> str:
    """One line a step: its number, its name, and the numbers of those that it begins after."""
    width = max((len(step.name) for step in steps), default=0)
    lines = [f"{number:2}  {step.name:{width}}  after {step.after or 'nothing'}" for number, step in enumerate(steps)]
    return "\n".join(lines)
