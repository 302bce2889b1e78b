"""Going back after a step that failed, and to the step before one that was damaged."""

import errno
import os
import shutil

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy, StorageError
from offload_lab.storage.direct_io import BlockFile


def weights(module):
    return [p.detach().clone() for p in module.parameters()]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def moments(optimizer):
    state = optimizer.state_dict()["state"]
    return [state[number][key].clone() for number in sorted(state) for key in sorted(state[number])]


def failing(monkeypatch, doing, at, code=errno.ENOSPC):
    """Let the `at`th call of a BlockFile's method fail, once."""
    calls, original = [], getattr(BlockFile, doing)

    def wrapped(self, *arguments):
        calls.append(1)
        if len(calls) == at:
            raise StorageError(code, f"{doing} failed on purpose")
        return original(self, *arguments)

    monkeypatch.setattr(BlockFile, doing, wrapped)


@pytest.mark.parametrize("overlap", ["none", "forward", "backward"])
@pytest.mark.parametrize(("doing", "at"), [("write", 1), ("write", 4), ("read", 3), ("sync", 1)])
def test_after_a_step_that_failed_the_last_published_one_is_back(model, train, adamw, disk, monkeypatch, overlap, doing, at):
    module, twin = model(torch.bfloat16), model(torch.bfloat16)
    optimizer = adamw(module, disk(overlap=overlap, partition_size=300))
    reference = adamw(twin, OffloadPolicy())
    train(module, optimizer, 3)
    train(twin, reference, 3)
    optimizer.wait()
    failing(monkeypatch, doing, at)
    with pytest.raises((StorageError, RuntimeError), match="failed on purpose"):
        train(module, optimizer, 1, start=3)
        optimizer.wait()
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match=r"call rollback\(\)"):
        optimizer.step()
    optimizer.rollback()
    assert same(weights(module), weights(twin)) and same(moments(optimizer), moments(reference))
    assert optimizer.stats()["steps"] == 3
    train(module, optimizer, 3, start=3)
    train(twin, reference, 3, start=3)
    assert same(weights(module), weights(twin)), "and the run goes on as if nothing had been"


def test_a_failure_before_anything_was_published_cannot_be_taken_back(model, train, adamw, disk, monkeypatch):
    module = model()
    optimizer = adamw(module, disk(partition_size=300))
    failing(monkeypatch, "write", 5)
    with pytest.raises(StorageError, match="on purpose"):
        train(module, optimizer, 1)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="no published step"):
        optimizer.rollback()
    with pytest.raises(RuntimeError, match="stopped after step 0"):
        optimizer.step()


def test_while_the_disk_still_refuses_going_back_changes_nothing(model, train, adamw, disk, monkeypatch):
    module = model()
    optimizer = adamw(module, disk(partition_size=300))
    train(module, optimizer, 2)
    before = weights(module)
    failing(monkeypatch, "write", 1)
    with pytest.raises(StorageError):
        train(module, optimizer, 1, start=2)
    monkeypatch.undo()
    halfway = weights(module)
    with monkeypatch.context() as patch:
        failing(patch, "read", 4, errno.EIO)
        with pytest.raises(StorageError, match=r"going back to step 2: .*nothing was changed"):
            optimizer.rollback()
    assert same(weights(module), halfway)
    optimizer.rollback()
    assert same(weights(module), before)


def spoil(directory, optimizer, generation, partition):
    """Flip a byte of a partition's state in a generation, after the optimizer is closed."""
    files = optimizer._engine.files
    _, at = files.where(partition, generation.slots[partition], 3)
    optimizer.close()
    with open(directory / "offload.state", "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 4]))


@pytest.fixture
def three_steps(model, train, disk, tmp_path):
    """Three steps in `state`, the weights after each, and the optimizer, still open."""
    module = model(torch.bfloat16)
    named = [(name, parameter) for name, parameter in module.named_parameters()]
    optimizer = OffloadAdamW(named, lr=0.01, offload=disk(partition_size=300))
    history = [weights(module)]
    for step in range(3):
        train(module, optimizer, 1, start=step)
        history.append(weights(module))
    yield optimizer, history
    optimizer.close()


def test_a_damaged_step_is_named_by_its_parameters_and_the_one_before_it_can_be_taken_up(
    three_steps, model, train, adamw, disk, tmp_path
):
    optimizer, history = three_steps
    spoil(tmp_path / "state", optimizer, optimizer._engine.files.published, 2)
    other = model(torch.bfloat16, seed=1)
    named = list(other.named_parameters())
    with pytest.raises(StorageError, match=r"partition 2 was damaged.*it holds first\.weight\..*step before it, 2, is whole"):
        OffloadAdamW(named, offload=disk(existing="resume"))
    with OffloadAdamW(named, lr=0.01, offload=disk(existing="previous")) as resumed:
        assert resumed.stats()["steps"] == 2 and same(weights(other), history[2])
        train(other, resumed, 1, start=2)
        assert same(weights(other), history[3])
    third = model(torch.bfloat16, seed=2)
    with OffloadAdamW.resume(tmp_path / "state", third.parameters()) as again:
        assert again.stats()["steps"] == 3 and same(weights(third), history[3])


def test_where_both_are_damaged_neither_is_offered(three_steps, model, disk, tmp_path):
    optimizer, _ = three_steps
    files = optimizer._engine.files
    newest, older = files.published, files.previous
    spoil(tmp_path / "state", optimizer, newest, 1)
    _, at = files.where(4, older.slots[4])
    with open(tmp_path / "state" / "offload.state", "r+b") as file:
        file.seek(at)
        file.write(b"\xff\xfe\xfd")
    other = model(torch.bfloat16, seed=1)
    before = (tmp_path / "state" / "offload.json").read_bytes()
    with pytest.raises(
        StorageError, match=r"partition 1 was damaged.*Restore both files from a copy, or start over and load a checkpoint\.$"
    ):
        OffloadAdamW.resume(tmp_path / "state", other.parameters())
    with pytest.raises(StorageError, match=r"no whole step before step 3: partition 4 was damaged"):
        OffloadAdamW(other.parameters(), offload=disk(existing="previous"))
    assert (tmp_path / "state" / "offload.json").read_bytes() == before, "what is there can still be copied"


def test_previous_needs_one(model, train, adamw, disk, tmp_path):
    module = model()
    optimizer = adamw(module, disk(partition_size=300))
    train(module, optimizer, 1)
    optimizer.close()
    os.unlink(tmp_path / "state" / "offload.lock")
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    with pytest.raises(StorageError, match="no whole step before step 1: there is none"):
        OffloadAdamW(module.parameters(), offload=disk("copy", existing="previous"))
    with pytest.raises(ValueError, match="contradicts itself"):
        disk(durability="checkpoint", existing="previous")
