"""One run of the demonstration, in a process of its own under a limit on its memory.

Started by `demo.py` as `python -m offload_lab.demo_child '<spec as JSON>'`; writes one JSON object a line to stdout.
"""

from __future__ import annotations

import errno
import gc
import json
import sys
import threading
import time
from dataclasses import astuple
from pathlib import Path
from typing import Any

import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.masters import MasterWeights
from offload_lab.meter import Meter, Reading, Sampler, peak_rss, rss, vm_data
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, train


def tell(event: str, **content: Any) -> None:
    print(json.dumps({"event": event, **content}), flush=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that the system refused memory, in any of the forms in which torch and Python say so."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "not enough memory" in text or "Cannot allocate memory" in text or "can't start new thread" in text
    )


def build_optimizer(kind: str, model: TinyGPT, lr: float, directory: str, ram_budget: int) -> Any:
    """ "adamw": torch's, over float32 masters; "ram" and "disk": ours."""
    if kind == "adamw":
        return MasterWeights(model.parameters(), lambda masters: torch.optim.AdamW(masters, lr=lr))
    policy = (
        OffloadPolicy(tier="ram") if kind == "ram" else OffloadPolicy(tier="disk", directory=directory, ram_budget=ram_budget)
    )
    return OffloadAdamW(model.parameters(), lr=lr, offload=policy)


def warm_up(kind: str, directory: str) -> None:
    """Load, compile and start all that a run needs, so that the limit counts the model and not the machinery."""
    torch.zeros(1 << 20).add_(1).sum()  # torch's own threads
    model = TinyGPT(GPTConfig(layers=1, width=64, heads=2, context=16, dtype=torch.bfloat16))
    optimizer = build_optimizer(kind, model, 1e-3, str(Path(directory) / "warm-up"), 1 << 20)
    meter = Meter(model, optimizer)
    with Sampler(meter, interval=0.01):
        train(model, optimizer, Batches(corpus(), 2, 16), 2, meter=meter)
    if kind != "adamw":
        optimizer.close()


def limit_data(nbytes: int) -> None:
    """Let this process have `nbytes` of private memory beyond what it has now; the system enforces it from here on."""
    import resource

    ceiling = (vm_data() or 0) + nbytes
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, ceiling))


class DataMeter(Meter):
    """A meter that also notes the most private memory it has seen."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.most = 0

    def read(self) -> Reading:
        self.most = max(self.most, vm_data() or 0)
        return super().read()


def forget_peak() -> bool:
    """Start the system's count of peak resident size anew. False where it can't be; then warming up counts as well."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def run(spec: dict[str, Any]) -> None:
    """Warm up, take the limit, train, and tell what happened."""
    kind = spec["optimizer"]
    # A limit on data counts every thread's stack in full, 8 MiB unless told otherwise; ours need a fraction of that.
    threading.stack_size(1 << 20)
    warm_up(kind, spec["directory"])
    gc.collect()
    peak_is_ours = forget_peak()
    before, data_before = rss(), vm_data() or 0
    if spec["limit_bytes"] is not None:
        limit_data(spec["limit_bytes"])
    tell("ready", resident_before=before)
    losses: list[float] = []
    seconds: list[float] = []
    model: Any = None
    optimizer: Any = None
    meter: Any = None
    sampler: Any = None
    outcome, message, disk = "trained", "", 0
    try:
        config = GPTConfig(**spec["model"], dtype=torch.bfloat16)
        model = TinyGPT(config, seed=spec["seed"])
        optimizer = build_optimizer(kind, model, spec["lr"], str(Path(spec["directory"]) / "state"), spec["ram_budget"])
        meter = DataMeter(model, optimizer)
        sampler = Sampler(meter, interval=0.02).start()
        last = time.perf_counter()

        def on_step(step: int, loss: float) -> None:
            nonlocal last, disk
            now = time.perf_counter()
            seconds.append(now - last)
            losses.append(loss)
            last = now
            if kind != "adamw":
                disk = max(disk, optimizer.memory()["disk"])
            tell("step", step=step, loss=loss, seconds=seconds[-1])

        train(
            model,
            optimizer,
            Batches(corpus(), spec["batch"], config.context, spec["seed"]),
            spec["steps"],
            on_step=on_step,
            meter=meter,
        )
    except (MemoryError, RuntimeError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        outcome, message = "out of memory", f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if sampler is not None:
        sampler.stop()
    resident = max(peak_rss() or 0 if peak_is_ours else 0, sampler.peak("rss") if sampler is not None else 0, rss())
    if kind != "adamw" and optimizer is not None:
        optimizer.close()
    model = optimizer = None
    gc.collect()
    tell(
        "result",
        outcome=outcome,
        message=message,
        steps=len(losses),
        final_loss=losses[-1] if losses and outcome == "trained" else None,
        seconds=seconds,
        resident_before=before,
        peak_resident=resident,
        peak_data=max((meter.most if meter is not None else 0) - data_before, 0),
        disk_bytes=disk,
        readings=[astuple(reading) for reading in (sampler.readings if sampler is not None else [])],
    )


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
