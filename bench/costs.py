"""What safety and looking cost: `python -m bench.costs [--params N] [--json]`.

The same step from disk with and without checksums, and with and without the trace, interleaved in one run; the share by which
each makes a step longer. Nothing else leaves either out: this takes them out from outside, to measure.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.storage import files
from offload_lab.trace import Recorder


@contextmanager
def without_checksums():
    with mock.patch.object(files, "checksum", lambda data: 0):
        yield


@contextmanager
def without_trace():
    with mock.patch.object(Recorder, "add", lambda self, event: None):
        yield


def main(arguments: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--params", type=int, default=64 << 20)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--directory", default=None, help="on the disk to use (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    chosen = parser.parse_args(arguments)
    ways = {"as it is": nullcontext, "no checksums": without_checksums, "no trace": without_trace}
    times: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="bench-costs-", dir=chosen.directory) as folder:
        optimizers = {}
        for name, way in ways.items():  # each its own files: sums of one would not fit those of the other
            parameter = torch.nn.Parameter(torch.zeros(chosen.params, dtype=torch.bfloat16))
            parameter.grad = torch.full_like(parameter, 1e-3)
            policy = OffloadPolicy(tier="disk", directory=Path(folder) / name)
            with way():
                optimizers[name] = OffloadAdamW([parameter], offload=policy)
                optimizers[name].step()
        for _ in range(chosen.rounds):
            for name, way in ways.items():
                with way():
                    start = time.perf_counter()
                    optimizers[name].step()
                    times[name].append(time.perf_counter() - start)
        for optimizer in optimizers.values():
            optimizer.close()
    middle = {name: statistics.median(taken) for name, taken in times.items()}
    result = {
        "params": chosen.params,
        "step_seconds": middle["as it is"],
        "checksums_share": middle["as it is"] / middle["no checksums"] - 1,
        "trace_share": middle["as it is"] / middle["no trace"] - 1,
    }
    if chosen.json:
        print(json.dumps(result))
    else:
        print(
            f"a step of {chosen.params:,} bfloat16 parameters takes {result['step_seconds']:.3f} s (median of {chosen.rounds})"
        )
        print(f"checksums make it {result['checksums_share']:+.1%} longer, the trace {result['trace_share']:+.1%}")
    return result


if __name__ == "__main__":
    main()
