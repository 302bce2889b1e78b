"""Trainings of the Colab lab in processes of their own: one that shall run out of memory, one that is killed.

As a program it is the child: `python -m course.lab_runs '<spec as JSON>'` writes a JSON object a line to stdout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from course.children import ChildError
from course.fitting import Choice
from course.one_gpu import _gpu_peak, is_full, let_go, load
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.demo import limit_is_enforced
from offload_lab.demo_child import limit_data
from offload_lab.masters import MasterWeights
from offload_lab.meter import vm_data
from offload_lab.state_bytes import readable
from offload_lab.training import train
from quizzes.say import _

_WAIT = 600.0  # seconds without a word after which a child is given up; a large model is loaded in that time


def adamw(model: torch.nn.Module, lr: float) -> MasterWeights:
    """torch's AdamW as one usually has it: over float32 masters, where the model is of 16 bits."""
    return MasterWeights(model.parameters(), lambda masters: torch.optim.AdamW(masters, lr=lr))


def in_ram(choice: Choice, folder: str | os.PathLike[str]) -> OffloadPolicy:
    """All of the state in RAM; where it does not fit, as much as may, and the rest in `folder`, as scratch."""
    if choice.ram_budget is None:
        return OffloadPolicy(tier="ram")
    return OffloadPolicy(tier="disk", directory=folder, ram_budget=choice.ram_budget, durability="checkpoint")


def on_disk(choice: Choice, folder: str | os.PathLike[str]) -> OffloadPolicy:
    """All of the state in `folder`, from which each step can be taken up again."""
    return OffloadPolicy(tier="disk", directory=folder, ram_budget=choice.buffers, durability="step")


@dataclass(frozen=True)
class Tried:
    """How the first steps with an optimizer ended. Bytes are the card's, or of the process beyond what it had before."""

    name: str
    limit: int
    limited: bool
    """Whether a limit was there: a card's own, or one that the system enforces."""
    steps: int
    message: str
    """What was said when there was no more memory; "" where there was enough."""
    peak: int

    def __str__(self) -> str:
        if self.message:
            told = _("{name}: out of memory before step {steps} was over. In the allocator's words:")
            first = told.format(name=self.name, steps=self.steps + 1)
            words = textwrap.fill(self.message, 96, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
            return f"{first}\n{words}"
        told = _("{name}: {steps} steps, {peak} at the most of {limit}")
        if not self.limited:
            told = _("{name}: {steps} steps, {peak} at the most; this system enforces no limit of {limit}")
        return told.format(name=self.name, steps=self.steps, peak=readable(self.peak), limit=readable(self.limit))


def tried(choice: Choice, optimizer: str, steps: int = 2) -> Tried:
    """Train `choice` for `steps` with "adamw" or "disk", in a process of its own: on the card, or, where there is none, under
    a limit of `choice.card` bytes beyond what it has when all is loaded.

    Leaves no file. Raises ChildError where it ends in another way than with enough memory or too little.
    """
    limited = choice.device != "cpu" or not limit_is_enforced()
    with tempfile.TemporaryDirectory(prefix="tried-", dir=".") as folder:
        spec = {"do": "try", "optimizer": optimizer, "steps": steps, "folder": folder, "limited": limited}
        with _child(choice, spec) as lines:
            told = list(lines)
    name = {"adamw": "torch.AdamW", "disk": "OffloadAdamW, state on disk"}[optimizer]
    return Tried(name, choice.card, limited, **told[-1])


def killed_after(choice: Choice, folder: str | os.PathLike[str], step: int, most: int = 1000) -> list[float]:
    """Train with the state in `folder`, and `kill -9` the training as soon as it says that `step` is over, which is in the
    middle of the next one. Returns the loss of each step that it told of. Raises ChildError where it ends by itself."""
    losses: list[float] = []
    spec = {"do": "train", "steps": most, "folder": str(folder)}
    with _child(choice, spec, lambda: len(losses) >= step) as lines:
        for line in lines:
            losses.append(line["loss"])
            if len(losses) >= step:
                break
    if len(losses) < step:
        raise ChildError(_("the training ended by itself, after step {step}").format(step=len(losses)))
    return losses


@contextmanager
def _child(choice: Choice, spec: dict[str, Any], may_be_killed: Callable[[], bool] = lambda: False) -> Iterator[Any]:
    """Lines of a child; when the block ends, by an error or an interrupt too, the child is gone: killed, if it still runs."""
    command = [sys.executable, "-m", "course.lab_runs", json.dumps(spec | {"choice": asdict(choice)})]
    # The kernel's own path: a notebook's folder need not be one from which this module is found. As in the demonstration of
    # lesson 1, freed memory goes back at once, stacks, which a limit counts in full, are small, and torch's threads sleep
    # while they wait.
    path = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    tuned = {
        "MALLOC_MMAP_THRESHOLD_": str(128 << 10),
        "MALLOC_ARENA_MAX": "1",
        "OMP_STACKSIZE": "1M",
        "OMP_WAIT_POLICY": "passive",
    }
    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | path | tuned
    ) as child:
        reader = threading.Thread(target=lambda: said.extend(child.stderr or ()), daemon=True)
        reader.start()
        watch = _Watch(child.kill)
        try:
            yield _lines(child, watch.heard)
            if not may_be_killed():
                child.wait()
        finally:
            watch.stop()
            child.kill()
            child.wait()
            reader.join()
    if child.returncode and not may_be_killed():
        last = ("".join(said).strip().splitlines() or [_("(it said nothing)")])[-1]
        raise ChildError(_("a training ended with {code}: {last}").format(code=child.returncode, last=last))


class _Watch:
    """Calls `end` when nothing was heard for too long."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._start()

    def _start(self) -> None:
        self._timer = threading.Timer(_WAIT, self._end)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()

    def heard(self) -> None:
        self.stop()
        self._start()


def _lines(child: subprocess.Popen[str], heard: Callable[[], None]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    for line in child.stdout:
        heard()
        if line.startswith("{") and line.endswith("}\n"):  # a library may print, and a child that dies half a line
            yield json.loads(line)


# --- the child ------------------------------------------------------------------------------------------------------------


def _tell(**content: Any) -> None:
    print(json.dumps(content), flush=True)


def _optimizer(choice: Choice, kind: str, model: torch.nn.Module, folder: Path) -> Any:
    if kind == "adamw":
        return adamw(model, choice.lr)
    policy = OffloadPolicy(tier="disk", directory=folder, ram_budget=choice.buffers, durability="checkpoint")
    return OffloadAdamW(model.parameters(), lr=choice.lr, offload=policy)


def _warm_up(choice: Choice, spec: dict[str, Any]) -> None:
    """Load, compile and start all that a training needs, so that the limit counts the model and not the machinery."""
    load(choice)
    model, batches = load(replace(choice, model="TinyGPT", layers=1, width=64, context=16, buffers=1_000_000))
    optimizer = _optimizer(choice, spec["optimizer"], model, Path(spec["folder"]) / "warm-up")
    train(model, optimizer, batches, 2)
    let_go(model, optimizer)


def _try(choice: Choice, spec: dict[str, Any]) -> None:
    threading.stack_size(1 << 20)
    if choice.device == "cpu":
        _warm_up(choice, spec)
    before = vm_data() or 0
    if choice.device == "cpu" and spec["limited"]:
        limit_data(choice.card)
    steps, message, peak = 0, "", [0]

    def on_step(step: int, loss: float) -> None:
        nonlocal steps
        steps = step

    try:
        model, batches = load(choice)
        optimizer = _optimizer(choice, spec["optimizer"], model, Path(spec["folder"]) / "state")
        with _most_of_vm_data(before, peak):
            train(model, optimizer, batches, spec["steps"], on_step=on_step)
        if hasattr(optimizer, "close"):
            optimizer.close()
    except (MemoryError, RuntimeError, OSError) as error:
        if not is_full(error):
            raise
        message = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    _tell(steps=steps, message=message, peak=peak[0] if choice.device == "cpu" else _gpu_peak())


@contextmanager
def _most_of_vm_data(before: int, peak: list[int]) -> Iterator[None]:
    """Look every few milliseconds at how much private memory this process has beyond `before`; `peak[0]` is the most."""
    ended = threading.Event()

    def look() -> None:
        while True:
            peak[0] = max(peak[0], (vm_data() or 0) - before)
            if ended.wait(0.005):
                return

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()


def _train(choice: Choice, spec: dict[str, Any]) -> None:
    model, batches = load(choice)
    with OffloadAdamW(model.parameters(), lr=choice.lr, offload=on_disk(choice, spec["folder"])) as optimizer:
        train(model, optimizer, batches, spec["steps"], on_step=lambda step, loss: _tell(loss=loss))


def _main(spec: dict[str, Any]) -> None:
    choice = Choice(**spec["choice"])
    {"try": _try, "train": _train}[spec["do"]](choice, spec)


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
