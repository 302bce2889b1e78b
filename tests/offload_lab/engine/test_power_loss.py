"""The power goes at any moment of a run, and takes with it what was not flushed: what is left is exactly a published step."""

import random
import sys

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy
from tests.offload_lab.engine.power import Disk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the disk that may lose power reads /proc/self/fd")

SHAPES = [(30, 41), (0,), (1,), (1025,)]
DTYPES = [torch.bfloat16, torch.float32, torch.float16]
WAYS = {
    "each step": {},
    "page cache": {"direct_io": "off"},
    "every third": {"durability": 3, "ram_budget": 60_000},
    "next forward": {"overlap": "forward"},
    "two directories": {"chunk_bytes": 4096},
}
STEPS, CUTS = 7, 40


def parameters():
    generator = torch.Generator().manual_seed(0)
    return [
        torch.nn.Parameter(torch.randn(shape, generator=generator).to(DTYPES[number % 3]))
        for number, shape in enumerate(SHAPES)
    ]


def stepped(params, optimizer, step, seed=0):
    generator = torch.Generator().manual_seed(1000 * seed + step)
    for parameter in params:
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
    optimizer.step()


def held(params, optimizer):
    state = optimizer.state_dict()["state"]
    return [p.detach().clone() for p in params] + [state[n][key].clone() for n in sorted(state) for key in sorted(state[n])]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(one, other) for one, other in zip(a, b, strict=True))


def policy(place, way, **changes):
    folders = [place / "state", place / "state too"] if way == "two directories" else place / "state"
    base = {"tier": "disk", "directory": folders, "partition_size": 500, "chunk_bytes": 8192, "existing": "resume"}
    return OffloadPolicy(**base | WAYS[way] | changes)


def history(seed=0):
    """Weights and state after each step of a run in RAM."""
    params = parameters()
    optimizer = OffloadAdamW(params, lr=0.01)
    found = [held(params, optimizer)]
    for step in range(1, STEPS + 1):
        stepped(params, optimizer, step, seed)
        found.append(held(params, optimizer))
    return found


def run(disk, place, way, seed=0, **changes):
    params = parameters()
    every = WAYS[way].get("durability", 1)
    with OffloadAdamW(params, lr=0.01, offload=policy(place, way, **changes)) as optimizer:
        for step in range(1, STEPS + 1):
            stepped(params, optimizer, step, seed)
            optimizer.wait()
            if step % every == 0:
                disk.said(step)
    disk.said(STEPS)  # closing publishes the present step


def found_in(place, way):
    """What a resume finds in `place`: the step, and weights and state."""
    params = parameters()
    with OffloadAdamW(params, lr=0.01, offload=policy(place, way)) as optimizer:
        return optimizer.stats()["steps"], held(params, optimizer)


def cuts(disk, seed):
    """Moments and seeds; the last moment is the end, when nobody flushed anything any more."""
    chance = random.Random(seed)
    return [(chance.randrange(len(disk.log) + 1), number) for number in range(CUTS)] + [(len(disk.log), -1)]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_is_a_published_step(way, tmp_path, monkeypatch):
    disk = Disk(tmp_path / "run")
    with monkeypatch.context() as patched:
        disk.patch(patched)
        run(disk, tmp_path / "run", way)
    expected, seen = history(), set()
    for moment, seed in cuts(disk, 1):
        place = tmp_path / f"left {moment} {seed}"
        disk.left(moment, place, seed)
        step, state = found_in(place, way)
        told = disk.told(moment)
        assert told <= step <= STEPS, f"cut at {moment}: step {told} was said to be published, {step} was found"
        assert same(state, expected[step]), f"cut at {moment}: what was found as step {step} is not step {step}"
        seen.add(step)
    assert len(seen) >= 3, "cuts everywhere"


def test_a_run_that_replaces_another_leaves_one_of_the_two_or_none(tmp_path, monkeypatch):
    disk = Disk(tmp_path / "run")
    with monkeypatch.context() as patched:
        disk.patch(patched)
        run(disk, tmp_path / "run", "each step")
        begun = len(disk.log)
        with pytest.warns(UserWarning, match="starting over"):
            run(disk, tmp_path / "run", "each step", seed=1, existing="replace")
    old, new = history()[STEPS], history(1)
    for number in range(2 * CUTS):
        moment = begun + number % 20  # while one gives way to the other
        place = tmp_path / f"left {number}"
        disk.left(moment, place, number)
        step, state = found_in(place, "each step")
        assert same(state, new[step]) or (step == STEPS and same(state, old)), f"cut at {moment}: step {step} is of no run"
