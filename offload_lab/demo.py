"""The demonstration: the same small GPT, three optimizers, one hard limit on memory.

Three child processes, one after the other, train the same bfloat16 model on the same text from the same seed: with
`torch.optim.AdamW` over float32 masters, with `OffloadAdamW` in RAM, and with `OffloadAdamW` on disk. Each may take, beyond
what it had when everything was loaded, 16 bytes a parameter: what AdamW's weights (2), gradients (2), masters (4) and
moments (4 + 4) need, which leaves it nothing for activations. The operating system enforces the limit (`RLIMIT_DATA`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offload_lab.meter import Reading
from offload_lab.state_bytes import TrainingBytes, training_bytes

NAMES = {"adamw": "torch.AdamW", "ram": "OffloadAdamW ram", "disk": "OffloadAdamW disk"}


@dataclass(frozen=True)
class Preset:
    """What the demonstration trains. Small batches, so that the model's bytes, not its activations, fill the memory."""

    layers: int
    width: int
    steps: int
    heads: int = 8
    context: int = 32
    batch: int = 2
    lr: float = 3e-4
    ram_budget: int = 32 << 20

    @property
    def parameters(self) -> int:
        """Those of TinyGPT: 12 · width² and two gains a block, the byte and place embeddings, the last gain."""
        return self.layers * (12 * self.width**2 + 2 * self.width) + (256 + self.context + 1) * self.width


PRESETS = {"full": Preset(layers=12, width=512, steps=20), "lesson": Preset(layers=10, width=512, steps=8)}


@dataclass(frozen=True)
class Run:
    """What one child process reported. Bytes are measured, beyond what the process had before the model was built."""

    optimizer: str
    outcome: str
    """"trained" or "out of memory"."""
    message: str
    steps: int
    seconds: list[float]
    final_loss: float | None
    peak_bytes: int
    """Most memory in RAM (resident) at any moment."""
    peak_data_bytes: int
    """Most private memory that was asked for, as the limit counts it."""
    disk_bytes: int
    readings: list[Reading] = field(repr=False)

    @property
    def seconds_per_step(self) -> float | None:
        """The median of all steps but the first, which allocates."""
        counted = sorted(self.seconds[1:] or self.seconds)
        return counted[len(counted) // 2] if counted else None


@dataclass(frozen=True, repr=False)
class DemoResult:
    """All three runs, the limit they ran under (None: there was none), and why there was none."""

    limit_bytes: int | None
    no_limit_because: str
    parameters: int
    steps: int
    on: str
    """Where the disk tier's files were: a sentence about the file system, empty when it is an ordinary disk."""
    runs: list[Run]

    def to_json(self) -> dict[str, Any]:
        keys = ("optimizer", "outcome", "peak_bytes", "disk_bytes", "seconds_per_step", "final_loss")
        return {"limit_bytes": self.limit_bytes, "runs": [{key: getattr(run, key) for key in keys} for run in self.runs]}

    def plans(self) -> dict[str, TrainingBytes]:
        return {NAMES[kind]: training_bytes(self.parameters, "bfloat16", kind) for kind in NAMES}

    def __str__(self) -> str:
        from offload_lab.demo_page import as_text

        return as_text(self)

    __repr__ = __str__  # what a notebook keeps beside the HTML

    def _repr_html_(self) -> str:
        from offload_lab.demo_page import as_fragment

        return as_fragment(self)

    def svg(self) -> str:
        """Memory over time of all three runs, as one SVG picture."""
        from offload_lab.demo_page import picture

        return picture(self).svg()


class DemoError(RuntimeError):
    """A run ended in a way that is neither "trained" nor "out of memory"."""


def limit_is_enforced() -> str:
    """Empty where the system enforces a limit on a process's data; else why it does not."""
    if sys.platform.startswith("linux"):
        return ""
    return f"{sys.platform} has no limit on a process's private memory that is enforced; what follows are measured peaks"


def run_demo(
    *,
    preset: str = "full",
    steps: int | None = None,
    limit: bool = True,
    seed: int = 0,
    directory: str | os.PathLike[str] | None = None,
    optimizers: tuple[str, ...] = tuple(NAMES),
    on_progress: Callable[[str, int, int], None] | None = None,
) -> DemoResult:
    """Run the demonstration. `on_progress(optimizer name, steps done, steps in all)` is called as it goes.

    The disk tier's files go into a folder of their own in `directory` (the current one if not given) and are deleted
    afterwards, whatever happens. Raises DemoError, with the child's own words, when a run fails in any other way than by
    running out of memory; ValueError for an unknown preset or number of steps.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset={preset!r}: one of {', '.join(PRESETS)} is needed")
    shape = PRESETS[preset]
    steps = shape.steps if steps is None else steps
    if steps < 1:
        raise ValueError(f"steps={steps}: at least 1 is needed")
    why_not = limit_is_enforced() if limit else "you asked for none"
    # 16 bytes a parameter is AdamW's own arithmetic, between steps and without activations.
    limit_bytes = None if why_not else training_bytes(shape.parameters, "bfloat16", "adamw").steady_bytes
    parent = Path.cwd() if directory is None else Path(directory)
    runs = []
    with tempfile.TemporaryDirectory(prefix="offload-demo-", dir=parent) as scratch:
        on = unusual_file_system(Path(scratch))
        for kind in optimizers:
            spec = {
                "optimizer": kind,
                "model": {"layers": shape.layers, "width": shape.width, "heads": shape.heads, "context": shape.context},
                "batch": shape.batch,
                "lr": shape.lr,
                "seed": seed,
                "steps": steps,
                "limit_bytes": limit_bytes,
                "ram_budget": shape.ram_budget,
                "directory": scratch,
            }
            runs.append(run_child(spec, on_progress))
    return DemoResult(limit_bytes, why_not, shape.parameters, steps, on, runs)


def run_child(spec: dict[str, Any], on_progress: Callable[[str, int, int], None] | None = None) -> Run:
    """Start one child, follow it to its end, and return what it reported. No child outlives this call."""
    name = NAMES[spec["optimizer"]]
    report = on_progress or (lambda name, done, total: None)
    report(name, 0, spec["steps"])
    # The same for all three. Large blocks go back to the system when freed: glibc's threshold for that, 128 KiB, otherwise
    # grows while a program runs, and then a peak shows what the allocator kept rather than what was needed. And torch's
    # threads have stacks of 1 MiB, since the limit counts stacks in full, and sleep while they wait: spinning, they made a
    # step ten times slower whenever another program used the other core.
    settings = {
        "MALLOC_MMAP_THRESHOLD_": str(128 << 10),
        "MALLOC_ARENA_MAX": "1",
        "OMP_STACKSIZE": "1M",
        "OMP_WAIT_POLICY": "passive",
    }
    errors: list[str] = []
    result = None
    with subprocess.Popen(
        [sys.executable, "-m", "offload_lab.demo_child", json.dumps(spec)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | settings | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *_python_path()])},
    ) as child:
        reader = threading.Thread(target=lambda: errors.extend(child.stderr), daemon=True)
        try:
            reader.start()
            for line in child.stdout:
                try:
                    event = json.loads(line)
                except ValueError:  # half a line of a child that died, or a library that prints
                    errors.append(line)
                    continue
                if event["event"] == "step":
                    report(name, event["step"], spec["steps"])
                elif event["event"] == "result":
                    result = event
            child.wait()
        finally:
            if child.poll() is None:  # Ctrl-C here, or an error of ours: the child must not go on alone
                child.kill()
                child.wait()
            if reader.ident is not None:
                reader.join()
    if child.returncode or result is None:
        said = "".join(errors[-12:]).strip() or "it said nothing"
        raise DemoError(f"the run with {name} ended with exit code {child.returncode}, not by running out of memory:\n{said}")
    before = result["resident_before"]
    return Run(
        optimizer=name,
        outcome=result["outcome"],
        message=result["message"],
        steps=result["steps"],
        seconds=result["seconds"],
        final_loss=result["final_loss"],
        peak_bytes=max(result["peak_resident"] - before, 0),
        peak_data_bytes=result["peak_data"],
        disk_bytes=result["disk_bytes"],
        readings=[Reading(*row) for row in result["readings"]],
    )


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def unusual_file_system(path: Path) -> str:
    """A sentence where `path` lies in RAM, on a network or on an overlay, so that "disk" would mislead; else empty."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return ""
    held = [(where, kind) for where, kind in mounts if path.resolve().is_relative_to(where.replace("\\040", " "))]
    kind = max(held, key=lambda pair: len(pair[0]), default=("", ""))[1]
    if kind in {"tmpfs", "ramfs"}:
        return f"The files were on {kind}, which is RAM: nothing was saved by moving state there. Use --directory on a disk."
    if kind.startswith(("nfs", "cifs", "fuse", "9p")):
        return f"The files were on {kind}, which is no local disk: the times are those of that."
    return ""
