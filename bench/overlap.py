"""How much of the disk's time a training step hides behind its compute: `python -m bench.overlap [--json]`.

One step of each way in turn, several rounds, medians. Two machines' worth of compute:

* "device": compute that has a device of its own. There is no GPU here, so the layers wait (sleep) instead of computing, for
  a time that is a multiple of the measured disk step; everything else, the disk included, is real.
* "shared": a small GPT trained on these cores, which the update and the disk's system calls need, too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable

import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.training import GPTConfig, TinyGPT

WAYS = ("none", "forward", "backward")


class _Waiting(torch.autograd.Function):
    """A layer on a device of its own: its weight is read when it starts, its gradient is there when it ends."""

    @staticmethod
    def forward(ctx, x, weight, gradient, seconds):
        weight.data_ptr()  # what a kernel launch does
        ctx.gradient, ctx.seconds = gradient, seconds
        time.sleep(seconds)
        return x.clone()

    @staticmethod
    def backward(ctx, upstream):
        time.sleep(2 * ctx.seconds)  # a backward is about two forwards
        return upstream, ctx.gradient, None, None


class DeviceModel:
    """`layers` bfloat16 weights of `numel` elements; a step's compute takes three times `seconds` a layer."""

    def __init__(self, layers: int, numel: int) -> None:
        self.weights = [torch.nn.Parameter(torch.randn(numel).bfloat16()) for _ in range(layers)]
        self.gradients = [torch.randn(numel).bfloat16() for _ in range(layers)]
        self.seconds = 0.0

    def parameters(self) -> list[torch.nn.Parameter]:
        return self.weights

    def compute(self) -> None:
        x = torch.zeros(1, requires_grad=True)
        for weight, gradient in zip(self.weights, self.gradients, strict=True):
            x = _Waiting.apply(x, weight, gradient.clone(), self.seconds)
        x.sum().backward()


class SharedModel:
    """A GPT of `layers` layers in bfloat16 on a batch that makes compute about as long as the disk's part."""

    def __init__(self, width: int, layers: int, batch: int) -> None:
        torch.manual_seed(0)
        self.model = TinyGPT(GPTConfig(layers=layers, width=width, heads=8, context=128, dtype=torch.bfloat16))
        self.tokens = torch.randint(0, 256, (batch, 129))

    def parameters(self) -> list[torch.nn.Parameter]:
        return list(self.model.parameters())

    def compute(self) -> None:
        logits = self.model(self.tokens[:, :-1])
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten()).backward()


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(model, folder: str, rounds: int, durability: str) -> dict[str, float]:
    """Medians of compute alone, of the disk step alone, and of a training step each way, in interleaved rounds.

    A training step is timed from the return of one `step()` to the return of the fourth after it, and divided by four: what
    one step leaves under way falls into the next, as it does in training.
    """
    times: dict[str, list[float]] = {name: [] for name in ("compute", "disk", *WAYS)}

    def clear() -> None:
        for parameter in model.parameters():
            parameter.grad = None

    def train(optimizer: OffloadAdamW) -> None:
        for _ in range(4):
            optimizer.zero_grad()
            model.compute()
            optimizer.step()

    for turn in range(rounds + 1):
        measured: dict[str, float] = {}
        clear()
        measured["compute"] = _seconds(lambda: (clear(), model.compute()))
        for way in WAYS:
            if way == "backward" and durability != "step":
                continue
            policy = OffloadPolicy(
                tier="disk", directory=f"{folder}/{way}", overlap=way, durability=durability, existing="replace"
            )
            shutil.rmtree(f"{folder}/{way}", ignore_errors=True)
            with OffloadAdamW(model.parameters(), lr=1e-5, offload=policy) as optimizer:
                for _ in range(3):
                    optimizer.zero_grad()
                    model.compute()
                    seconds = _seconds(optimizer.step)
                if way == "none":
                    measured["disk"] = seconds
                measured[way] = _seconds(lambda o=optimizer: train(o)) / 4
        if turn:  # the first round warms up
            for name, seconds in measured.items():
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items() if values}


def _row(name: str, times: dict[str, float]) -> dict[str, object]:
    longer = max(times["compute"], times["disk"])
    return {
        "case": name,
        "seconds": {key: round(value, 4) for key, value in times.items()},
        "ratio_to_longer": {way: round(times[way] / longer, 3) for way in WAYS if way in times},
    }


def main(arguments: list[str] | None = None) -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--params", type=int, default=64 << 20, help="parameters of the device cases (default 64 Mi)")
    parser.add_argument("--directory", default=None, help="where the state goes (default: a temporary folder)")
    parser.add_argument("--durability", choices=["step", "checkpoint"], default="step")
    chosen = parser.parse_args(arguments)
    folder = tempfile.mkdtemp(prefix="overlap-", dir=chosen.directory)
    rows = []
    try:
        layers = 32
        device = DeviceModel(layers, chosen.params // layers)
        alone = measure(device, folder, 2, chosen.durability)["disk"]
        for share in (0.5, 1.0, 2.0):
            device.seconds = share * alone / (3 * layers)
            rows.append(_row(f"device, compute {share:g} × disk", measure(device, folder, chosen.rounds, chosen.durability)))
        shared = SharedModel(width=512, layers=8, batch=2)
        rows.append(_row("shared cores", measure(shared, folder, chosen.rounds, chosen.durability)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    best = [min(row["ratio_to_longer"].values()) for row in rows]
    result = {
        "ratio_device": max(best[:-1]),
        "ratio_shared": best[-1],
        "rows": rows,
        "durability": chosen.durability,
        "threads": torch.get_num_threads(),
    }
    if chosen.json:
        print(json.dumps(result))
    else:
        print(f"{'':28}{'compute':>9}{'disk':>9}" + "".join(f"{way:>10}" for way in WAYS) + "   to the longer of both")
        for row in rows:
            seconds, ratios = row["seconds"], row["ratio_to_longer"]
            cells = "".join(f"{seconds[way]:>9.3f}s" if way in seconds else f"{'-':>10}" for way in WAYS)
            told = ", ".join(f"{way} {ratio:.2f}" for way, ratio in ratios.items())
            print(f"{row['case']:28}{seconds['compute']:>8.3f}s{seconds['disk']:>8.3f}s{cells}   {told}")
    return result


if __name__ == "__main__":
    main()
