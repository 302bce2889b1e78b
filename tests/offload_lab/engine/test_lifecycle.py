"""Closed means closed: threads, memory, files, locks; interrupted, forked, collected, run again."""

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from offload_lab import DirectoryInUse, OffloadAdamW, OffloadPolicy

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def interruptible():
    """Python's own handler of Ctrl-C: a run in the background starts with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stepped(optimizer, times=1):
    for _ in range(times):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    return optimizer


def parameters(n=5000):
    return [torch.nn.Parameter(torch.zeros(n)), torch.nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))]


def test_no_thread_lives_between_steps(disk):
    with OffloadAdamW(parameters(200_000), offload=disk()) as optimizer:
        stepped(optimizer, 3)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("offload")]


def test_after_close_nothing_works_and_close_does(disk):
    optimizer = stepped(OffloadAdamW(parameters(), offload=disk()))
    optimizer.close()
    optimizer.close()
    assert optimizer.memory() == {"ram": 0, "disk": 0}
    for attempt in (optimizer.step, optimizer.state_dict, optimizer.stats):
        with pytest.raises(RuntimeError, match=r"closed: close\(\) was called"):
            attempt()


def test_closing_gives_the_memory_back():
    """Case 73, on the process's own count."""
    status = Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("no /proc/self/statm on this system")

    def resident():
        gc.collect()
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    parameter = torch.nn.Parameter(torch.zeros(4 << 20))
    parameter.grad = torch.ones_like(parameter)
    warm = OffloadAdamW([torch.nn.Parameter(torch.zeros(10))])
    stepped(warm)
    before = resident()
    optimizer = OffloadAdamW([parameter])
    optimizer.step()
    assert resident() - before > 30 << 20  # 8 bytes a parameter
    optimizer.close()
    assert resident() - before < 4 << 20


def test_collected_it_lets_go_of_its_directory(disk):
    optimizer = stepped(OffloadAdamW(parameters(), offload=disk()))
    del optimizer
    gc.collect()
    with pytest.warns(UserWarning, match="step 1"):
        OffloadAdamW(parameters(), offload=disk()).close()


@pytest.mark.filterwarnings("ignore:starting over")
def test_a_second_run_in_the_same_directory_neither_grows_nor_uses_stale_state(disk):
    """Case 19."""
    sizes, weights = [], []
    for _ in range(3):
        mine = parameters()
        with OffloadAdamW(mine, lr=0.1, offload=disk(existing="replace")) as optimizer:
            stepped(optimizer, 2)
            directory = Path(optimizer.stats()["directory"])
        weights.append([p.detach().clone() for p in mine])
        names = sorted(path.name for path in directory.iterdir())
        sizes.append((names, (directory / "offload.state").stat().st_size))
    assert sizes[0] == sizes[1] == sizes[2]
    assert all(torch.equal(a, b) for run in weights for a, b in zip(run, weights[0], strict=True))


def test_refuse_refuses_and_keeps(disk):
    stepped(OffloadAdamW(parameters(), offload=disk()), 3).close()
    with pytest.raises(FileExistsError, match=r"step 3.*existing=\"resume\""):
        OffloadAdamW(parameters(), offload=disk(existing="refuse"))
    with OffloadAdamW(parameters(), offload=disk(existing="resume")) as optimizer:
        assert optimizer.stats()["steps"] == 3


def test_scratch_files_go_with_close_and_others_stay(tmp_path, disk):
    policy = disk(durability="checkpoint")
    stepped(OffloadAdamW(parameters(), offload=policy)).close()
    assert not policy.directory.exists()
    policy.directory.mkdir()
    (policy.directory / "mine.txt").write_text("mine")
    stepped(OffloadAdamW(parameters(), offload=policy)).close()
    assert [path.name for path in policy.directory.iterdir()] == ["mine.txt"]


def test_two_optimizers_in_one_directory_are_refused(disk):
    """Case 95."""
    with OffloadAdamW(parameters(), offload=disk()) as first:
        with pytest.raises(DirectoryInUse, match=r"another optimizer of this process.*close\(\)"):
            OffloadAdamW(parameters(), offload=disk())
        stepped(first)
    OffloadAdamW(parameters(), offload=disk("other")).close()


def test_built_again_over_the_same_parameters_it_takes_over(disk):
    """The re-run cell: the model is the same, the old optimizer was never closed."""
    mine = parameters()
    old = OffloadAdamW(mine, offload=disk())
    with pytest.warns(UserWarning, match="still open"):
        new = OffloadAdamW(mine, offload=disk())
    stepped(new)
    with pytest.raises(RuntimeError, match="another optimizer was built in its directory"):
        old.step()
    new.close()


def test_descriptors_do_not_leak(disk):
    """Case 97."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc/self/fd on this system")
    with OffloadAdamW(parameters(), offload=disk()) as optimizer:
        stepped(optimizer, 2)
        before = len(os.listdir("/proc/self/fd"))
        stepped(optimizer, 200)
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_step_leaves_a_whole_step(model, train, adamw, disk):
    """Case 113: the interrupt arrives at many different moments; after each the state is t or t + 1, bit for bit."""
    whole, states = model(torch.bfloat16), []
    reference = adamw(whole)
    for step in range(40):
        states.append([p.detach().clone() for p in whole.parameters()])
        train(whole, reference, 1, start=step)
    states.append([p.detach().clone() for p in whole.parameters()])
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk())
    interrupted = 0
    while (step := optimizer.stats()["steps"]) < 40:
        assert all(torch.equal(a, b) for a, b in zip(module.parameters(), states[step], strict=True))
        timer = threading.Timer(0.0005 + 0.0004 * (interrupted % 17), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            train(module, optimizer, 40 - step, start=step)
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            interrupted += 1
        timer.join()
        for parameter in module.parameters():
            parameter.grad = None
    assert interrupted > 1
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), states[40], strict=True))


FORK = """
import os, sys, torch
from torch.utils.data import DataLoader
from offload_lab import OffloadAdamW, OffloadPolicy
parameter = torch.nn.Parameter(torch.zeros(300_000))
optimizer = OffloadAdamW([parameter], offload=OffloadPolicy(tier="disk", directory=sys.argv[1], partition_size=10_000))
for batch in DataLoader(torch.ones(40, 1), batch_size=4, num_workers=2, multiprocessing_context="fork"):
    parameter.grad = torch.ones_like(parameter) * batch.mean()
    optimizer.step()
pid = os.fork()
if pid == 0:
    try:
        optimizer.step()
    except RuntimeError as error:
        print("child:", error, flush=True)
    optimizer.close()
    os._exit(0)
os.waitpid(pid, 0)
optimizer.step()
optimizer.close()
print("steps", 11, sorted(os.listdir(sys.argv[1])))
"""


def test_forked_workers_neither_hang_nor_touch_the_files(tmp_path):
    """Case 112."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path / "state")], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"child: this optimizer belongs to process \d+", done.stdout)
    assert "steps 11 ['offload.json', 'offload.lock', 'offload.state']" in done.stdout


def test_an_exit_without_close_leaves_a_directory_that_can_be_resumed(tmp_path):
    script = (
        "import sys, torch\nfrom offload_lab import *\np = torch.nn.Parameter(torch.zeros(5000)); p.grad = torch.ones(5000)\n"
        "o = OffloadAdamW([p], offload=OffloadPolicy(tier='disk', directory=sys.argv[1]))\no.step()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "state")], cwd=ROOT, check=True, timeout=120)
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state", existing="resume")
    with OffloadAdamW([torch.nn.Parameter(torch.zeros(5000))], offload=policy) as optimizer:
        assert optimizer.stats()["steps"] == 1


def test_a_constructor_that_fails_shows_only_the_true_error_and_leaves_nothing(tmp_path):
    """Case 109."""
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state", ram_budget=20_000)
    with pytest.raises(ValueError, match="ram_budget=20,000 bytes is too small"):
        OffloadAdamW(parameters(50_000), offload=policy)
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("call", ["preadv", "pwritev", "fdatasync", "replace"])
def test_ctrl_c_is_held_back_until_the_step_is_published(disk, monkeypatch, call):
    with OffloadAdamW(parameters(), offload=disk()) as optimizer:
        stepped(optimizer)
        real = getattr(os, call)

        def interrupting(*arguments):
            os.kill(os.getpid(), signal.SIGINT)
            return real(*arguments)

        monkeypatch.setattr(os, call, interrupting)
        with pytest.raises(KeyboardInterrupt):
            stepped(optimizer)
        monkeypatch.undo()
        assert optimizer.stats()["steps"] == 2
        stepped(optimizer)


def test_the_handler_that_was_there_gets_the_interrupt(disk, monkeypatch):
    noted = []
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        with OffloadAdamW(parameters(), offload=disk()) as optimizer:
            real = os.pwritev
            monkeypatch.setattr(os, "pwritev", lambda *arguments: (os.kill(os.getpid(), signal.SIGINT), real(*arguments))[1])
            stepped(optimizer)
            assert noted and optimizer.stats()["steps"] == 1
    finally:
        signal.signal(signal.SIGINT, before)
