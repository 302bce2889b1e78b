"""A gate: the user's own training under realistic load, compared with targets, and the decision written down."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from offload_lab.health.targets import Check, Measured, Targets, compare

WARM_UP = 2
"""Steps whose time does not count: they compile, allocate, and fill caches. Their losses and peaks do count."""
_TAIL = 4000  # characters of output that a decision keeps


@dataclass(frozen=True)
class Decision:
    """What a gate found, when, on what, and why."""

    passed: bool
    why: str
    """One line."""
    when: str
    """UTC, ISO 8601."""
    script: str
    sha256: str
    """Of the script as it was run."""
    steps_wanted: int
    steps: int
    targets: Targets
    checks: list[Check]
    measured: Measured
    machine: dict[str, Any]
    workload: dict[str, Any]
    """Parameters, optimizer, devices, and `optimizer.stats()` at the end; as far as the run came."""
    output: str = field(default="", repr=False)
    """The end of what the workload printed, where it did not run to its end."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it. A loss that is not finite is text: JSON has no such number."""
        found = asdict(self)
        found["measured"]["losses"] = [_as_json(loss) for loss in self.measured.losses]
        for check in found["checks"]:
            check["measured"] = _as_json(check["measured"])
        return found

    def __str__(self) -> str:
        head = f"{'PASSED' if self.passed else 'FAILED'}: {self.why}"
        return "\n".join([head, *(f"  {'pass' if check.passed else 'FAIL'}  {check.text}" for check in self.checks)])


def _as_json(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def gate(
    script: str | os.PathLike[str],
    targets: Targets,
    *,
    steps: int = 30,
    function: str = "workload",
    time_limit: float = 600.0,
    directory: str | os.PathLike[str] | None = None,
) -> Decision:
    """Run `steps` steps of the workload in `script` in a child process, and compare with `targets`.

    The contract: `script` has a function `workload()` that returns `(model, optimizer, losses)`. `losses` is an iterable that
    does one forward on one batch of the user's own data for each item; of each loss the gate calls `backward()`, then
    `optimizer.step()` and `zero_grad()`. A workload with a loop of its own (accumulation, a scaler) makes the step itself and
    yields the loss as a number. Where the function takes an argument it gets an empty folder in `directory` (the current one
    if not given), which is deleted afterwards: for the state's files, so that no run's own are touched.

    A workload that raises, is killed, ends early, or takes longer than `time_limit` seconds fails, with the reason. Raises
    FileNotFoundError for a missing script or directory, ValueError for a number out of range.
    """
    path = Path(script).absolute()
    source = path.read_bytes()
    if steps <= WARM_UP:
        raise ValueError(f"steps={steps}: at least {WARM_UP + 1} are needed, the first {WARM_UP} are warming up")
    if not time_limit > 0:
        raise ValueError(f"time_limit={time_limit}: more than 0 seconds are needed")
    parent = Path.cwd() if directory is None else Path(directory).absolute()
    if not parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(parent)!r} for the scratch files; make it, or name another")
    when = datetime.now(UTC).isoformat(timespec="seconds")
    folder = Path(tempfile.mkdtemp(prefix="offload-gate-", dir=parent))
    try:
        spec = {"script": str(path), "function": function, "steps": steps, "events": str(folder / "events.jsonl")}
        (folder / "scratch").mkdir()
        spec["scratch"] = str(folder / "scratch")
        failure, output = _run(spec, time_limit, folder / "output.txt")
        events = _events(folder / "events.jsonl")
    finally:
        shutil.rmtree(folder)
    made = [event for event in events if event["event"] == "step"]
    ended = next((event for event in events if event["event"] == "ended"), None)
    built = next((event for event in events if event["event"] == "built"), None)
    measured = Measured(
        seconds=tuple(event["seconds"] for event in made[WARM_UP:]),
        losses=tuple(event["loss"] for event in made),
        peak_ram_bytes=max((event["peak_ram"] for event in made), default=None),
        peak_gpu_bytes=ended["peak_gpu"] if ended else None,
        disk_bytes=max((event["disk"] for event in made), default=None),
    )
    if not failure and ended is None:
        failure = f"the process ended with exit code 0 after {len(made)} of {steps} steps, before its work was done"
    if not failure and len(made) < steps:
        failure = f"the workload had losses for {len(made)} of {steps} steps only; give it more data, or ask for fewer steps"
    if not failure and ended is not None and _stood_still(ended["stats"]):
        failure = "the optimizer made no step; a workload that yields numbers must call optimizer.step() itself"
    if not failure and not math.isfinite(measured.losses[-1]):
        failure = f"the loss of step {len(made)} is {measured.losses[-1]}"
    checks = compare(targets, measured) if made else []
    missed = [check.name for check in checks if not check.passed]
    why = failure or (f"missed: {', '.join(missed)}" if missed else f"all {len(checks)} targets are met")
    return Decision(
        passed=not failure and not missed,
        why=why,
        when=when,
        script=str(script),
        sha256=hashlib.sha256(source).hexdigest(),
        steps_wanted=steps,
        steps=len(made),
        targets=targets,
        checks=checks,
        measured=measured,
        machine=_machine(events),
        workload=_without_event(built) | ({"stats": ended["stats"]} if ended else {}),
        output=output[-_TAIL:] if failure else "",
    )


def _run(spec: dict[str, Any], time_limit: float, output: Path) -> tuple[str, str]:
    """Run the child to its end or the limit: (why it failed or "", what it printed). No process of its is left."""
    command = [sys.executable, "-m", "offload_lab.health.load_child", json.dumps(spec)]
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), root]))
    # Not a pipe: a grandchild that outlives the child would hold its end open, and we would wait for it.
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},  # or what it printed dies with it
            start_new_session=True,
        )
        started = time.monotonic()
        try:
            process.wait(time_limit)
            late = False
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _end_group(process)
    printed = output.read_text(encoding="utf-8", errors="replace")
    if late:
        return (
            f"it was not done after {time.monotonic() - started:.0f} s (time limit {time_limit:g} s), and was stopped",
            printed,
        )
    return _reason(process.returncode, printed), printed


def _end_group(process: subprocess.Popen) -> None:
    """Kill what is left of the child's session: itself, and workers that it started."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _reason(code: int, printed: str) -> str:
    if code == 0:
        return ""
    if code < 0:
        name = signal.Signals(-code).name
        hint = "; the system does this when memory runs out" if -code == signal.SIGKILL else ""
        return f"the process was killed by {name}{hint}"
    last = next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "nothing")
    if code == 1 and "Traceback (most recent call last)" in printed:
        return f"the workload failed: {last}"
    return f"the process ended with exit code {code}; the last that it printed: {last}"


def _events(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    whole = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
    return [json.loads(line) for line in whole]  # a line cut off by a kill is none


def _stood_still(stats: dict[str, Any] | None) -> bool:
    return stats is not None and stats["steps"] == 0 == stats["skipped_steps"]


def _without_event(event: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (event or {}).items() if name != "event"}


def _machine(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    from offload_lab import __version__

    started = _without_event(next((event for event in events if event["event"] == "started"), None))
    return {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": psutil.cpu_count(),
        "ram_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "offload_lab": __version__,
        "torch": started.get("torch"),
        "resident_before_workload": started.get("resident"),
    }
