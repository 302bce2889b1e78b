"""`kill -9` and Ctrl-C at random moments: `python -m bench.crash --runs N [--seed S] [--signal kill|int|both] [--json]`.

Each run starts a process that builds or resumes an optimizer and steps it without pause, and kills it at a random moment:
while it builds, resumes, reads, updates, writes, publishes, saves or closes. The directory must then hold exactly a step that
was published, t or t + 1, bit for bit: weights, moments and step counts are compared with those of a run in RAM that nobody
killed. The next run goes on from there.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO

import torch

from offload_lab import OffloadAdamW, OffloadPolicy, StorageError

SHAPES = [(40, 50), (0,), (1,), (3001,), (64, 64)]
PATIENCE = 120  # seconds that a process may take to end, on the slowest machine
DTYPES = [torch.bfloat16, torch.float32, torch.float16]


def parameters() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.nn.Parameter(torch.randn(shape, generator=generator).to(DTYPES[number % 3]))
        for number, shape in enumerate(SHAPES)
    ]


def set_gradients(params: list[torch.nn.Parameter], step: int) -> None:
    """The gradients that make step `step` + 1; every third leaves a parameter out."""
    generator = torch.Generator().manual_seed(step)
    for number, parameter in enumerate(params):
        gradient = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
        parameter.grad = None if number == 3 and step % 3 == 2 else gradient


def policies(directory: str) -> dict[str, OffloadPolicy]:
    """The ways to keep state that are killed."""
    base = {"tier": "disk", "directory": directory, "partition_size": 500, "existing": "resume", "chunk_bytes": 8192}
    return {
        "each step": OffloadPolicy(**base),
        "some in RAM": OffloadPolicy(**base, ram_budget=90_000),
        "every third": OffloadPolicy(**base, durability=3, ram_budget=90_000),
        "next forward": OffloadPolicy(**base, overlap="forward"),
        "least recently used": OffloadPolicy(**base, residency="lru", order="alternating", ram_budget=150_000),
        "page cache": OffloadPolicy(**base, direct_io="off"),
        "two directories": OffloadPolicy(**base | {"directory": [directory, f"{directory} too"], "chunk_bytes": 4096}),
    }


def child(directory: str, name: str) -> None:
    """Step for ever, from what is there; say each step that is published for certain."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # says where it is, if it does not end
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # see `started`
    params = parameters()
    optimizer = OffloadAdamW(params, lr=0.01, offload=policies(directory)[name])
    print("built", optimizer.stats()["steps"], flush=True)
    while True:
        step = optimizer.stats()["steps"]
        if step % 40 == 39:  # closing and resuming are moments, too
            optimizer.close()
            optimizer = OffloadAdamW(params, lr=0.01, offload=policies(directory)[name])
        if step % 25 == 24:
            optimizer.load_state_dict(optimizer.state_dict())
        set_gradients(params, step)
        optimizer.step()
        print("step", step + 1, flush=True)


def started(
    directory: str, name: str, errors: IO[str] | None = None, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """A child. It hears Ctrl-C once torch is imported: what arrives before waits until then.

    torch imports NumPy from C and throws away whatever goes wrong there, a KeyboardInterrupt as well: such a process would
    step for ever, and nothing of ours has begun when it happens. A signal that is blocked here is blocked in the child.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.crash", "--child", directory, name],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Reference:
    """Weights and state after each step, computed in RAM as far as they are asked for."""

    def __init__(self) -> None:
        self._params = parameters()
        self._optimizer = OffloadAdamW(self._params, lr=0.01)
        self.digests = [self._digest()]

    def _digest(self) -> list[torch.Tensor]:
        return digest(self._params, self._optimizer)

    def at(self, step: int) -> list[torch.Tensor]:
        while len(self.digests) <= step:
            set_gradients(self._params, len(self.digests) - 1)
            self._optimizer.step()
            self.digests.append(self._digest())
        return self.digests[step]


def digest(params: list[torch.nn.Parameter], optimizer: OffloadAdamW) -> list[torch.Tensor]:
    state = optimizer.state_dict()["state"]
    kept = [state[number][key].clone() for number in sorted(state) for key in sorted(state[number])]
    return [parameter.detach().clone() for parameter in params] + kept


def ended_by_force(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGUSR1)
    time.sleep(1)  # for faulthandler to write
    process.kill()


def run(
    directory: str, name: str, seconds: float, reference: Reference, wait_until_built: bool, number: int = signal.SIGKILL
) -> tuple[bool, int, str]:
    """End one child by signal `number` after `seconds` and look at what it left: (exact, the step found, what was wrong)."""
    with tempfile.TemporaryFile("w+") as errors:
        process = started(directory, name, errors if number == signal.SIGINT else None)  # the traceback of a KeyboardInterrupt
        assert process.stdout is not None
        said = [process.stdout.readline()] if wait_until_built else []
        time.sleep(seconds)
        process.send_signal(number)
        patience = threading.Timer(PATIENCE, ended_by_force, [process])
        patience.start()
        said += process.stdout.read().splitlines()
        ended = process.wait()
        patience.cancel()
        if ended in (-signal.SIGKILL, -signal.SIGUSR1) and number != signal.SIGKILL:
            last = said[-1].strip() if said else "nothing"
            errors.seek(0)
            why = f"it still ran {PATIENCE} s after {signal.Signals(number).name}; it said {last}; on stderr: "
            return False, -1, why + errors.read()[-4000:]
    steps = [int(line.split()[1]) for line in said if len(line.split()) == 2 and line.split()[1].isdigit()]
    params = parameters()
    try:
        with OffloadAdamW(params, lr=0.01, offload=policies(directory)[name]) as optimizer:
            found = optimizer.stats()["steps"]
            held = digest(params, optimizer)
    except (StorageError, ValueError) as error:
        return False, -1, f"it could not be resumed: {error}"
    exact = all(torch.equal(a, b) for a, b in zip(held, reference.at(found), strict=True))
    # The last line that was read may be a step behind; what is published every third step may lie two behind what was said.
    least = max(steps, default=0)
    late = {"every third": 3, "next forward": 1}.get(name, 0)
    if found < least - late:
        return False, found, f"it said that step {least} was made, and step {found} was found"
    return exact, found, "" if exact else f"what was found as step {found} is not step {found}"


def main(arguments: list[str] | None = None) -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signal", choices=("kill", "int", "both"), default="both", help="both: two of three by kill -9")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--directory", default=None, help="on the disk to use (default: a temporary folder)")
    parser.add_argument("--child", nargs=2, metavar=("DIRECTORY", "POLICY"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child:
        child(*chosen.child)
    # Started in the background by a script, a process ignores Ctrl-C, and so do its children: here they must hear it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    chance = random.Random(chosen.seed)
    folder = tempfile.mkdtemp(prefix="bench-crash-", dir=chosen.directory)
    reference = Reference()
    names = list(policies(folder))
    exact, interrupted, wrong, reached = 0, 0, [], dict.fromkeys(names, 0)
    try:
        for number in range(chosen.runs):
            name = names[number % len(names)]
            building = chance.random() < 0.15  # in the first moments of the process, whatever it has come to
            seconds = chance.uniform(0, 3.0) if building else chance.uniform(0, 0.4)
            interrupt = {"kill": False, "int": True, "both": chance.random() < 1 / 3}[chosen.signal]
            ending = signal.SIGINT if interrupt else signal.SIGKILL
            interrupted += interrupt
            good, found, why = run(f"{folder}/{name}", name, seconds, reference, not building, ending)
            exact += good
            reached[name] = found
            if not good:
                wrong.append({"run": number, "policy": name, "signal": ending.name, "seconds": round(seconds, 4), "why": why})
                for left in (f"{folder}/{name}", f"{folder}/{name} too"):
                    shutil.rmtree(left, ignore_errors=True)
            if not chosen.json:
                print(f"run {number + 1} of {chosen.runs}: {name}, {ending.name} after {seconds:.3f} s, step {found}: "
                      f"{'exact' if good else why}")  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result = {
        "runs": chosen.runs,
        "exact": exact,
        "interrupted": interrupted,
        "seed": chosen.seed,
        "wrong": wrong,
        "steps_reached": reached,
    }
    print(json.dumps(result) if chosen.json else f"{exact} of {chosen.runs} runs left an exact step")
    return result


if __name__ == "__main__":
    if main()["wrong"]:
        sys.exit(1)
