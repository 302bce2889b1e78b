"""Checkpoint files: torch's own, both ways, replaced in one step, and never all of it in memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from offload_lab.cli import app

ROOT = Path(__file__).resolve().parents[3]


def states(optimizer):
    state = optimizer.state_dict()["state"]
    return [state[number][key] for number in sorted(state) for key in sorted(state[number])]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16", "int8"])
def test_what_is_saved_is_loaded_bit_for_bit(model, train, adamw, disk, tmp_path, dtype, state_dtype):
    module = model(dtype)
    optimizer = adamw(module, disk("a", state_dtype=state_dtype))
    train(module, optimizer, 3)
    optimizer.save(tmp_path / "tag.pt")
    assert [path.name for path in tmp_path.iterdir() if path.name != "a"] == ["tag.pt"]
    held = torch.load(tmp_path / "tag.pt", weights_only=True)
    expected = optimizer.state_dict()
    assert held["param_groups"] == expected["param_groups"] and held["state"].keys() == expected["state"].keys()
    other = model(dtype)
    other.load_state_dict(module.state_dict())
    loaded = adamw(other, disk("b", state_dtype=state_dtype))
    loaded.load(tmp_path / "tag.pt")
    assert all(torch.equal(p, q) for p, q in zip(states(optimizer), states(loaded), strict=True))
    train(module, optimizer, 2, start=3)
    train(other, loaded, 2, start=3)
    assert all(torch.equal(p, q) for p, q in zip(module.parameters(), other.parameters(), strict=True))


def test_files_go_to_torch_and_come_from_it(model, train, adamw, disk, tmp_path):
    module = model()
    optimizer = adamw(module, disk())
    train(module, optimizer, 2)
    optimizer.save(tmp_path / "ours.pt")
    twin = model()
    twin.load_state_dict(module.state_dict())
    theirs = torch.optim.AdamW(twin.parameters(), lr=1.0)
    theirs.load_state_dict(torch.load(tmp_path / "ours.pt", weights_only=True))
    train(twin, theirs, 1, start=2)
    torch.save(theirs.state_dict(), tmp_path / "theirs.pt")
    train(module, optimizer, 1, start=2)
    optimizer.load(tmp_path / "theirs.pt")
    module.load_state_dict(twin.state_dict())
    train(module, optimizer, 1, start=3)
    train(twin, theirs, 1, start=3)
    for p, q in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_the_same_tag_fifty_times_takes_the_space_of_one_and_leaks_no_descriptor(model, train, adamw, disk, tmp_path):
    """Case 98."""
    module = model()
    optimizer = adamw(module, disk())
    train(module, optimizer, 1)
    optimizer.save(tmp_path / "tag.pt")
    size, open_files = (tmp_path / "tag.pt").stat().st_size, len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        optimizer.save(tmp_path / "tag.pt")
    assert (tmp_path / "tag.pt").stat().st_size == size and len(os.listdir("/proc/self/fd")) == open_files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "tag.pt"]


def test_a_save_that_fails_leaves_the_file_that_was_there(model, train, adamw, disk, tmp_path, monkeypatch):
    module = model()
    optimizer = adamw(module, disk())
    train(module, optimizer, 1)
    optimizer.save(tmp_path / "tag.pt")
    before = (tmp_path / "tag.pt").read_bytes()
    train(module, optimizer, 1, start=1)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        optimizer.save(tmp_path / "tag.pt")
    monkeypatch.undo()
    assert (tmp_path / "tag.pt").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "tag.pt"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="anonymous memory is counted by Linux only")
def test_saving_and_loading_take_no_memory_of_their_own(tmp_path):
    """48 Mi of state; the child counts its anonymous memory, which the system cannot take back."""
    code = """
import sys, threading
from pathlib import Path
import torch
from offload_lab import OffloadAdamW, OffloadPolicy
def anonymous():
    return int(next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith("RssAnon")).split()[1])
def peak_of(work):
    before, seen, over = anonymous(), [], threading.Event()
    def watch():
        while not over.wait(0.002):
            seen.append(anonymous())
    watcher = threading.Thread(target=watch); watcher.start(); work(); over.set(); watcher.join()
    return (max(seen) - before) // 1024
parameters = [torch.nn.Parameter(torch.zeros(1 << 20)) for _ in range(6)]
for p in parameters: p.grad = torch.ones_like(p)
o = OffloadAdamW(parameters, offload=OffloadPolicy(tier="disk", directory=sys.argv[1] + "/state", partition_size=1 << 18))
o.step(); o.step(); o.save(sys.argv[1] + "/first.pt")
print(peak_of(lambda: o.save(sys.argv[1] + "/tag.pt")), peak_of(lambda: o.load(sys.argv[1] + "/tag.pt")), peak_of(o.state_dict))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    saving, loading, in_memory = map(int, done.stdout.split())
    assert in_memory > 40, "what state_dict() takes, in MiB, so that it is measured at all"
    assert saving < 12 and loading < 12, (saving, loading)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no way to set room aside")
@pytest.mark.parametrize("size, told", [("1500k", "reserving 1,048,576 bytes"), ("2060k", "saving '"), ("3m", "saving '")])
def test_a_disk_too_small_for_the_file_is_an_error_and_not_the_end_of_the_process(tmp_path, size, told):
    """In a child: a write through a mapping that finds no room ends the process, and would end this one."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(small)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    code = """
import sys, torch
from offload_lab import OffloadAdamW, StorageError
parameter = torch.nn.Parameter(torch.zeros(1 << 18)); parameter.grad = torch.ones_like(parameter)
optimizer = OffloadAdamW([parameter]); optimizer.step()
try:
    optimizer.save(sys.argv[1] + "/tag.pt")
except StorageError as error:
    print(error)
optimizer.step(); print(optimizer.stats()["steps"])
"""
    try:
        done = subprocess.run([sys.executable, "-c", code, str(small)], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stderr)
        assert told in done.stdout and "bytes are free there" in done.stdout
        assert done.stdout.endswith("2\n"), "it goes on"
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_save_that_was_killed_is_cleared_by_the_next_one_or_by_clean(model, train, adamw, disk, tmp_path):
    code = (
        "import os, signal, sys, torch; from offload_lab import OffloadAdamW, saving\n"
        "p = torch.nn.Parameter(torch.zeros(5000)); p.grad = torch.ones(5000)\n"
        "o = OffloadAdamW([p]); o.step(); saving._sync = lambda path: os.kill(os.getpid(), signal.SIGKILL)\n"
        "o.save(sys.argv[1])"
    )

    def killed():
        done = subprocess.run([sys.executable, "-c", code, tmp_path / "tag.pt"], cwd=ROOT)
        assert done.returncode == -9
        return [path for path in tmp_path.iterdir() if path.name.startswith(".tag.pt.saving-")]

    assert len(killed()) == 1 and len(killed()) == 1, "the second save clears away what the first one left"
    seen = CliRunner().invoke(app, ["clean", str(tmp_path), "--yes"])
    assert seen.exit_code == 0 and "draft" in seen.stdout and not list(tmp_path.iterdir())
    module = model()
    optimizer = adamw(module, disk())
    train(module, optimizer, 1)
    killed()
    optimizer.save(tmp_path / "tag.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "tag.pt"]
