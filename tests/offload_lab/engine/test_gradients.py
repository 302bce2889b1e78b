"""Norms, clipping and accumulation: against torch, and against sums in float64."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.gradients import total_norm
from tests.oracles import MasterAdamW


@pytest.fixture(params=["ram", "disk", "forward"])
def policy(request, disk):
    if request.param == "ram":
        return OffloadPolicy(partition_size=500)
    return disk(partition_size=500, overlap="forward" if request.param == "forward" else "none")


@given(
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from([torch.float32, torch.bfloat16, torch.float16])), max_size=5),
    st.sampled_from([2.0, math.inf]),
    st.sampled_from([1.0, 1e-3, 1e3]),
)
def test_the_norm_is_that_of_all_gradients_as_one_vector(shapes, norm_type, scale):
    generator = torch.Generator().manual_seed(0)
    gradients = [(torch.randn(n, generator=generator) * scale).to(dtype) for n, dtype in shapes]
    whole = torch.cat([g.double() for g in gradients]) if gradients else torch.zeros(1, dtype=torch.float64)
    expected = float(torch.linalg.vector_norm(whole, norm_type)) if whole.numel() else 0.0
    assert total_norm(gradients, norm_type) == pytest.approx(expected, rel=1e-6)


def test_the_norm_of_large_numbers_is_not_infinite_and_that_of_infinity_is():
    assert total_norm([torch.full((3,), 3e38)]) == pytest.approx(3e38 * math.sqrt(3))
    assert total_norm([torch.tensor([1.0, math.inf])]) == math.inf
    assert math.isnan(total_norm([torch.tensor([1.0, math.nan])]))
    assert math.isnan(total_norm([torch.tensor([1.0, math.nan])], math.inf))
    assert total_norm([torch.randn(300, 500).t()]) > 0
    assert total_norm([torch.ones(1 << 18)]) == 512
    with pytest.raises(ValueError, match="norm_type=1"):
        total_norm([], 1)


@pytest.mark.parametrize("max_norm", [1e-3, 1e6])
def test_clipping_equals_torchs(policy, model, max_norm):
    ours, theirs = model(), model()
    with OffloadAdamW(ours.parameters(), lr=0.01, offload=policy) as optimizer:
        reference = torch.optim.AdamW(theirs.parameters(), lr=0.01)
        for step in range(4):
            inputs = torch.randn(4, 37, generator=torch.Generator().manual_seed(step))
            norms = []
            for module, opt in ((ours, optimizer), (theirs, reference)):
                opt.zero_grad()
                (module(inputs).pow(2).mean() * 10**step).backward()
                clip = optimizer.clip_grad_norm_ if opt is optimizer else None
                norms.append(clip(max_norm) if clip else torch.nn.utils.clip_grad_norm_(module.parameters(), max_norm))
                opt.step()
            assert float(norms[0]) == pytest.approx(float(norms[1]), rel=1e-5)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-7)


def test_a_clipped_16_bit_gradient_is_scaled_in_float32(policy):
    """Torch's own clipping rounds the scaled gradient to bfloat16 again; ours does not."""
    generator = torch.Generator().manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(1500, generator=generator).bfloat16())
    oracle = MasterAdamW(parameter, lr=0.01)
    with OffloadAdamW([parameter], lr=0.01, offload=policy) as optimizer:
        for _ in range(5):
            gradient = torch.randn(1500, generator=generator).bfloat16()
            parameter.grad = gradient.clone()
            norm = float(optimizer.clip_grad_norm_(0.3))
            optimizer.step()
            assert torch.equal(parameter.grad if parameter.grad is not None else gradient, gradient)
            oracle.step(gradient.float() * torch.tensor(0.3 / (norm + 1e-6), dtype=torch.float32))
            assert torch.equal(parameter.detach(), oracle.weight())


def test_clipping_holds_for_one_step_only(policy):
    parameter = torch.nn.Parameter(torch.ones(10))
    other = torch.nn.Parameter(torch.ones(10))
    with OffloadAdamW([parameter], offload=policy) as clipped, OffloadAdamW([other]) as plain:
        for optimizer, p in ((clipped, parameter), (plain, other)):
            p.grad = torch.full((10,), 7.0)
            if optimizer is clipped:
                optimizer.clip_grad_norm_(1e-9)
                optimizer.zero_grad()  # the clipped step never came
                p.grad = torch.full((10,), 7.0)
            optimizer.step()
        assert torch.equal(parameter.detach(), other.detach())
        parameter.grad = torch.full((10,), math.inf)
        assert clipped.clip_grad_norm_(1.0) == math.inf
        with pytest.warns(UserWarning, match="step skipped"):
            clipped.step()
        assert clipped.stats()["skipped_steps"] == 1


def test_clipping_while_backward_updates_is_refused(disk):
    parameter = torch.nn.Parameter(torch.ones(10))
    optimizer = OffloadAdamW([parameter], offload=disk(overlap="backward"))
    with optimizer, pytest.raises(RuntimeError, match='overlap="forward", which clips exactly'):
        optimizer.clip_grad_norm_(1.0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_of_many_backwards_are_not_rounded_to_16_bits(policy, dtype):
    """One of 1 and 300 of 1/4096: in bfloat16 and float16 the small ones vanish, one by one."""
    parameter = torch.nn.Parameter(torch.zeros(600, dtype=dtype))
    parts = [1.0] + [2.0**-12] * 300
    with OffloadAdamW([parameter], lr=0.01, offload=replace(policy, gradients="float32")) as optimizer:
        oracle = MasterAdamW(parameter, lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            for part in parts:
                (parameter * part).sum().backward()
            assert parameter.grad.dtype == torch.float32 and float(parameter.grad[0]) == sum(parts)
            optimizer.step()
            oracle.step(torch.full((600,), sum(parts)))
            assert torch.equal(parameter.detach(), oracle.weight())
    rounded = torch.zeros(1, dtype=dtype)
    for part in parts:
        rounded += part
    assert float(rounded) != sum(parts)


def test_gradients_that_are_there_already_become_float32():
    parameter = torch.nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    parameter.sum().backward()
    with OffloadAdamW([parameter], offload=OffloadPolicy(gradients="float32")):
        assert parameter.grad.dtype == torch.float32 and torch.equal(parameter.grad, torch.ones(3))


@pytest.mark.parametrize("gradients", ["parameter", "float32"])
def test_one_batch_or_eight_parts_of_it(policy, model, gradients):
    """Cases 50 and 55."""
    finals = []
    for parts, name in ((1, "one"), (8, "eight")):
        module = model()
        where = {"directory": policy.directory / name} if policy.directory else {}
        with OffloadAdamW(module.parameters(), lr=0.01, offload=replace(policy, gradients=gradients, **where)) as optimizer:
            for step in range(3):
                inputs = torch.randn(8, 37, generator=torch.Generator().manual_seed(step))
                optimizer.zero_grad()
                for part in inputs.chunk(parts):
                    (module(part).pow(2).mean() / parts).backward()
                optimizer.step()
        finals.append(list(module.parameters()))
    for p, q in zip(*finals, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_a_grad_scaler_works_on_float16_weights_whose_gradients_are_float32(policy):
    """Torch refuses to unscale float16 gradients."""
    parameter = torch.nn.Parameter(torch.ones(700, dtype=torch.float16))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
    with OffloadAdamW([parameter], lr=0.01, offload=replace(policy, gradients="float32")) as optimizer:
        oracle = MasterAdamW(parameter, lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale((parameter.float() * 0.001).sum()).backward()
            scaler.unscale_(optimizer)
            gradient = parameter.grad.clone()
            scaler.step(optimizer)
            scaler.update()
            oracle.step(gradient)
            assert torch.equal(parameter.detach(), oracle.weight())
