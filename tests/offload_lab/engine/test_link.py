"""Parameters on an accelerator, over a link that is late: no copy is used before it is over, none starts too early.

Where there is an accelerator the same is done on it; elsewhere only on the fake.
"""

import pytest
import torch

from offload_lab import ModelSpec, OffloadAdamW, OffloadPolicy, devices, engine, schedule, staging
from offload_lab.engine_bytes import engine_bytes
from offload_lab.link import link_of
from offload_lab.partition import round_up
from tests.offload_lab.engine.fake_link import FakeLink

SHAPES = [(37, 65), (), (0,), (3001,), (64,), (5, 7)]
ACCELERATOR = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None


@pytest.fixture
def link(monkeypatch):
    fake = FakeLink()
    for module in (devices, engine):
        monkeypatch.setattr(module, "link_of", lambda tensor: fake)
    yield fake
    fake.close()


def parameters(dtype, device="cpu"):
    generator = torch.Generator().manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator).to(device, dtype)) for shape in SHAPES]


def gradients(params, step):
    generator = torch.Generator().manual_seed(100 + step)
    values = [torch.randn(p.shape, generator=generator).to(p.device, p.dtype) for p in params]
    return [None if (step + number) % 5 == 3 else value for number, value in enumerate(values)]


def steps(params, optimizer, first, count):
    for step in range(first, first + count):
        for parameter, gradient in zip(params, gradients(params, step), strict=True):
            parameter.grad = gradient
        optimizer.step()


def right(dtype, count, **options):
    """What `count` steps give without any link."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (devices, engine):
            patch.setattr(module, "link_of", lambda tensor: None)
        params = parameters(dtype)
        with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(**options)) as optimizer:
            steps(params, optimizer, 0, count)
    return params


def same(params, others):
    return all(torch.equal(p.detach().cpu(), q.detach()) for p, q in zip(params, others, strict=True))


POLICIES = {
    "ram": {},
    "ram, forward": {"overlap": "forward"},
    "disk": {"tier": "disk"},
    "disk, forward": {"tier": "disk", "overlap": "forward"},
    "disk, some in RAM": {"tier": "disk", "ram_budget": 200_000},
    "disk, scratch, all in order": {"tier": "disk", "durability": "checkpoint", "order": "alternating", "residency": "lru"},
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_same_bits_over_a_late_link(link, tmp_path, dtype, name):
    options = {"partition_size": 500, **POLICIES[name]}
    if "tier" in options:
        options["directory"] = tmp_path / "state"
    params = parameters(dtype)
    with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(**options)) as optimizer:
        steps(params, optimizer, 0, 4)
        optimizer.wait()
        assert same(params, right(dtype, 4))
        told = optimizer.stats()
        assert told["staging"] == "pinned" and {"copies from the accelerator", "copies to the accelerator"} <= set(
            told["last_step"]["bytes"]
        )
        if "ram_budget" in options:
            assert told["ram_bytes"] <= options["ram_budget"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_updates_during_backward_over_a_late_link(link, disk, dtype):
    def trained(policy):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(30, 50), torch.nn.Tanh(), torch.nn.Linear(50, 10)).to(dtype)
        with OffloadAdamW(module.parameters(), lr=0.01, offload=policy) as optimizer:
            for step in range(5):
                inputs = torch.randn(8, 30, generator=torch.Generator().manual_seed(step)).to(dtype)
                optimizer.zero_grad()
                module(inputs).float().square().mean().backward()
                optimizer.step()
            optimizer.wait()
        return list(module.parameters())

    late = trained(disk(overlap="backward", partition_size=300))
    assert link.copied["up"] > 0
    with pytest.MonkeyPatch.context() as patch:
        for module in (devices, engine):
            patch.setattr(module, "link_of", lambda tensor: None)
        assert same(late, trained(OffloadPolicy()))


@pytest.fixture
def unchecked(monkeypatch):
    """A link whose check of gradients does not happen to wait for the device, so that only the copies' own order counts."""
    monkeypatch.setattr(FakeLink, "finite", lambda self, gradients: [True] * len(gradients))


def test_gradients_that_the_device_has_not_computed_yet_are_waited_for(link, unchecked):
    params = parameters(torch.bfloat16)
    with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(partition_size=500)) as optimizer:
        for step in range(2):
            for parameter, gradient in zip(params, gradients(params, step), strict=True):
                parameter.grad = None if gradient is None else torch.full_like(gradient, float("nan"))
                if gradient is not None:
                    link.kernel(lambda into=parameter.grad, value=gradient: into.copy_(value))
            optimizer.step()
        assert optimizer.stats()["skipped_steps"] == 0
    assert same(params, right(torch.bfloat16, 2))


@pytest.mark.parametrize("overlap", ["none", "forward"])
def test_a_weight_is_not_replaced_while_the_device_still_computes_with_it(link, unchecked, overlap):
    params = parameters(torch.float32)
    before = [parameter.detach().clone() for parameter in params]
    seen = {}
    with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(partition_size=500, overlap=overlap)) as optimizer:
        for parameter, gradient in zip(params, gradients(params, 0), strict=True):
            parameter.grad = gradient
        alias = [parameter.data for parameter in params]
        for number, weight in enumerate(alias):
            link.kernel(lambda number=number, weight=weight: seen.update({number: weight.clone()}), seconds=0.01)
        optimizer.step()
    assert all(torch.equal(seen[number], weight) for number, weight in enumerate(before))


def test_weights_that_were_edited_or_loaded_and_wide_gradients(link):
    if not hasattr(torch.Tensor, "grad_dtype"):
        pytest.skip("float32 gradients of 16-bit parameters need torch 2.9")
    results = []
    for linked in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not linked:
                for module in (devices, engine):
                    patch.setattr(module, "link_of", lambda tensor: None)
            params = parameters(torch.bfloat16)
            policy = OffloadPolicy(partition_size=500, gradients="float32")
            with OffloadAdamW(params, lr=0.01, offload=policy) as optimizer:
                for step in range(4):
                    for number, (parameter, gradient) in enumerate(zip(params, gradients(params, step), strict=True)):
                        parameter.grad = None if gradient is None else gradient.float() + 1e-4 * number
                    optimizer.step()
                    if step == 1:
                        saved, weights = optimizer.state_dict(), [p.detach().clone() for p in params]
                        with torch.no_grad():
                            params[0].mul_(1.5)
                            params[3].data = params[3].data.clone()
                    if step == 2:
                        optimizer.load_state_dict(saved)
                        with torch.no_grad():
                            for parameter, weight in zip(params, weights, strict=True):
                                parameter.copy_(weight)
                results.append(params)
    assert same(*results)


def test_what_is_not_contiguous_goes_as_a_whole_copy_beside_the_others(link):
    results = []
    for linked in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not linked:
                for module in (devices, engine):
                    patch.setattr(module, "link_of", lambda tensor: None)
            params = parameters(torch.float32)
            params[0] = torch.nn.Parameter(params[0].detach().T)
            assert not params[0].is_contiguous()
            with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(partition_size=500)) as optimizer:
                for step in range(3):
                    for parameter, gradient in zip(params, gradients(params, step), strict=True):
                        parameter.grad = gradient if gradient is None else gradient.expand(parameter.shape)
                    optimizer.step()
            results.append(params)
    assert same(*results)


def test_slabs_are_exact_allocated_once_pinned_and_given_back(link):
    params = parameters(torch.bfloat16)
    optimizer = OffloadAdamW(params, offload=OffloadPolicy(partition_size=1000))
    assert not link.pinned and optimizer.stats()["staging_bytes"] == 0, "nothing before the first step"
    steps(params, optimizer, 0, 1)
    first = dict(link.pinned)
    assert list(first.values()) == [round_up(2 * 1000, 64) + 2 * 1000] * staging.SLABS
    assert optimizer.stats()["staging_bytes"] == sum(first.values())
    steps(params, optimizer, 1, 2)
    assert link.pinned == first
    predicted = engine_bytes(ModelSpec.of(torch.nn.ParameterList(params)), "bfloat16", optimizer._engine.policy, linked=True)
    assert predicted.staging == sum(first.values())
    assert predicted.reserved == optimizer.memory()["ram"]
    optimizer.close()
    assert not link.pinned and optimizer.memory()["ram"] == 0


def test_memory_that_cannot_be_pinned_shows_and_works(link):
    link.refuse_to_pin = "the limit on locked memory is reached"
    params = parameters(torch.bfloat16)
    with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(partition_size=500)) as optimizer:
        steps(params, optimizer, 0, 2)
        assert optimizer.stats()["staging"] == "pageable, and slower: the limit on locked memory is reached"
    assert same(params, right(torch.bfloat16, 2))


def test_a_gradient_that_is_not_finite_skips_the_step_wherever_it_is(link):
    params = parameters(torch.float32)
    with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(partition_size=500)) as optimizer:
        before = [parameter.detach().clone() for parameter in params]
        for parameter, gradient in zip(params, gradients(params, 0), strict=True):
            parameter.grad = gradient
        params[0].grad[3, 4] = float("inf")
        with pytest.warns(UserWarning, match=r"\(37, 65\) is not finite"):
            optimizer.step()
        assert all(torch.equal(p, q) for p, q in zip(params, before, strict=True))


@pytest.mark.parametrize("at", [0, 3, 14, 15])
def test_a_link_that_fails_stops_the_step_and_the_published_one_comes_back(link, disk, at):
    params = parameters(torch.bfloat16)
    with OffloadAdamW(params, lr=0.01, offload=disk(partition_size=500)) as optimizer:
        steps(params, optimizer, 0, 2)
        link.fail_at = link.count + at
        with pytest.raises(RuntimeError, match="link failed on purpose"):
            steps(params, optimizer, 2, 1)
        link.fail_at = None
        optimizer.rollback()
        assert same(params, right(torch.bfloat16, 2))
        steps(params, optimizer, 2, 2)
        assert same(params, right(torch.bfloat16, 4))


def test_a_budget_that_staging_alone_fills_is_refused_with_the_arithmetic(link, disk):
    with pytest.raises(ValueError, match=r"ram_budget=5,000 bytes is too small: 3 slabs .* take"):
        OffloadAdamW(parameters(torch.float32), offload=OffloadPolicy(ram_budget=5000, partition_size=500))


BREAKS = {
    "no wait for a copy": lambda patch: patch.setattr(staging, "_wait", lambda copies: None),
    "a slab taken before it was sent": lambda patch: patch.setattr(schedule._Tasks, "put", forgetful(schedule._Tasks.put)),
    "a copy before its gradient": lambda patch: patch.setattr(FakeLink, "now", lambda self: self._queues["down"].submit(int)),
}


def forgetful(put):
    def changed(self, kind, lane, partition, nbytes, after, buffer, slab=None):
        return put(self, kind, lane, partition, nbytes, () if kind == "fetch" else after, buffer, slab)

    return changed


@pytest.mark.parametrize("name", BREAKS)
def test_the_fake_shows_each_missing_wait(link, unchecked, monkeypatch, name):
    """These tests can fail: take one wait away, and the bits are others (or there are NaNs)."""
    BREAKS[name](monkeypatch)
    link.slow["up"] = 0.01  # so that a slab is wanted again before it was sent
    params = parameters(torch.bfloat16)
    with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(partition_size=300)) as optimizer:
        for step in range(3):
            for parameter, gradient in zip(params, gradients(params, step), strict=True):
                parameter.grad = None if gradient is None else torch.zeros_like(gradient)
                if gradient is not None:
                    link.kernel(lambda into=parameter.grad, value=gradient: into.copy_(value), seconds=0.03)
            optimizer.step()
        link.close()  # before the slabs are given back, which copies that nobody waited for may still use
    assert not same(params, right(torch.bfloat16, 3))


def test_host_memory_has_no_link():
    assert link_of(torch.zeros(3)) is None
    assert link_of(torch.zeros(3, device="meta")) is None


@pytest.mark.skipif(ACCELERATOR is None, reason="there is no accelerator here; the fake link takes its place")
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_same_bits_on_the_accelerator(tmp_path, dtype, name):
    options = {"partition_size": 500, **POLICIES[name]}
    if "tier" in options:
        options["directory"] = tmp_path / "state"
    params = parameters(dtype, ACCELERATOR)
    held = torch.accelerator.memory_allocated()
    with OffloadAdamW(params, lr=0.01, offload=OffloadPolicy(**options)) as optimizer:
        steps(params, optimizer, 0, 4)
        optimizer.wait()
        assert same(params, right(dtype, 4))
        for parameter in params:
            parameter.grad = None
        assert torch.accelerator.memory_allocated() <= held, "no state is on the accelerator"
