"""What a directory holds after each step, after a crash, and after going back; and that no flipped bit goes unseen."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import OffloadAdamW, OffloadPolicy, StorageError


def weights(module):
    return [p.detach().clone() for p in module.parameters()]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def states(optimizer):
    state = optimizer.state_dict()["state"]
    return [state[number][key].clone() for number in sorted(state) for key in sorted(state[number])]


def copied(directory, to):
    """What a crash at this moment would leave: the files as they are."""
    shutil.copytree(directory, to)
    (to / "offload.lock").unlink()
    return to


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("durability", ["step", 1, 3])
@pytest.mark.parametrize("budget", [None, 80_000])
def test_a_crash_after_any_step_finds_the_last_published_one(model, train, adamw, disk, tmp_path, dtype, durability, budget):
    every = 1 if durability == "step" else durability
    module = model(dtype)
    optimizer = adamw(module, disk(durability=durability, partition_size=300, ram_budget=budget))
    history = [weights(module)]
    for step in range(1, 8):
        train(module, optimizer, 1, start=step)
        history.append(weights(module))
        published = step // every * every
        if not published:
            continue
        left = copied(tmp_path / "state", tmp_path / f"left {step}")
        other = model(dtype, seed=1)
        resumed = adamw(other, disk(f"left {step}", existing="resume"))
        assert resumed.stats()["steps"] == published
        assert same(weights(other), history[published])
        train(other, resumed, 7 - published, start=published + 1)
        resumed.close()
        shutil.rmtree(left)
        history_end = weights(other)
    assert same(history_end, history[7]), "from any of them the run ends in the same bits"


@pytest.mark.parametrize("overlap", ["none", "forward"])
def test_closing_and_publish_make_the_present_step_the_one_that_is_found(model, train, adamw, disk, overlap):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(durability=10, partition_size=300, ram_budget=80_000, overlap=overlap))
    train(module, optimizer, 2)
    optimizer.publish()
    assert json.loads((Path(optimizer.stats()["directory"]) / "offload.json").read_text())["content"]["newest"]["step"] == 2
    train(module, optimizer, 3, start=2)
    optimizer.close()
    other = model(torch.bfloat16, seed=1)
    resumed = adamw(other, disk(existing="resume"))
    assert resumed.stats()["steps"] == 5 and same(weights(other), weights(module))


def test_steps_that_are_not_published_write_no_weights_and_nothing_that_stays_in_ram(disk):
    parameter = torch.nn.Parameter(torch.zeros(8 * 4096))
    for durability in ("step", 100, "checkpoint"):
        policy = disk(str(durability), durability=durability, partition_size=4096, ram_budget=2 * 57_344 + 100_000, depth=2)
        with OffloadAdamW([parameter], offload=policy) as optimizer:
            for _ in range(2):
                before = optimizer.stats()["bytes_written"]
                parameter.grad = torch.ones_like(parameter)
                optimizer.step()
            written = optimizer.stats()["bytes_written"] - before
            resident = optimizer.stats()["resident_partitions"]
        assert 0 < resident < 8
        assert written == (8 * 12 * 4096 if durability == "step" else (8 - resident) * 8 * 4096)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("overlap", ["none", "forward", "backward"])
@pytest.mark.parametrize("budget", [None, 80_000])
def test_going_back_one_step_and_on_again_gives_the_same_bits(model, train, adamw, disk, dtype, overlap, budget):
    module = model(dtype)
    optimizer = adamw(module, disk(overlap=overlap, partition_size=300, ram_budget=budget))
    train(module, optimizer, 3)
    before, state = weights(module), states(optimizer)
    train(module, optimizer, 1, start=3)
    after = weights(module)
    optimizer.param_groups[0]["lr"] = 0.5
    optimizer.rollback()
    assert same(weights(module), before) and same(states(optimizer), state)
    assert optimizer.stats()["steps"] == 3 and optimizer.param_groups[0]["lr"] == 0.01
    with pytest.raises(RuntimeError, match="no published step before step 3"):
        optimizer.rollback()
    train(module, optimizer, 1, start=3)
    assert same(weights(module), after)


def test_going_back_is_on_disk_too_and_works_after_a_resume(model, train, adamw, disk):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(partition_size=300))
    train(module, optimizer, 3)
    before = weights(module)
    train(module, optimizer, 1, start=3)
    optimizer.close()
    other = model(torch.bfloat16, seed=1)
    resumed = adamw(other, disk(existing="resume"))
    resumed.rollback()
    assert same(weights(other), before)
    resumed.close()
    third = model(torch.bfloat16, seed=2)
    again = adamw(third, disk(existing="resume"))
    assert again.stats()["steps"] == 3 and same(weights(third), before)


def test_going_back_gives_up_the_steps_that_were_not_published(model, train, adamw, disk):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(durability=3, partition_size=300, ram_budget=80_000))
    train(module, optimizer, 3)
    before, state = weights(module), states(optimizer)
    train(module, optimizer, 2, start=3)
    optimizer.rollback()
    assert same(weights(module), before) and same(states(optimizer), state)


def test_where_there_is_nothing_to_go_back_to_nothing_changes(model, train, adamw, disk):
    module = model()
    optimizer = adamw(module, disk())
    with pytest.raises(RuntimeError, match="no published step"):
        optimizer.rollback()
    train(module, optimizer, 1)
    now = weights(module)
    with pytest.raises(RuntimeError, match="no published step"):
        optimizer.rollback()
    assert same(weights(module), now)
    for policy in (OffloadPolicy(), disk("scratch", durability="checkpoint")):
        with pytest.raises(RuntimeError, match="publishes none"):
            adamw(model(), policy).rollback()


def test_resume_by_directory(model, train, disk, tmp_path):
    module = model(torch.bfloat16)
    with OffloadAdamW(module.parameters(), lr=0.25, offload=disk()) as optimizer:
        train(module, optimizer, 2)
    other = model(torch.bfloat16, seed=1)
    with OffloadAdamW.resume(tmp_path / "state", other.parameters()) as resumed:
        assert resumed.stats()["steps"] == 2 and resumed.param_groups[0]["lr"] == 0.25
        assert same(weights(other), weights(module))
    with pytest.raises(FileNotFoundError, match="holds no optimizer state"):
        OffloadAdamW.resume(tmp_path / "nowhere", other.parameters())
    assert not (tmp_path / "nowhere").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A directory after three steps, and the bytes of its files that state or manifest can be read from."""
    directory = tmp_path_factory.mktemp("whole") / "state"
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, 3000).bfloat16())
    with OffloadAdamW([parameter], offload=OffloadPolicy(tier="disk", directory=directory, partition_size=700)) as optimizer:
        for _ in range(3):
            parameter.grad = torch.ones_like(parameter)
            optimizer.step()
        files = optimizer._engine.files
        places = [(files.where(i, files.slots[i])[1], p.nbytes) for i, p in enumerate(files._places)]
    return directory, places, parameter.detach().clone()


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_one_flipped_bit_anywhere_is_found_and_named(whole, tmp_path_factory, data):
    directory, places, right = whole
    damaged = tmp_path_factory.mktemp("flip") / "state"
    copied(directory, damaged)
    name = data.draw(st.sampled_from(["offload.state", "offload.json"]))
    path = damaged / name
    content = bytearray(path.read_bytes())
    if name == "offload.state":
        offset, nbytes = data.draw(st.sampled_from(places))
        at = data.draw(st.integers(offset, offset + nbytes - 1))
    else:
        at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    parameter = torch.nn.Parameter(torch.zeros(3000).bfloat16())
    try:
        with pytest.raises((StorageError, ValueError), match=r"offload\.(state|json)"):
            OffloadAdamW.resume(damaged, [parameter]).close()
    finally:
        shutil.rmtree(damaged.parent)
    with OffloadAdamW.resume(copied(directory, damaged.parent / "other"), [parameter]):
        assert torch.equal(parameter.detach(), right), "and without it all is well"
    shutil.rmtree(damaged.parent)


def test_damage_that_comes_while_training_is_met_at_the_next_read(model, train, adamw, disk):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(partition_size=300))
    train(module, optimizer, 3)
    files = optimizer._engine.files
    path, at = files.where(2, files.slots[2], 100)
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, b"\xff\x00\xff", at)
    os.close(descriptor)
    with pytest.raises(StorageError, match=r"partition 2 was damaged: .*offload\.state.*Restore both files"):
        train(module, optimizer, 1, start=3)
    optimizer.close()
