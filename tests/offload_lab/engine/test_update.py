"""The update against oracles: float64 AdamW, torch's own, and a float32 master kept in full."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import OffloadAdam, OffloadAdamW, compiled, halves, kernels, update
from offload_lab.partition import cut
from tests.oracles import Float64AdamW, MasterAdamW

# one below, at and above the sizes at which the loop changes its path, and things that are a multiple of nothing
SIZES = [1, 2, 15, 17, 2047, 2048, 2049, 4096, 6151, 70_001]


def gradients_for(parameter, steps, scale=1.0):
    generator = torch.Generator().manual_seed(parameter.numel())
    return [(torch.randn(parameter.shape, generator=generator) * scale).to(parameter.dtype) for _ in range(steps)]


def parameter_of(size, dtype):
    return torch.nn.Parameter(torch.randn(size, generator=torch.Generator().manual_seed(size)).to(dtype))


@pytest.mark.parametrize("size", SIZES)
def test_float32_is_within_float32_arithmetic_of_float64(size):
    parameter = parameter_of(size, torch.float32)
    oracle = Float64AdamW([parameter], lr=1e-2)
    optimizer = OffloadAdamW([parameter], lr=1e-2)
    for gradient in gradients_for(parameter, 20):
        parameter.grad = gradient
        optimizer.step()
        oracle.step([gradient])
    error = np.abs(parameter.detach().numpy() - oracle.weights[0])
    # each step moves by at most about lr and rounds once: 20 roundings of numbers below 8
    assert error.max() < 20 * 8 * 2**-24


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_is_bit_equal_to_a_float32_master_kept_in_full(size, dtype):
    parameter = parameter_of(size, dtype)
    oracle = MasterAdamW(parameter, lr=3e-3)
    optimizer = OffloadAdamW([parameter], lr=3e-3)
    for gradient in gradients_for(parameter, 25, scale=0.1):
        parameter.grad = gradient
        optimizer.step()
        oracle.step(gradient)
        assert torch.equal(parameter.detach(), oracle.weight())
    state = optimizer.state_dict()["state"][0]
    assert np.array_equal(state["master"].numpy(), oracle.master)
    assert np.array_equal(state["exp_avg"].numpy(), oracle.m)
    assert np.array_equal(state["exp_avg_sq"].numpy(), oracle.v)


def test_a_step_too_small_for_bfloat16_is_kept_in_the_master():
    parameter = torch.nn.Parameter(torch.ones(100, dtype=torch.bfloat16))
    optimizer = OffloadAdamW([parameter], lr=1e-4, weight_decay=0)
    for _ in range(100):
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    # 100 steps of 1e-4; a single one is a thirtieth of bfloat16's spacing below 1
    assert torch.allclose(parameter.detach().float(), torch.full((100,), 0.99), atol=0.003)


@pytest.mark.parametrize("ours, theirs", [(OffloadAdam, torch.optim.Adam), (OffloadAdamW, torch.optim.AdamW)])
@pytest.mark.parametrize("weight_decay", [0, 0.1, 0.5])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.3, 0.5), (0.0, 0.0)])
def test_each_equals_its_torch_twin(ours, theirs, weight_decay, maximize, betas):
    """Cases 35 and 37: L2 is not decoupled decay, and decay comes before the step."""
    mine, twin = parameter_of(301, torch.float32), parameter_of(301, torch.float32)
    options = {"lr": 0.1, "weight_decay": weight_decay, "maximize": maximize, "betas": betas}
    a, b = ours([mine], **options), theirs([twin], **options)
    for gradient in gradients_for(mine, 5):
        mine.grad, twin.grad = gradient.clone(), gradient.clone()
        a.step()
        b.step()
    assert torch.allclose(mine, twin, rtol=1e-5, atol=1e-6)


def test_adam_with_decay_is_not_adamw():
    mine, twin = parameter_of(301, torch.float32), parameter_of(301, torch.float32)
    for parameter, optimizer in ((mine, OffloadAdam([mine], weight_decay=0.1)), (twin, OffloadAdamW([twin], weight_decay=0.1))):
        for gradient in gradients_for(parameter, 5):
            parameter.grad = gradient
            optimizer.step()
    assert not torch.allclose(mine, twin, rtol=1e-5, atol=1e-6)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=2000, deadline=None)
def test_split_then_join_gives_the_master_back(bits):
    value = np.array([bits], np.uint32).view(np.float32)
    words, rest = halves.split_words(value)
    back = halves.join_words(words, rest).view(np.uint32)[0]
    if np.isnan(value[0]):
        assert np.isnan(np.array([back], np.uint32).view(np.float32)[0])
    else:
        assert back == bits
    word, low = compiled.split(np.uint32(bits))
    assert (word, low) == (words[0], rest[0])
    assert compiled.join(np.uint32(word), np.uint32(low)) == back


@pytest.mark.parametrize("low", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_split_and_join_on_every_high_half(low):
    bits = (np.arange(65536, dtype=np.uint32) << 16) | np.uint32(low)
    values = bits.view(np.float32)
    words, rest = halves.split_words(values.copy())
    nan = np.isnan(values)
    assert np.array_equal(halves.join_words(words, rest).view(np.uint32)[~nan], bits[~nan])
    nearest = torch.from_numpy(words.view(np.int16).copy()).view(torch.bfloat16).float().numpy()
    assert np.isnan(nearest[nan]).all() and not np.isnan(nearest[~nan]).any()
    finite = np.isfinite(values) & np.isfinite(nearest)
    with np.errstate(invalid="ignore"):
        spacing = np.abs(((bits & 0xFFFF0000) + 0x10000).view(np.float32) - (bits & 0xFFFF0000).view(np.float32))
    with np.errstate(invalid="ignore"):
        assert (np.abs(values - nearest)[finite] <= spacing[finite] / 2).all()


@given(st.integers(0, 65535), st.integers(0, 65535))
@settings(max_examples=2000, deadline=None)
def test_join_never_makes_a_nan_of_a_number(word, rest):
    """Also for a pair that no split gives: a weight that somebody set, beside a low half that is stale."""
    weight = torch.tensor([word - 65536 if word > 32767 else word], dtype=torch.int16).view(torch.bfloat16)
    master = halves.join_words(np.array([word], np.uint16), np.array([rest], np.uint16))
    assert np.isnan(master[0]) == bool(weight.isnan()[0]) or not weight.isfinite()[0]
    assert compiled.join(np.uint32(word), np.uint32(rest)) == master.view(np.uint32)[0]


@pytest.mark.parametrize("word", [0x0000, 0x8000])
def test_join_of_a_zero_weight_and_a_stale_low_half_is_zero(word):
    for rest in (0x8000, 0xFFFF):
        assert compiled.join(np.uint32(word), np.uint32(rest)) == word << 16


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_a_gradient_that_is_not_finite_changes_nothing_and_says_so(dtype, bad):
    parameters = [torch.nn.Parameter(torch.randn(50).to(dtype)) for _ in range(3)]
    optimizer = OffloadAdamW(parameters, lr=0.1)
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    before = [parameter.detach().clone() for parameter in parameters]
    state = optimizer.state_dict()["state"]
    parameters[1].grad[17] = bad
    with pytest.warns(UserWarning, match=r"parameter 1 of group 0.*not finite.*Skipped so far: 1"):
        optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, parameters, strict=True))
    again = optimizer.state_dict()["state"]
    assert all(torch.equal(state[i][name], again[i][name]) for i in state for name in state[i])
    assert optimizer.stats()["skipped_steps"] == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_largest_number_is_finite(dtype):
    parameter = torch.nn.Parameter(torch.zeros(9, dtype=dtype))
    optimizer = OffloadAdamW([parameter], lr=0.1)
    parameter.grad = torch.full_like(parameter, torch.finfo(dtype).max)
    optimizer.step()
    assert optimizer.stats()["skipped_steps"] == 0


def test_a_tiny_learning_rate_leaves_weights_finite_and_unchanged():
    """Case 118."""
    parameter = parameter_of(100, torch.float32)
    before = parameter.detach().clone()
    optimizer = OffloadAdamW([parameter], lr=1e-20, weight_decay=0)
    for gradient in gradients_for(parameter, 3):
        parameter.grad = gradient
        optimizer.step()
    assert torch.equal(parameter.detach(), before)


def loop(weight, gradient, *, scale=1.0, group=None, step=3):
    """The loop by itself on one span: new weight, exp_avg, exp_avg_sq and the master (16-bit) of moments that start at 0.25."""
    n = weight.numel()
    group = group or {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "maximize": False}
    weight, kind = weight.clone(), str(weight.dtype).removeprefix("torch.")
    part = cut([(0, n, kind)], n)[0]
    fields = update.fields(part, np.zeros(part.record_bytes(False), np.uint8), False)
    fields.exp_avg[:], fields.exp_avg_sq[:] = 0.25, 0.25
    if kind == "float16":
        fields.master[:] = weight.float().numpy()
    table = update.table(part)
    table[0, update.WEIGHT_ADDRESS], table[0, update.GRADIENT_ADDRESS] = weight.data_ptr(), gradient.data_ptr()
    table[0, update.GRADIENT_FLOAT32] = gradient.dtype != weight.dtype
    values = np.array([update.scalars(group, step, decoupled=True, scale=scale)], np.float32)
    kernels.choose("auto").update(table, values, *fields, 0, n)
    return weight, fields.exp_avg, fields.exp_avg_sq, *([] if fields.master is None else [fields.master])


def same(a, b):
    return all(torch.equal(x, y) if isinstance(x, torch.Tensor) else np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("size", [1, 17, 2047, 2049, 5000])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_float32_gradient_of_a_16_bit_parameter(dtype, size):
    weight = parameter_of(size, dtype).detach()
    gradient = torch.randn(size, generator=torch.Generator().manual_seed(5))
    rounded = gradient.to(dtype)
    assert same(loop(weight, rounded), loop(weight, rounded.float()))
    if size > 1:
        assert not same(loop(weight, rounded), loop(weight, gradient)), "the float32 gradient's low bits count"
    # the first moment shows the gradient that was used: m = 0.25 + 0.1 (g - 0.25), in float32
    want = np.float32(0.25) + np.float32(1 - 0.9) * (gradient.numpy() - np.float32(0.25))
    assert np.array_equal(loop(weight, gradient)[1], want)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_gradient_scale_is_one_float32_product(dtype, wide, maximize):
    weight = parameter_of(3000, dtype).detach()
    gradient = torch.randn(3000, generator=torch.Generator().manual_seed(6))
    gradient = gradient if wide else gradient.to(dtype)
    group = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1, "maximize": maximize}
    scale = float(np.float32(1 / 3))
    scaled = gradient.float() * scale
    assert same(loop(weight, gradient, scale=scale, group=group), loop(weight, scaled, group=group))
    assert not same(loop(weight, gradient, scale=scale, group=group), loop(weight, gradient, group=group))
