"""amsgrad: the update, its third moment in records and checkpoints, and groups with and without it side by side."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import OffloadAdam, OffloadAdamW, OffloadPolicy
from offload_lab.partition import BLOCK, QUANTUM, WEIGHT_BYTES, Kind, cut, size_of, state_bytes
from offload_lab.residency import buffer_bytes
from offload_lab.state_bytes import training_bytes
from tests.oracles import MasterAdamW


class MasterAMSGrad(MasterAdamW):
    """MasterAdamW with Reddi et al.'s maximum, written down a second time."""

    largest = 0.0

    def step(self, gradient):
        self.t += 1
        f = np.float32
        b1, b2 = self.betas
        g = gradient.detach().float().numpy()
        self.master = self.master * f(1 - self.lr * self.decay)
        self.m = self.m + f(1 - b1) * (g - self.m)
        self.v = self.v * f(b2) + f(1 - b2) * g * g
        self.largest = np.maximum(self.v, self.largest)
        denominator = np.sqrt(self.largest) / f(np.sqrt(1 - b2**self.t)) + f(self.eps)
        self.master = self.master - f(self.lr / (1 - b1**self.t)) * (self.m / denominator)


def gradients_for(parameter, steps):
    """Large at first and small later, so that the maximum differs from the second moment."""
    generator = torch.Generator().manual_seed(parameter.numel())
    return [(torch.randn(parameter.shape, generator=generator) / (1 + 3 * step)).to(parameter.dtype) for step in range(steps)]


def parameter_of(size, dtype=torch.float32):
    return torch.nn.Parameter(torch.randn(size, generator=torch.Generator().manual_seed(size)).to(dtype))


def stepped(optimizer, parameters, steps, start=0):
    every = [gradients_for(parameter, start + steps) for parameter in parameters]
    for step in range(start, start + steps):
        for parameter, gradients in zip(parameters, every, strict=True):
            parameter.grad = gradients[step].clone()
        optimizer.step()


@pytest.mark.parametrize("ours, theirs", [(OffloadAdam, torch.optim.Adam), (OffloadAdamW, torch.optim.AdamW)])
@pytest.mark.parametrize("betas", [(0.9, 0.99), (0.5, 0.3)])
@pytest.mark.parametrize("maximize", [False, True])
def test_each_equals_its_torch_twin(ours, theirs, betas, maximize):
    mine, twin = parameter_of(3001), torch.nn.Parameter(parameter_of(3001).detach().double())
    plain = torch.nn.Parameter(twin.detach().clone())
    options = {"lr": 0.05, "weight_decay": 0.1, "maximize": maximize, "betas": betas}
    stepped(ours([mine], amsgrad=True, **options), [mine], 8)
    for reference, amsgrad in ((twin, True), (plain, False)):
        optimizer = theirs([reference], amsgrad=amsgrad, foreach=False, **options)
        for gradient in gradients_for(mine, 8):
            reference.grad = gradient.double()
            optimizer.step()
    assert (mine.double() - twin).abs().max() < 8 * 8 * 2**-24
    assert (mine.double() - plain).abs().max() > 1e-4, "the gradients must tell the two algorithms apart"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_is_bit_equal_to_a_float32_master_kept_in_full(dtype):
    parameter = parameter_of(5000, dtype)
    oracle = MasterAMSGrad(parameter, lr=3e-3)
    optimizer = OffloadAdamW([parameter], lr=3e-3, amsgrad=True)
    for gradient in gradients_for(parameter, 10):
        parameter.grad = gradient
        optimizer.step()
        oracle.step(gradient)
        assert torch.equal(parameter.detach(), oracle.weight())
    entry = optimizer.state_dict()["state"][0]
    assert np.array_equal(entry["max_exp_avg_sq"].numpy(), oracle.largest)
    assert np.array_equal(entry["master"].numpy(), oracle.master)


def test_every_policy_gives_the_same_bits(dtype, model, policies, adamw, train):
    reference = None
    for name, policy in policies.items():
        module = model(dtype)
        optimizer = adamw(module, policy, amsgrad=True)
        train(module, optimizer, 4)
        state = optimizer.state_dict()["state"]
        assert all(entry["max_exp_avg_sq"].any() for entry in state.values() if entry["exp_avg"].any())
        found = [*module.parameters(), *(state[i]["max_exp_avg_sq"] for i in sorted(state))]
        found = [tensor.detach().clone() for tensor in found]
        reference = reference or found
        assert all(torch.equal(a, b) for a, b in zip(reference, found, strict=True)), name


@pytest.mark.parametrize("ours, theirs", [(OffloadAdam, torch.optim.Adam), (OffloadAdamW, torch.optim.AdamW)])
def test_state_goes_to_torch_and_back(ours, theirs):
    """Case 13, of amsgrad: our checkpoint loads into the twin and the twin's into ours, and the next step is equal."""
    mine, twin = parameter_of(700), parameter_of(700)
    a = ours([mine], lr=0.01, amsgrad=True, offload=OffloadPolicy(partition_size=300))
    stepped(a, [mine], 5)
    with torch.no_grad():
        twin.copy_(mine)
    b = theirs([twin], lr=0.5, amsgrad=True)
    b.load_state_dict(a.state_dict())
    assert b.param_groups[0]["lr"] == 0.01
    stepped(b, [twin], 3, start=5)
    back = parameter_of(700)
    with torch.no_grad():
        back.copy_(mine)
    c = ours([back], lr=0.5, amsgrad=True)
    c.load_state_dict(a.state_dict())
    stepped(c, [back], 3, start=5)
    stepped(a, [mine], 3, start=5)
    assert torch.equal(back, mine)
    assert torch.allclose(mine, twin, rtol=1e-6, atol=1e-6)
    c.load_state_dict(b.state_dict())
    theirs_state, ours_state = b.state_dict()["state"][0], c.state_dict()["state"][0]
    assert all(torch.equal(theirs_state[name], ours_state[name]) for name in theirs_state)


def test_groups_with_and_without_it_side_by_side(disk):
    sizes = [1, 700, 30, 1500]
    mine, twins = [[parameter_of(size) for size in sizes] for _ in range(2)]

    def groups(parameters):
        return [
            {"params": parameters[0::2], "amsgrad": True, "lr": 0.02},
            {"params": parameters[1::2], "amsgrad": False, "weight_decay": 0.3},
        ]

    optimizer = OffloadAdamW(groups(mine), offload=disk(partition_size=500))
    twin = torch.optim.AdamW(groups(twins), foreach=False)
    stepped(optimizer, mine, 6)
    stepped(twin, twins, 6)
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(mine, twins, strict=True))
    state = optimizer.state_dict()["state"]
    assert ["max_exp_avg_sq" in state[i] for i in range(4)] == [True, True, False, False]
    parts = optimizer._engine.partitions
    assert {part.amsgrad for part in parts} == {False, True}
    again = [torch.nn.Parameter(torch.zeros(size)) for size in sizes]
    optimizer.close()
    with OffloadAdamW(groups(again), offload=disk(existing="resume")) as resumed:
        assert all(torch.equal(a, b) for a, b in zip(mine, again, strict=True))
        there = resumed.state_dict()["state"]
        assert all(torch.equal(there[i][name], state[i][name]) for i in state for name in state[i])
        stepped(resumed, again, 2, start=6)
    stepped(twin, twins, 2, start=6)
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(again, twins, strict=True))


def test_a_group_of_another_kind_that_comes_later_fits_the_buffers_that_are_there(disk):
    first, second = parameter_of(5000), parameter_of(6000)
    optimizer = OffloadAdamW([first], lr=0.01, offload=disk(partition_size=800, ram_budget=80_000))
    stepped(optimizer, [first], 1)
    optimizer.add_param_group({"params": [second], "amsgrad": True})
    stepped(optimizer, [first, second], 2)
    assert optimizer.memory()["ram"] <= 80_000
    assert optimizer.state_dict()["state"][1]["max_exp_avg_sq"].any()
    optimizer.close()


def test_a_checkpoint_of_the_other_kind_is_refused_and_changes_nothing():
    for built in (False, True):
        parameter, other = parameter_of(50), parameter_of(50)
        optimizer = OffloadAdamW([parameter], lr=0.01, amsgrad=built)
        stepped(optimizer, [parameter], 2)
        before = optimizer.state_dict()
        source = torch.optim.AdamW([other], lr=0.7, amsgrad=not built)
        stepped(source, [other], 1)
        with pytest.raises(ValueError, match=f"amsgrad={not built}"):
            optimizer.load_state_dict(source.state_dict())
        after = optimizer.state_dict()
        assert optimizer.param_groups[0]["lr"] == 0.01
        assert all(torch.equal(before["state"][0][n], after["state"][0][n]) for n in before["state"][0])


def test_a_checkpoint_that_does_not_say_it_leaves_each_group_its_own():
    parameters = [parameter_of(20), parameter_of(30)]
    optimizer = OffloadAdamW([{"params": parameters[:1], "amsgrad": True}, {"params": parameters[1:]}])
    stepped(optimizer, parameters, 1)
    saved = optimizer.state_dict()
    for group in saved["param_groups"]:
        del group["amsgrad"]
    with pytest.warns(UserWarning, match="amsgrad"):
        optimizer.load_state_dict(saved)
    assert [group["amsgrad"] for group in optimizer.param_groups] == [True, False]


def test_it_cannot_be_switched_in_a_group_that_has_state():
    parameter = parameter_of(50)
    optimizer = OffloadAdamW([parameter])
    optimizer.param_groups[0]["amsgrad"] = True
    parameter.grad = torch.ones(50)
    before = parameter.detach().clone()
    with pytest.raises(RuntimeError, match=r"amsgrad of parameter 0 of group 0.*can't change"):
        optimizer.step()
    assert torch.equal(parameter.detach(), before)


def test_a_directory_of_the_other_kind_is_refused(disk):
    parameter = parameter_of(50)
    with OffloadAdamW([parameter], amsgrad=True, offload=disk()) as optimizer:
        stepped(optimizer, [parameter], 1)
    with pytest.raises(ValueError, match="amsgrad=True, here it is float32"):
        OffloadAdamW([parameter], offload=disk(existing="resume"))
    with OffloadAdamW([parameter], amsgrad=True, offload=disk(existing="resume")) as optimizer:
        assert optimizer.stats()["steps"] == 1


kinds = st.builds(
    Kind,
    st.sampled_from(["float32", "bfloat16", "float16"]),
    st.sampled_from(["float32", "bfloat16", "int8"]),
    st.booleans(),
).filter(lambda kind: not (kind.amsgrad and kind.state_dtype == "int8"))


@given(st.lists(st.tuples(st.one_of(st.just(1), st.integers(0, 50_000)), kinds), max_size=12), st.integers(1, 40_000))
@settings(max_examples=60, deadline=None)
def test_partitions_of_every_kind_fit_their_buffer_and_cover_every_element(parameters, size):
    partitions = cut([(i, numel, kind) for i, (numel, kind) in enumerate(parameters)], size)
    covered = [0] * len(parameters)
    for index, part in enumerate(partitions):
        assert part.index == index
        at, blocks = 0, 0
        for span, block in zip(part.spans, part.first_blocks(), strict=False):
            assert parameters[span.parameter][1] == part.kind
            assert span.start == covered[span.parameter] and span.offset == at and span.length > 0 and block == blocks
            if part.state_dtype == "int8":
                assert span.start % QUANTUM == 0
            covered[span.parameter] += span.length
            at += span.length
            blocks += -(-span.length // QUANTUM)
        assert at == part.numel <= max(size, QUANTUM)
        end = 0
        for field in part.fields().values():
            assert field.at >= end and field.at % 64 == 0 and field.at - end < 64
            end = field.at + int(field.dtype[1]) * field.numel
        assert end <= part.state_bytes == part.weight_at
        whole = part.record_bytes(True)
        assert part.weight_at + WEIGHT_BYTES[part.dtype] * part.numel <= whole <= buffer_bytes(size)
        assert part.record_bytes(False) <= buffer_bytes(size_of(part)) and whole <= buffer_bytes(size_of(part))
        assert whole % BLOCK == part.state_bytes % BLOCK == 0
    assert covered == [numel for numel, _ in parameters]


@pytest.mark.parametrize("dtype, bytes_each", [("float32", 12), ("bfloat16", 14), ("float16", 16)])
def test_it_takes_four_bytes_more_a_parameter(dtype, bytes_each):
    assert state_bytes(dtype, amsgrad=True) == bytes_each == state_bytes(dtype) + 4
    planned = training_bytes(1_000_000, dtype, "ram", amsgrad=True)
    assert planned.steady_bytes - 2 * planned.ram["weights"] == bytes_each * 1_000_000
    part = cut([(0, 1_000_000, Kind(dtype, amsgrad=True))], 2_000_000)[0]
    assert 0 <= part.state_bytes - bytes_each * 1_000_000 < BLOCK + 256
