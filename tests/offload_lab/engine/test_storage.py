"""Files: every byte counted, every failure named, the published step whole whatever fails."""

import errno
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offload_lab import OffloadAdamW, OffloadPolicy, StorageError
from offload_lab.storage.direct_io import BlockFile
from offload_lab.storage.memory import HUGE_PAGE, Slab


@pytest.fixture
def block_file(tmp_path):
    file = BlockFile(tmp_path / "blocks", 1 << 16)
    yield file
    file.close()


def test_a_slab_is_aligned_zeroed_and_given_back():
    slab = Slab(5000)
    assert slab.bytes.nbytes == 5000 and slab.bytes.ctypes.data % HUGE_PAGE == 0 and not slab.bytes.any()
    held = slab.bytes
    slab.close()
    held[:] = 1  # still ours: closing does not pull memory away from under somebody
    assert slab.bytes.nbytes == 0


def test_memory_that_is_refused_names_host_ram_and_bytes():
    with pytest.raises(MemoryError, match=r"9,\d{3},\d{3}.* bytes of host RAM.*ram_budget"):
        Slab(9_000_000_000_000_000)


@given(st.integers(0, 15), st.integers(1, 16), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(block_file, first, blocks, seed):
    slab = Slab(blocks * 4096)
    slab.bytes[:] = np.random.default_rng(seed).integers(0, 256, blocks * 4096)
    other = Slab(blocks * 4096)
    block_file.extend((first + blocks) * 4096)
    block_file.write(slab.bytes, first * 4096)
    block_file.read(other.bytes, first * 4096)
    assert np.array_equal(slab.bytes, other.bytes)


def short(call, sizes):
    """`call`, moving at most the next of `sizes` bytes each time (the last for ever)."""

    def moved(fd, buffers, offset):
        limit = sizes[0] if len(sizes) == 1 else sizes.pop(0)
        return call(fd, [memoryview(buffers[0])[:limit]], offset) if limit else 0

    return moved


@pytest.mark.parametrize("sizes", [[4096], [8192, 1 << 20], [4096, 4096, 12288, 1 << 20]])
def test_short_counts_are_gone_on_from(block_file, monkeypatch, sizes):
    slab, other = Slab(1 << 16), Slab(1 << 16)
    slab.bytes[:] = np.random.default_rng(0).integers(0, 256, 1 << 16)
    monkeypatch.setattr(os, "pwritev", short(os.pwritev, list(sizes)))
    monkeypatch.setattr(os, "preadv", short(os.preadv, list(sizes)))
    block_file.write(slab.bytes, 0)
    block_file.read(other.bytes, 0)
    assert np.array_equal(slab.bytes, other.bytes)


def test_a_write_that_stops_names_file_offset_and_bytes(block_file, monkeypatch):
    monkeypatch.setattr(os, "pwritev", short(os.pwritev, [8192, 0]))
    with pytest.raises(StorageError, match=r"writing 57,344 bytes at byte 8,192 of '.*blocks'.*only 8,192 of 65,536.*free"):
        block_file.write(Slab(1 << 16).bytes, 0)


def test_reading_past_the_end_is_an_error(block_file):
    with pytest.raises(StorageError, match=r"reading .* at byte 65,536 "):
        block_file.read(Slab(8192).bytes, 61440)


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 2 MB, or a skip where none can be mounted."""
    where = tmp_path / "small"
    where.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(where)], capture_output=True)
    if done.returncode:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.decode().strip()}")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_disk_too_small_is_refused_at_construction(full_disk):
    """Case 91, at the earliest moment: nothing has been trained yet, and nothing is left behind."""
    policy = OffloadPolicy(tier="disk", directory=full_disk / "state")
    with pytest.raises(
        StorageError, match=r"reserving 2\d,\d{3},\d{3} bytes.*offload\.state.*No space left.*free.*another"
    ) as e:
        OffloadAdamW([torch.nn.Parameter(torch.zeros(1_000_000))], offload=policy)
    assert e.value.errno == errno.ENOSPC
    assert not list(full_disk.rglob("offload.*"))


def test_a_full_disk_at_the_publish_leaves_the_step_before_it(full_disk, train, model, adamw):
    module = model()
    policy = OffloadPolicy(tier="disk", directory=full_disk / "state", partition_size=1000)
    optimizer = adamw(module, policy)
    train(module, optimizer, 3)
    weights = [p.detach().clone() for p in module.parameters() if p.grad is not None]
    filler = os.open(full_disk / "filler", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="No space"):
        while True:
            os.write(filler, bytes(4096))
    os.close(filler)
    with pytest.raises(StorageError, match=r"publishing step 4.*No space left.*published before it still stands"):
        train(module, optimizer, 1, start=3)
    with pytest.raises(RuntimeError, match=r"stopped after step 3.*existing=\"resume\""):
        optimizer.step()
    optimizer.close()
    (full_disk / "filler").unlink()
    other = model(seed=5)
    resumed = adamw(other, OffloadPolicy(tier="disk", directory=full_disk / "state", existing="resume"))
    assert resumed.stats()["steps"] == 3
    train(other, resumed, 1, start=3)
    for parameter in module.parameters():
        del parameter.grad
    module = model()
    again = adamw(module, OffloadPolicy())
    train(module, again, 4)
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), other.parameters(), strict=True))
    assert len(weights) == 5


@pytest.mark.parametrize("call", ["preadv", "pwritev", "fdatasync", "replace"])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_device_that_fails_in_a_step_leaves_a_whole_step(model, train, adamw, disk, monkeypatch, call, after):
    """EIO at the first, second and sixth call of each kind: a Python error that names the file, no thread left, and the
    step before still there, from which the run ends as if nothing had happened."""
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk())
    train(module, optimizer, 3)
    real, count = getattr(os, call), 0

    def failing(*arguments):
        nonlocal count
        count += 1
        if count > after:
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments)

    monkeypatch.setattr(os, call, failing)
    steps = 3
    with pytest.raises(StorageError, match=r"offload\.(state|json)'.*Input/output error") as e:
        for steps in range(3, 12):
            train(module, optimizer, 1, start=steps)
    assert e.value.errno == errno.EIO
    with pytest.raises(RuntimeError, match=f"stopped after step {steps}"):
        optimizer.state_dict()
    monkeypatch.undo()
    optimizer.close()
    other = model(torch.bfloat16, seed=5)
    resumed = adamw(other, disk(existing="resume"))
    assert resumed.stats()["steps"] == steps
    train(other, resumed, 12 - steps, start=steps)
    whole = model(torch.bfloat16)
    train(whole, adamw(whole), 12)
    stepped = [(a, b) for a, b in zip(whole.parameters(), other.parameters(), strict=True) if a.grad is not None]
    assert all(torch.equal(a, b) for a, b in stepped)


def test_a_state_file_cut_short_is_found_at_resume(model, train, adamw, disk):
    module = model()
    optimizer = adamw(module, disk())
    train(module, optimizer, 2)
    directory = optimizer.stats()["directory"]
    optimizer.close()
    path = os.path.join(directory, "offload.state")
    os.truncate(path, os.path.getsize(path) // 3)
    with pytest.raises(StorageError, match=r"offload\.state"):
        adamw(model(), disk(existing="resume"))


def test_a_file_where_the_directory_should_be(tmp_path):
    (tmp_path / "state").write_text("mine")
    with pytest.raises(StorageError, match=re.escape(str(tmp_path / "state"))):
        OffloadAdamW([torch.nn.Parameter(torch.zeros(3))], offload=OffloadPolicy(tier="disk", directory=tmp_path / "state"))
    assert (tmp_path / "state").read_text() == "mine"


def test_a_system_without_positioned_io_is_told_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "preadv")
    with pytest.raises(StorageError, match=r"needs os\.preadv.*use tier=\"ram\""):
        OffloadAdamW([torch.nn.Parameter(torch.zeros(3))], offload=OffloadPolicy(tier="disk", directory=tmp_path / "state"))
    assert not (tmp_path / "state").exists()
