"""The step that begins during backward: the same bits, and taken back whole when it has to be."""

import gc
import os
import threading
import time
import weakref

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy


@pytest.fixture
def pair(model, adamw, disk):
    """Two equal models: one stepped after backward, one during it."""

    def build(dtype=torch.bfloat16, **policy):
        made = []
        for overlap in ("none", "backward"):
            module = model(dtype)
            made += [module, adamw(module, disk(overlap, overlap=overlap, partition_size=100, **policy))]
        return made

    return build


def equal(module, other):
    return all(torch.equal(p, q) for p, q in zip(module.parameters(), other.parameters(), strict=True))


def states_equal(one, two):
    a, b = one.state_dict()["state"], two.state_dict()["state"]
    return a.keys() == b.keys() and all(torch.equal(a[n][k], b[n][k]) for n in a for k in a[n])


def loss_of(module, step, scale=1.0):
    generator = torch.Generator().manual_seed(step)
    dtype = next(module.parameters()).dtype
    return (module(torch.randn(4, 37, generator=generator).to(dtype)).float() * scale).pow(2).mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("budget", [None, 80_000, 200_000])
@pytest.mark.parametrize("order", ["forward", "alternating"])
def test_the_bits_are_those_of_a_step_after_backward(pair, train, dtype, budget, order):
    right, one, module, two = pair(dtype, ram_budget=budget, order=order)
    for step in range(6):
        train(right, one, 1, start=step)
        train(module, two, 1, start=step)
    assert equal(right, module) and states_equal(one, two)


def test_updates_are_made_while_backward_runs(pair, train):
    """Counted, not timed: when the last gradient comes, updates of other partitions have ended."""
    _, _, module, optimizer = pair()
    train(module, optimizer, 1)
    optimizer.wait()
    optimizer.trace.clear()
    seen = []

    def late(parameter):
        deadline = time.monotonic() + 30
        while not seen and time.monotonic() < deadline:
            seen.extend(event.partition for event in optimizer.trace.events() if event.name == "update")

    module.first.bias.register_post_accumulate_grad_hook(late)  # it comes after those of module.second
    optimizer.zero_grad()
    loss_of(module, 1).backward()
    optimizer.step()
    assert seen


@pytest.mark.parametrize("residency", ["pinned", "lru", "furthest"])
def test_nothing_is_read_that_the_step_does_not_use(pair, train, residency):
    """A step that backward begins finds empty buffers; to read for it after the one before would be to read twice."""
    _, _, module, optimizer = pair(ram_budget=80_000, residency=residency)
    for step in range(4):
        train(module, optimizer, 1, start=step)
        optimizer.wait()
        events = optimizer.trace.events()
        optimizer.trace.clear()
        updated = {event.partition: event.start for event in events if event.name == "update"}
        assert all(read.end <= updated.get(read.partition, 0.0) for read in events if read.name == "read")
    assert any(event.name == "read" for event in events)


def test_gradients_are_used_up_and_reading_them_or_the_weight_before_the_step_is_refused(pair, train):
    _, _, module, optimizer = pair()
    train(module, optimizer, 1)
    optimizer.zero_grad()
    loss_of(module, 1).backward()
    for reading in (
        lambda: torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0),
        lambda: module.second.weight.grad,
        lambda: module.second.weight.sum(),
        lambda: module.state_dict(),
    ):
        with pytest.raises(RuntimeError, match=r"neither can be read before step\(\).*overlap=\"forward\""):
            reading()
    optimizer.step()
    module.state_dict()
    assert module.second.weight.grad is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("budget", [None, 80_000])
def test_a_gradient_that_is_not_finite_takes_the_whole_step_back(pair, train, dtype, budget):
    """The bad gradient comes last, when most partitions have been updated."""
    right, one, module, two = pair(dtype, ram_budget=budget)
    for m, o in ((right, one), (module, two)):
        train(m, o, 3)
        o.zero_grad()
        handle = m.first.weight.register_hook(lambda gradient: gradient * float("inf"))
        loss_of(m, 3).backward()
        handle.remove()
        with pytest.warns(UserWarning, match="step skipped"):
            o.step()
        o.zero_grad()
        assert o.stats()["skipped_steps"] == 1
    assert equal(right, module) and states_equal(one, two)
    train(right, one, 2, start=4)
    train(module, two, 2, start=4)
    assert equal(right, module) and states_equal(one, two)


def test_a_backward_without_a_step_can_be_given_up(pair, train):
    right, one, module, two = pair()
    train(right, one, 2)
    train(module, two, 2)
    loss_of(module, 2).backward()
    two.zero_grad()
    assert equal(right, module) and states_equal(one, two)
    loss_of(module, 2).backward()
    two.close()
    assert equal(right, module)


def test_a_second_backward_is_an_error_unless_it_was_announced(pair, train):
    """Cases 47 and 56."""
    right, one, module, two = pair()
    for m, o in ((right, one), (module, two)):
        train(m, o, 2)
        o.zero_grad()
        with o.accumulate():
            loss_of(m, 2).backward()
            loss_of(m, 3).backward()
        loss_of(m, 4).backward()
        o.step()
    assert equal(right, module) and states_equal(one, two)
    loss_of(module, 5).backward()
    with pytest.raises(RuntimeError, match=r"optimizer\.accumulate\(\)"):
        loss_of(module, 6)
    two.zero_grad()
    older = module.second.bias.sum()  # a graph that holds no weight
    loss_of(module, 5).backward()
    with pytest.raises(RuntimeError, match=r"second gradient of .* before step\(\).*optimizer\.accumulate\(\)"):
        older.backward()
    with pytest.raises(RuntimeError, match="taken back"):
        two.step()
    assert equal(right, module) and states_equal(one, two)


def test_a_setting_that_changes_between_backward_and_step_is_an_error(pair, train):
    right, one, module, two = pair()
    train(right, one, 2)
    train(module, two, 2)
    loss_of(module, 2).backward()
    two.param_groups[0]["lr"] = 0.5
    with pytest.raises(RuntimeError, match=r"changed between backward and step\(\)"):
        two.step()
    assert equal(right, module) and states_equal(one, two)


def test_parameters_that_come_only_sometimes(pair):
    """Unused in a backward, frozen later, with a gradient set by hand, edited in between."""
    right, one, module, two = pair()
    for m, o in ((right, one), (module, two)):
        for step in range(8):
            o.zero_grad()
            loss = loss_of(m, step)
            if step in (2, 5):
                loss = loss + m.unused.float().pow(2).sum()
            if step == 3:
                m.scale.requires_grad_(False)
                loss = loss_of(m, step)
            if step == 4:
                m.unused.grad = torch.ones_like(m.unused)
            loss.backward()
            o.step()
            if step == 6:
                with torch.no_grad():
                    m.second.weight.mul_(0.5)
    assert equal(right, module) and states_equal(one, two)


def test_what_was_resumed_is_the_last_step_even_when_backward_had_begun_another(pair, train, disk, adamw, model):
    right, one, module, two = pair()
    train(right, one, 3)
    train(module, two, 3)
    two.wait()
    loss_of(module, 3).backward()
    child = os.fork()
    if not child:
        os._exit(0)  # the lock dies with the process, as it would with kill -9
    os.waitpid(child, 0)
    two.close()
    other = model(torch.bfloat16, seed=1)
    resumed = adamw(other, disk("backward", existing="resume"))
    assert equal(right, other) and states_equal(one, resumed)


def test_no_thread_and_no_hook_stays(pair, train):
    _, _, module, optimizer = pair()
    train(module, optimizer, 2)
    loss_of(module, 2).backward()
    optimizer.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("offload")]
    loss_of(module, 2).backward()
    assert module.second.weight.grad is not None


def test_a_policy_that_could_not_take_a_step_back_is_refused(tmp_path):
    for policy in ({"tier": "ram"}, {"tier": "disk", "directory": tmp_path, "durability": "checkpoint"}):
        with pytest.raises(ValueError, match='needs tier="disk" and durability="step"'):
            OffloadPolicy(overlap="backward", **policy)


def test_the_optimizer_is_collected_although_its_hooks_are_not(disk):
    parameter = torch.nn.Parameter(torch.ones(10))
    optimizer = OffloadAdamW([parameter], offload=disk(overlap="backward"))
    gone = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert gone() is None
    parameter.sum().backward()
