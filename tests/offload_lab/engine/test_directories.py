"""Several directories: the same bits, every disk its share, and none of them mistaken for another."""

import errno
import json
import os
import shutil
import subprocess

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from offload_lab import DirectoryInUse, OffloadAdamW, OffloadPolicy, StorageError
from offload_lab.cli import app
from offload_lab.partition import cut
from offload_lab.storage import files as state_files
from offload_lab.storage.direct_io import BlockFile
from offload_lab.storage.places import Layout, shares_of
from offload_lab.storage.speed import mixed_speed


def weights(module):
    return [p.detach().clone() for p in module.parameters()]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


@pytest.fixture
def speeds(monkeypatch):
    """Say how fast each directory is, by its name, instead of measuring it."""
    told = {}
    monkeypatch.setattr(state_files, "mixed_speed", lambda path, direct: told.get(path.name, 1.0))
    return told


@pytest.fixture
def striped(tmp_path):
    def policy(*names, **changes):
        given = {"tier": "disk", "partition_size": 3000, "chunk_bytes": 4096}
        return OffloadPolicy(**given | {"directory": [tmp_path / name for name in names]} | changes)

    return policy


@given(
    numels=st.lists(st.integers(1, 5000), min_size=1, max_size=12),
    shares=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    size=st.integers(1, 4000),
    chunk=st.sampled_from([4096, 8192, 65536]),
    slots=st.sampled_from([1, 2]),
)
@settings(max_examples=150, deadline=None)
def test_every_byte_of_every_slot_has_a_place_of_its_own(numels, shares, size, chunk, slots):
    layout, taken, chunks = Layout(shares, slots), set(), [0] * len(shares)
    for part in cut([(n, numel, "bfloat16") for n, numel in enumerate(numels)], size):
        place = layout.place(part, True, chunk)
        assert place.nbytes == part.record_bytes(True)
        for file, _ in place.homes:
            chunks[file] += 1
        for slot in range(slots):
            seen = 0
            for span in place.spans(slot, 0, place.nbytes):
                assert span.start == seen and span.offset % 4096 == 0 and span.offset + span.length <= layout.lengths[span.file]
                seen += span.length
                blocks = {(span.file, span.offset + at) for at in range(0, span.length, 4096)}
                assert not taken & blocks
                taken |= blocks
            assert seen == place.nbytes
    assert len(taken) * 4096 == sum(layout.lengths), "no file is longer than it needs"
    total, count = sum(shares), sum(chunks)
    assert all(abs(chunks[file] - count * share / total) <= len(shares) for file, share in enumerate(shares))


@given(st.lists(st.floats(1e6, 1e11), min_size=1, max_size=5))
def test_shares_follow_speeds(speeds):
    shares = shares_of(speeds)
    assert all(1 <= share <= 16 for share in shares)
    for one, other in zip(shares, speeds, strict=True):
        wanted, got = other / sum(speeds), one / sum(shares)
        assert abs(wanted - got) <= max(0.07 * len(speeds), 1 / 16)
    assert shares_of([3e9, 3e9]) == [1, 1]
    assert shares_of([3e9, 1e9]) == [3, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", [{}, {"durability": "checkpoint"}, {"overlap": "forward"}, {"ram_budget": 400_000}])
def test_the_same_bits_from_three_directories_and_after_a_resume(model, train, striped, speeds, dtype, options):
    speeds.update(a=1.0, b=2.0, c=1.0)
    module, twin = model(dtype), model(dtype)
    policy = striped("a", "b", "c", **options)
    reference = OffloadAdamW(twin.parameters(), lr=0.01)
    optimizer = OffloadAdamW(module.parameters(), lr=0.01, offload=policy)
    train(module, optimizer, 3)
    train(twin, reference, 5)
    told = optimizer.stats()
    assert [entry["share"] for entry in told["directories"]] == [0.25, 0.5, 0.25]
    if "durability" not in options:
        optimizer.close()
        module = model(dtype, seed=1)
        first = policy.directories[0]
        named = policy.directories if dtype == torch.float32 else first  # the first is enough
        optimizer = OffloadAdamW.resume(named, module.parameters(), offload=policy)
        assert optimizer.stats()["steps"] == 3
    train(module, optimizer, 2, start=3)
    optimizer.close()
    assert same(weights(module), weights(twin))


def test_each_disk_gets_its_share_of_the_bytes(striped, speeds, monkeypatch):
    speeds.update(a=3.0, b=1.0)
    moved = {"a": 0, "b": 0}
    original = BlockFile.write

    def counted(self, data, offset):
        moved[self.path.parent.name] += data.nbytes
        return original(self, data, offset)

    monkeypatch.setattr(BlockFile, "write", counted)
    parameter = torch.nn.Parameter(torch.zeros(64 * 4096))
    with OffloadAdamW([parameter], offload=striped("a", "b", partition_size=4096)) as optimizer:
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        written = optimizer.stats()["bytes_written"]
    assert moved["a"] + moved["b"] == written
    assert moved["a"] == 3 * moved["b"]


def test_a_run_is_only_resumed_from_its_own_directories(model, train, striped, speeds, tmp_path):
    module = model(torch.bfloat16)
    for names in (("a", "b"), ("x", "y")):
        optimizer = OffloadAdamW(module.parameters(), offload=striped(*names))
        train(module, optimizer, 1)
        optimizer.close()

    def resume(*names):
        with OffloadAdamW(module.parameters(), offload=striped(*names, existing="resume")) as optimizer:
            return optimizer.stats()["steps"]

    before = {path: path.read_bytes() for path in tmp_path.rglob("offload.*") if path.name != "offload.lock"}
    assert resume("a", "b") == 1
    with pytest.raises(StorageError, match=r"/y' should be part 1 of the run in '.*/a'; it is part 1 of a run that begins in"):
        resume("a", "y")
    with pytest.raises(StorageError, match=r"lies in 2 directories .* and 3 were named"):
        resume("a", "b", "c")
    with pytest.raises(StorageError, match=r"/empty' is no part of the run"):
        resume("a", "empty")
    shutil.move(tmp_path / "b", tmp_path / "moved")
    with pytest.raises(StorageError, match=r"has a part of its state in '.*/b', which is not there.*directory="):
        resume("a")
    assert resume("a", "moved") == 1
    shutil.move(tmp_path / "moved", tmp_path / "b")
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("offload.*") if p.name != "offload.lock"}, "nothing is lost"


def test_a_part_of_a_run_is_no_free_directory(model, train, striped, speeds, tmp_path):
    module = model()
    with OffloadAdamW(module.parameters(), offload=striped("a", "b")) as optimizer:
        train(module, optimizer, 1)
        other = torch.nn.Parameter(torch.ones(3))
        with pytest.raises(DirectoryInUse, match=r"/b' is in use"):
            OffloadAdamW([other], offload=striped("b"))
    with pytest.raises(FileExistsError, match=r"/b' holds an earlier run: a part of a run"):
        OffloadAdamW([other], offload=striped("b", existing="refuse"))
    with pytest.raises(FileExistsError, match="holds an earlier run"):
        OffloadAdamW([other], offload=striped("c", "b", existing="refuse"))
    with pytest.warns(UserWarning, match=r"/b' \(a part of a run\)|starting over"), OffloadAdamW([other], offload=striped("b")):
        pass
    with pytest.raises(StorageError, match="is no part of the run"):
        OffloadAdamW(module.parameters(), offload=striped("a", "b", existing="resume"))


def test_damage_and_failures_name_the_file_that_they_are_in(model, train, striped, speeds, tmp_path, monkeypatch):
    module = model()
    optimizer = OffloadAdamW(module.parameters(), offload=striped("a", "b"))
    train(module, optimizer, 1)
    files = optimizer._engine.files
    found = [files.where(0, files.slots[0], at) for at in range(0, files._places[0].nbytes, 4096)]
    path, at = next((path, at) for path, at in found if path.parent.name == "b")
    with monkeypatch.context() as patch:
        original = BlockFile.write

        def full(self, data, offset):
            if self.path.parent.name == "b":
                raise StorageError(errno.ENOSPC, f"{self.path} is full")
            return original(self, data, offset)

        patch.setattr(BlockFile, "write", full)
        with pytest.raises(StorageError, match=r"/b/offload\.state is full"):
            train(module, optimizer, 1, start=1)
    optimizer.rollback()
    optimizer.close()
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"\xfe\xed")
    seen = CliRunner().invoke(app, ["inspect", str(tmp_path / "a"), "--verify", "--json"])
    told = json.loads(seen.stdout)
    assert seen.exit_code == 1 and len(told["damage"]) == 1 and str(path) in told["damage"][0]
    with pytest.raises(StorageError, match=rf"partition 0 was damaged: .*{path}"):
        OffloadAdamW.resume(tmp_path / "a", module.parameters())
    path.unlink()
    seen = CliRunner().invoke(app, ["inspect", str(tmp_path / "a"), "--verify"])
    assert seen.exit_code == 1 and f"'{path}' is missing" in seen.stdout
    with pytest.raises(StorageError, match=rf"offload.json' is there, but '{path}' is not"):
        OffloadAdamW.resume(tmp_path / "a", module.parameters())


def test_clean_takes_all_directories_of_a_dead_run(model, train, striped, speeds, tmp_path):
    module = model()
    with OffloadAdamW(module.parameters(), offload=striped("a", "b")) as optimizer:
        train(module, optimizer, 1)
        (tmp_path / "b" / "mine.txt").write_text("kept")
        assert "nothing to delete" in CliRunner().invoke(app, ["clean", str(tmp_path / "a"), "--yes"]).stdout
    assert CliRunner().invoke(app, ["clean", str(tmp_path / "a"), "--yes"]).exit_code == 0
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.txt"]


def test_scratch_leaves_nothing_and_a_failed_start_neither(striped, tmp_path, monkeypatch):
    parameter = torch.nn.Parameter(torch.ones(5000))
    with OffloadAdamW([parameter], offload=striped("a", "b", durability="checkpoint")) as optimizer:
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        assert all(entry["bandwidth"] > 0 for entry in optimizer.stats()["directories"]), "measured for real here"
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()
    (tmp_path / "occupied").write_text("a file")
    with pytest.raises(StorageError, match="occupied"):
        OffloadAdamW([parameter], offload=striped("a", "occupied"))
    with OffloadAdamW([parameter], offload=striped("a")):
        pass  # it was not left locked


def test_measuring_says_where_a_disk_is_full(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        with pytest.raises(StorageError, match=r"reserving .*offload\.probe"):
            mixed_speed(small, "auto")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("given", [[], [3], ["a", None], 7, ["a", "./a"]])
def test_directories_that_make_no_sense_are_refused(given):
    with pytest.raises((ValueError, TypeError), match="directory"):
        OffloadPolicy(tier="disk", directory=given)
