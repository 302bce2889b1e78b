"""Incidents provoked on purpose, and mended: what a person should have seen once before it happens in earnest.

    for drill in DRILLS: print(drill("."))

Each works in a folder of its own in the directory that it is given, and deletes it. What is provoked is the real thing where
that can be had without privileges (a kill, a damaged byte, a gradient that is not finite); a full disk and a slow one are
imitated at the system call, and `provoked` says so.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from offload_lab.health.monitor import Monitor
from offload_lab.health.thresholds import Thresholds
from offload_lab.optimizer import OffloadAdamW
from offload_lab.policy import OffloadPolicy
from offload_lab.storage.direct_io import StorageError
from offload_lab.storage.files import STATE

STEPS = 6
"""Steps of the run that nobody disturbed, and of the disturbed ones in the end."""


@dataclass(frozen=True)
class Incident:
    """What was provoked, what was seen, how it was mended, and whether nothing was lost."""

    name: str
    provoked: str
    happened: str
    """What the program said, or what was measured."""
    mended: str
    intact: bool
    """The weights in the end are, bit for bit, those of a run that nobody disturbed."""
    figures: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        result = "the same bits as a run that nobody disturbed" if self.intact else "NOT the bits of an undisturbed run"
        rows = (("provoked", self.provoked), ("happened", self.happened), ("mended", self.mended), ("result", result))
        return "\n".join([self.name, *(f"  {what + ':':9} {told}" for what, told in rows)])


class Training:
    """A small model with state on disk, or in RAM without a directory; step n has the same gradients in every one."""

    def __init__(
        self, directory: str | os.PathLike[str] | None, existing: Literal["replace", "resume", "previous"] = "replace"
    ):
        generator = torch.Generator().manual_seed(0)
        self.parameters = [
            torch.nn.Parameter(torch.randn(shape, generator=generator).bfloat16()) for shape in ((60, 100), (4000,), (1,))
        ]
        policy = OffloadPolicy()
        if directory is not None:
            policy = OffloadPolicy(tier="disk", directory=directory, partition_size=1000, existing=existing)
        self.optimizer = OffloadAdamW(self.parameters, lr=0.01, offload=policy)

    @property
    def step(self) -> int:
        return int(self.optimizer.stats()["steps"])

    def set_gradients(self) -> None:
        """Those of the step that is next."""
        generator = torch.Generator().manual_seed(1000 + self.step)
        for parameter in self.parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator).bfloat16()

    def to(self, step: int) -> Training:
        """Train until `step` steps have been made."""
        while self.step < step:
            self.set_gradients()
            self.optimizer.step()
        return self

    def weights(self) -> list[torch.Tensor]:
        return [parameter.detach().clone() for parameter in self.parameters]

    def close(self) -> None:
        self.optimizer.close()


def _undisturbed(step: int = STEPS) -> list[torch.Tensor]:
    training = Training(None).to(step)
    found = training.weights()
    training.close()
    return found


def _same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def _finished(training: Training) -> bool:
    """Train to the end, close, and say whether the weights are those of an undisturbed run."""
    try:
        return _same(training.to(STEPS).weights(), _undisturbed())
    finally:
        training.close()


@contextmanager
def _folder(directory: str | os.PathLike[str], name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"drill-{name}-", dir=directory) as folder:
        yield Path(folder) / "state"


@contextmanager
def _instead(call: Literal["preadv", "pwritev"], replacement: Callable[..., int]) -> Iterator[None]:
    """Every call of `os.preadv` or `os.pwritev` in this process goes to `replacement` meanwhile."""
    real = getattr(os, call)
    setattr(os, call, replacement)
    try:
        yield
    finally:
        setattr(os, call, real)


def killed_in_a_step(directory: str | os.PathLike[str] = ".", step: int = 4) -> Incident:
    """A process dies in the middle of a step. Raises RuntimeError where the child ended in another way."""
    with _folder(directory, "kill") as folder:
        root = str(Path(__file__).resolve().parents[2])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        command = [sys.executable, "-m", "offload_lab.health.drill_child", str(folder), str(step)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != -signal.SIGKILL:
            raise RuntimeError(
                f"the process that was to be killed ended with exit code {done.returncode}: {done.stderr[-500:]}"
            )
        training = Training(folder, existing="resume")
        found = training.step
        whole = _same(training.weights(), _undisturbed(found))
        return Incident(
            "killed in a step",
            f"SIGKILL in a child process, at the second write of step {step}",
            f"the process was gone; its directory holds step {found}, whole: {'yes' if whole else 'NO'}",
            'OffloadPolicy(existing="resume") takes up the last published step; the killed one is made again',
            _finished(training) and whole,
            {"killed_in_step": step, "found_step": found},
        )


def disk_full(directory: str | os.PathLike[str] = ".", step: int = 4) -> Incident:
    """The disk refuses a write in the middle of a step."""
    with _folder(directory, "full") as folder:
        training = Training(folder).to(step - 1)
        write, writes = os.pwritev, 0

        def refusing(*arguments: Any) -> int:
            nonlocal writes
            writes += 1
            if writes > 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(*arguments)

        said = "nothing: the step went through"
        with _instead("pwritev", refusing):
            try:
                training.to(step)
            except StorageError as error:
                said = str(error)
        training.optimizer.rollback()
        found = training.step
        return Incident(
            "disk full",
            f"os.pwritev refuses every write of step {step} but two with ENOSPC, as a full disk does (imitated)",
            said,
            f"after space was made, optimizer.rollback() went back to step {found}, and the step was made again",
            _finished(training),
            {"refused_in_step": step, "found_step": found},
        )


def corrupted_file(directory: str | os.PathLike[str] = ".", step: int = 4) -> Incident:
    """One byte of the newest step's state changes on the disk."""
    with _folder(directory, "corrupt") as folder:
        Training(folder).to(step - 1).close()
        before = (folder / STATE).read_bytes()
        Training(folder, existing="resume").to(step).close()
        now = (folder / STATE).read_bytes()
        # What the last step wrote is what differs; the step before it lies in the other slots, and stays whole.
        at = next(place for place, (old, new) in enumerate(zip(before, now, strict=True)) if old != new)
        with (folder / STATE).open("r+b") as file:
            file.seek(at)
            file.write(bytes([now[at] ^ 0x10]))
        said = "nothing: it was taken up"
        try:
            Training(folder, existing="resume").close()
        except StorageError as error:
            said = str(error)
        training = Training(folder, existing="previous")
        found = training.step
        return Incident(
            "corrupted file",
            f"one bit of byte {at:,} of {STATE} was flipped, in what step {step} wrote",
            said,
            f'OffloadPolicy(existing="previous") takes up the step before it, {found}, which is whole',
            _finished(training),
            {"damaged_step": step, "found_step": found, "byte": at},
        )


def nan_gradient(directory: str | os.PathLike[str] = ".", step: int = 4) -> Incident:
    """One element of one gradient is not a number."""
    with _folder(directory, "nan") as folder:
        training = Training(folder).to(step - 1)
        monitor = Monitor(training.optimizer, Thresholds(disk_free=None))
        before = training.weights()
        training.set_gradients()
        training.parameters[1].grad[17] = float("nan")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            training.optimizer.step()
        alarms = monitor.observe()
        untouched = _same(training.weights(), before)
        return Incident(
            "gradient that is not finite",
            f"element 17 of the second parameter's gradient was NaN in step {step}",
            " ".join([str(warning.message) for warning in caught] + [alarm.message for alarm in alarms]),
            f"the step was skipped, the weights were {'not touched' if untouched else 'CHANGED'}; a sound gradient made it",
            _finished(training) and untouched,
            {"skipped_steps": monitor.figures.skipped_steps, "alarms": [alarm.kind for alarm in alarms]},
        )


def slow_disk(directory: str | os.PathLike[str] = ".") -> Incident:
    """Reads become slow, and fast again; the monitor says both."""
    with _folder(directory, "slow") as folder:
        training = Training(folder)
        monitor = Monitor(training.optimizer, Thresholds(window=12, hold=3, disk_free=None))
        times: list[float] = []

        def one() -> list[str]:
            training.to(training.step + 1)
            raised = monitor.observe()
            times.append(monitor.figures.step_time or 0.0)
            return [alarm.kind for alarm in raised]

        for _ in range(20):
            one()
        usual = monitor.figures.read_bandwidth
        delay = max(0.02, 8 * max(times))
        real = os.preadv

        def slow(*arguments: Any) -> int:
            time.sleep(delay)
            return real(*arguments)

        with _instead("preadv", slow):
            seen = [kind for _ in range(4) for kind in one()]
        slowed, said = monitor.figures.read_bandwidth, [event.message for event in monitor.events if event.state == "raised"]
        again = 0
        while monitor.active and again < 100:
            one()
            again += 1
        reached = training.step
        intact = _same(training.weights(), _undisturbed(reached))
        training.close()
        return Incident(
            "slow disk",
            f"every os.preadv took {delay * 1000:.0f} ms longer for 4 steps (imitated)",
            " ".join(said),
            f"the disk was fast again; after {again} steps {', '.join(monitor.active) or 'no alarm'} was up",
            intact,
            {"alarms": seen, "active": monitor.active, "read_bandwidth": usual, "slow_read_bandwidth": slowed},
        )


DRILLS = (killed_in_a_step, disk_full, corrupted_file, nan_gradient, slow_disk)
