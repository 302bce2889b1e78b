"""Case 2 and its kind: state that comes back, in a fresh process, after a crash, into torch's own optimizer and out of it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy, StorageError
from offload_lab.storage.manifest import sealed

ROOT = Path(__file__).resolve().parents[3]

TRAIN = """
import sys, torch
from offload_lab import OffloadAdamW, OffloadPolicy
dtype, directory, first, last, existing, out = sys.argv[1:]
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(37, 65), torch.nn.Tanh(), torch.nn.Linear(65, 11)).to(getattr(torch, dtype))
policy = OffloadPolicy(tier="disk", directory=directory, partition_size=1000, existing=existing)
optimizer = OffloadAdamW(model.parameters(), lr=0.01, offload=policy)
first = optimizer.stats()["steps"] if first == "resumed" else int(first)
print("ready", first, flush=True)
for step in range(first, int(last)):
    generator = torch.Generator().manual_seed(step)
    optimizer.zero_grad()
    model(torch.randn(4, 37, generator=generator).to(model[0].weight.dtype)).float().pow(2).mean().backward()
    optimizer.step()
    print("step", step + 1, flush=True)
torch.save((list(model.parameters()), optimizer.state_dict()), out)
optimizer.close()
"""


def process(dtype, directory, first, last, existing, out):
    arguments = [sys.executable, "-W", "error", "-c", TRAIN, dtype, str(directory), str(first), str(last), existing, str(out)]
    return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def finish(child):
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    return output


def same(a, b):
    weights = all(torch.equal(x, y) for x, y in zip(a[0], b[0], strict=True))
    states = a[1]["state"], b[1]["state"]
    return (
        weights
        and states[0].keys() == states[1].keys()
        and all(torch.equal(states[0][i][k], states[1][i][k]) for i in states[0] for k in states[0][i])
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_resumed_in_a_fresh_process_it_equals_an_uninterrupted_run(tmp_path, dtype):
    finish(process(dtype, tmp_path / "whole", 0, 20, "refuse", tmp_path / "whole.pt"))
    finish(process(dtype, tmp_path / "parts", 0, 10, "refuse", tmp_path / "half.pt"))
    assert "ready 10" in finish(process(dtype, tmp_path / "parts", "resumed", 20, "resume", tmp_path / "parts.pt"))
    whole, parts = (torch.load(tmp_path / name, weights_only=False) for name in ("whole.pt", "parts.pt"))
    assert same(whole, parts)


@pytest.mark.parametrize("attempt", range(4))
def test_after_kill_9_it_goes_on_from_a_whole_step(tmp_path, attempt):
    """SIGKILL at a moment that differs from run to run; what is resumed is a published step, and the end is the same."""
    child = process("bfloat16", tmp_path / "killed", 0, 100_000, "refuse", tmp_path / "never.pt")
    told = 0
    while told < 3 + 7 * attempt:
        told = int(child.stdout.readline().split()[1])
    time.sleep(0.0007 * (os.getpid() % 7) + 0.001 * attempt)
    child.send_signal(signal.SIGKILL)
    told = max([told, *(int(line.split()[1]) for line in child.stdout.read().splitlines() if line.startswith("step"))])
    child.wait()
    end = told + 10
    output = finish(process("bfloat16", tmp_path / "killed", "resumed", end, "resume", tmp_path / "end.pt"))
    assert int(output.split()[1]) in (told, told + 1)
    finish(process("bfloat16", tmp_path / "whole", 0, end, "refuse", tmp_path / "whole.pt"))
    assert same(*(torch.load(tmp_path / name, weights_only=False) for name in ("whole.pt", "end.pt")))


@pytest.mark.parametrize("order", ["model first", "optimizer first"])
@pytest.mark.parametrize("tier", ["ram", "disk"])
def test_a_state_dict_resumes_bit_for_bit_in_either_order(model, train, adamw, disk, dtype, order, tier):
    whole = model(dtype)
    optimizer = adamw(whole, OffloadPolicy())
    train(whole, optimizer, 10)
    saved = [p.detach().clone() for p in whole.state_dict().values()], optimizer.state_dict()
    train(whole, optimizer, 10, start=10)
    fresh = model(dtype, seed=3)
    other = adamw(fresh, OffloadPolicy() if tier == "ram" else disk())
    loads = [
        lambda: fresh.load_state_dict(dict(zip(fresh.state_dict(), saved[0], strict=True))),
        lambda: (other.load_state_dict(saved[1]), other.load_state_dict(saved[1])),  # case 4: twice is once
    ]
    for load in loads if order == "model first" else reversed(loads):
        load()
    train(fresh, other, 10, start=10)
    assert same((list(whole.parameters()), optimizer.state_dict()), (list(fresh.parameters()), other.state_dict()))


@pytest.mark.parametrize("tier", ["ram", "disk"])
def test_checkpoints_go_to_torch_and_come_back(model, train, adamw, disk, tier):
    """Case 13: the next step is equal, in float32 arithmetic, in whichever optimizer it is taken."""
    mine, twin = model(), model()
    ours = adamw(mine, OffloadPolicy() if tier == "ram" else disk(), weight_decay=0.3)
    theirs = torch.optim.AdamW(twin.parameters(), lr=5.0)
    train(mine, ours, 5)
    twin.load_state_dict(mine.state_dict())
    theirs.load_state_dict(ours.state_dict())
    assert theirs.param_groups[0]["weight_decay"] == 0.3
    train(mine, ours, 5, start=5)
    train(twin, theirs, 5, start=5)
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(mine.parameters(), twin.parameters(), strict=True))
    mine.load_state_dict(twin.state_dict())
    ours.load_state_dict(theirs.state_dict())
    state = ours.state_dict()["state"]
    for number, entry in theirs.state_dict()["state"].items():
        assert all(torch.equal(entry[key], state[number][key]) for key in ("step", "exp_avg", "exp_avg_sq"))
    train(mine, ours, 5, start=10)
    train(twin, theirs, 5, start=10)
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(mine.parameters(), twin.parameters(), strict=True))


def test_settings_of_the_checkpoint_win_and_missing_ones_are_filled(adamw):
    """Cases 7 and 14."""
    module = torch.nn.Linear(3, 3)
    saved = adamw(module, lr=0.125, betas=(0.8, 0.9)).state_dict()
    other = adamw(module, lr=0.75, betas=(0.1, 0.1), weight_decay=0.5)
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == 0.125 and other.param_groups[0]["betas"] == (0.8, 0.9)
    del saved["param_groups"][0]["weight_decay"]
    saved["param_groups"][0]["novel"] = 1
    third = adamw(module, weight_decay=0.5)
    with pytest.warns(UserWarning, match="group 0 has no weight_decay"):
        third.load_state_dict(saved)
    assert third.param_groups[0]["weight_decay"] == 0.5


@pytest.mark.parametrize("tier", ["ram", "disk"])
def test_a_checkpoint_that_does_not_fit_changes_nothing(model, train, adamw, disk, tier):
    module = model()
    optimizer = adamw(module, OffloadPolicy() if tier == "ram" else disk())
    train(module, optimizer, 3)
    before = optimizer.state_dict()
    for damage, message in (
        (lambda s: s["state"][1].update(exp_avg=torch.zeros(2)), "exp_avg.*shape"),
        (lambda s: s["state"][1].pop("exp_avg_sq"), "no 'exp_avg_sq'"),
        (lambda s: s["state"][1].update(max_exp_avg_sq=torch.zeros(65)), "amsgrad"),
        (lambda s: s["param_groups"][0]["params"].pop(), "parameters"),
        (lambda s: s["param_groups"][0].update(amsgrad=True), "amsgrad"),
    ):
        damaged = optimizer.state_dict()
        damage(damaged)
        with pytest.raises(ValueError, match=message):
            optimizer.load_state_dict(damaged)
        after = optimizer.state_dict()
        assert after["param_groups"] == before["param_groups"]
        assert all(
            torch.equal(before["state"][i][k], after["state"][i][k]) for i in before["state"] for k in before["state"][i]
        )
    train(module, optimizer, 1, start=3)


def test_resuming_restores_weights_settings_and_steps(model, train, adamw, disk, dtype):
    module = model(dtype)
    optimizer = adamw(module, disk(), lr=0.02, weight_decay=0.2)
    train(module, optimizer, 4)
    expected = list(module.parameters()), optimizer.state_dict()
    optimizer.close()
    other = model(dtype, seed=9)
    resumed = adamw(other, disk(existing="resume"), lr=0.5)
    assert resumed.stats()["steps"] == 4 and resumed.param_groups[0]["lr"] == 0.02
    got = dict(zip([n for n, _ in other.named_parameters()], other.parameters(), strict=True))
    for (name, parameter), mine in zip(module.named_parameters(), expected[0], strict=True):
        if parameter.grad is not None:  # the directory holds what has been stepped
            assert torch.equal(got[name], mine), name
    theirs = resumed.state_dict()["state"]
    assert all(torch.equal(expected[1]["state"][i][k], theirs[i][k]) for i in theirs for k in theirs[i])


@pytest.mark.parametrize("size", [None, 300, 5000])
def test_a_run_that_grew_resumes_in_one_go_however_it_was_cut(disk, size):
    """A group added and a parameter unfrozen on the way; the resuming script builds all of it at once, with any sizes."""

    def parameters():
        return [torch.nn.Parameter(torch.linspace(-1, 1, n)) for n in (2500, 1200, 1700)]

    def steps(optimizer, mine, numbers):
        for number in numbers:
            for parameter in mine:
                parameter.grad = torch.full_like(parameter, number - 2.5) if parameter.requires_grad else None
            optimizer.step()

    first = parameters()
    first[1].requires_grad_(False)
    optimizer = OffloadAdamW(first[:2], lr=0.01, offload=disk())
    steps(optimizer, first[:2], range(2))
    optimizer.add_param_group({"params": [first[2]]})
    first[1].requires_grad_(True)
    steps(optimizer, first, range(2, 4))
    optimizer.close()
    second = parameters()
    groups = [{"params": second[:2]}, {"params": second[2:]}]
    resumed = OffloadAdamW(groups, lr=0.01, offload=disk(existing="resume", partition_size=size))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    steps(resumed, second, range(4, 6))
    resumed.close()
    whole = parameters()
    with OffloadAdamW(whole[:1], lr=0.01) as a, OffloadAdamW(whole[1:], lr=0.01) as b:
        for number in range(6):
            for optimizer, mine in ((a, whole[:1]), (b, whole[1:])) if number > 1 else ((a, whole[:1]),):
                steps(optimizer, mine, [number])
    assert all(torch.equal(a, b) for a, b in zip(second, whole, strict=True))


def test_resuming_where_nothing_is_starts_from_nothing(model, train, adamw, disk):
    module = model()
    optimizer = adamw(module, disk(existing="resume"))
    train(module, optimizer, 1)
    assert optimizer.stats()["steps"] == 1


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda m: m.update(format=99), "format 99.*format 2"),
        (lambda m: m["newest"].pop("slots"), "not a manifest"),
        (lambda m: m["parameters"][0].update(shape=[1, 2]), r"parameter 0 of group 0.*\[1, 2\].*\[0\]"),
        (lambda m: m["parameters"].pop(), "parameters"),
        (lambda m: m["partitions"][0][2][0].__setitem__(2, 10**9), "damaged: partition 0 does not fit"),
        (lambda m: m["partitions"][0][2][0].__setitem__(1, -5), "damaged: partition 0 does not fit"),
        (lambda m: m["partitions"][0][2][0].__setitem__(0, -1), "damaged"),
        (lambda m: m["partitions"][0].__setitem__(1, "float16"), "damaged: partition 0 does not fit"),
        (lambda m: m["partitions"].pop(), "damaged"),
        (lambda m: m["partitions"].reverse(), "damaged"),
        (lambda m: m["partitions"].__setitem__(0, 3), "damaged"),
        (lambda m: m["partitions"][0].__setitem__(0, 1), "damaged: partition 1 is out of order"),
        (lambda m: m["partitions"].append([len(m["partitions"]), "float32", []]), "out of order or empty"),
        (lambda m: m["newest"]["slots"].__setitem__(0, 7), "damaged"),
        (lambda m: m["newest"]["parameter_steps"].pop(), "damaged"),
    ],
)
def test_a_directory_that_does_not_fit_is_refused_and_left_alone(model, train, adamw, disk, damage, message):
    module = model()
    optimizer = adamw(module, disk())
    train(module, optimizer, 2)
    path = Path(optimizer.stats()["directory"]) / "offload.json"
    optimizer.close()
    content = json.loads(path.read_text())["content"]
    damage(content)
    path.write_bytes(sealed(json.dumps(content)))
    held = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.name != "offload.lock"}
    with pytest.raises((ValueError, StorageError), match=message):
        adamw(model(), disk(existing="resume"))
    assert held == {p.name: p.read_bytes() for p in path.parent.iterdir() if p.name != "offload.lock"}


def test_a_manifest_that_is_not_json_names_the_file(model, train, adamw, disk):
    module = model()
    optimizer = adamw(module, disk())
    train(module, optimizer, 1)
    path = Path(optimizer.stats()["directory"]) / "offload.json"
    optimizer.close()
    path.write_bytes(b'{"format": 1, "sl')
    with pytest.raises(StorageError, match=r"offload\.json.*not a manifest"):
        adamw(model(), disk(existing="resume"))


def test_several_interpreters_at_once_do_not_share_a_directory(tmp_path):
    """Two processes on one folder: the second is refused by name while the first lives, and welcome after it was killed."""
    child = process("float32", tmp_path / "state", 0, 100_000, "refuse", tmp_path / "never.pt")
    assert child.stdout.readline().startswith("ready")
    assert child.stdout.readline() == "step 1\n"
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state", existing="resume")
    parameter = torch.nn.Parameter(torch.zeros(3))
    with pytest.raises(OSError, match=rf"in use by process {child.pid} "):
        OffloadAdamW([parameter], offload=policy)
    child.kill()
    child.communicate()
    replacing = OffloadPolicy(tier="disk", directory=tmp_path / "state")
    with pytest.warns(UserWarning, match=f"written by process {child.pid}"), OffloadAdamW([parameter], offload=replacing):
        pass
