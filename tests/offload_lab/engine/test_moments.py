"""Moments in 16 and 8 bits: what is rounded and how, the same bits everywhere, and the dtype that was asked for."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import OffloadAdamW, OffloadPolicy, moments
from offload_lab.partition import QUANTUM, state_bytes
from offload_lab.state_bytes import training_bytes

FORMATS = {"bfloat16": (np.uint16, np.uint16), "int8": (np.int8, np.uint8)}
DTYPES = {"bfloat16": (torch.bfloat16, torch.bfloat16), "int8": (torch.int8, torch.uint8)}
ALL_CHANCES = np.arange(65536, dtype=np.uint32)

finite = st.floats(-(2.0**100), 2.0**100, width=32).map(np.float32)


def moment_names(state_dtype):
    return ("exp_avg_8bit", "exp_avg_sq_8bit") if state_dtype == "int8" else ("exp_avg", "exp_avg_sq")


@given(finite)
@settings(deadline=None)
def test_bfloat16_takes_the_two_neighbours_with_the_chances_that_keep_the_mean(value):
    stored, scale = moments.closed(np.full(65536, value), np.dtype(np.uint16), ALL_CHANCES)
    assert scale is None
    results = moments.opened(stored, None).astype(np.float64)
    assert len(set(results)) <= 2
    assert results.mean() == value, "the mean over all chances is exact"
    bits = np.float32(value).view(np.uint32)
    if not bits & 0xFFFF:
        assert set(results) == {float(value)}, "what bfloat16 has is kept"


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=QUANTUM), st.sampled_from([1e-20, 1e-3, 1.0, 1e20]))
@settings(deadline=None)
def test_8_bits_take_the_two_neighbours_with_the_chances_that_keep_the_mean(shares, unit):
    """Each of 64 evenly spaced chances once: the mean is within a 64th of the distance of the neighbours."""
    values = (np.array(shares, np.float32) * np.float32(unit)).astype(np.float32)
    for dtype, most, power, signs in ((np.int8, 127, 2, (1, -1)), (np.uint8, 255, 4, (1,))):
        for sign in signs:
            signed = values * np.float32(sign)
            results = []
            for chance in range(512, 65536, 1024):
                stored, scale = moments.closed(signed, np.dtype(dtype), np.full(values.shape, chance, np.uint32))
                assert scale.shape == (1,) and scale[0] == values.max() and stored.dtype == dtype
                assert np.abs(stored.astype(int)).max() <= most
                results.append(moments.opened(stored, scale).astype(np.float64))
            results = np.array(results)
            top = float(values.max()) or 1.0
            code = np.floor((values.astype(np.float64) / top) ** (1 / power) * most)
            gap = ((np.minimum(code + 2, most + 1) / most) ** power - (np.maximum(code - 1, 0) / most) ** power) * top
            rising = values > 0
            if dtype == np.uint8:
                assert (results[:, rising] > 0).all() or values[rising].min() < 1e-36, "never zero for what is not"
                rising &= code >= 1  # below the first code it is rounded up, always
            assert (np.abs(results - signed)[:, rising] <= gap[rising]).all()
            assert (np.abs(results.mean(axis=0) - signed)[rising] <= gap[rising] / 64 + 1e-6 * top * 2**-14).all()
            assert not results[:, values == 0].any()
            largest = values == values.max()
            assert (np.abs(results[:, largest]) == top).all() or not rising.any(), "the largest of a block is exact"


@given(st.lists(finite, min_size=1, max_size=700))
@settings(deadline=None)
def test_closing_what_was_opened_changes_nothing(values):
    """What a checkpoint holds and a record holds are the same, however often it is saved and loaded, converted or not."""
    for dtype in (np.uint16, np.int8, np.uint8):
        source = np.array(values, np.float32)
        source = np.abs(source) if dtype == np.uint8 else source
        stored, scale = moments.closed(source, np.dtype(dtype))
        again, scale_again = moments.closed(moments.opened(stored, scale), np.dtype(dtype))
        if dtype == np.uint16:
            assert np.array_equal(stored, again)
        else:
            assert np.array_equal(scale, scale_again)
            assert np.array_equal(moments.opened(stored, scale), moments.opened(again, scale_again))


@pytest.mark.parametrize("dtype", [np.uint16, np.int8, np.uint8])
def test_infinity_and_zero_do_not_break_a_block(dtype):
    values = np.zeros(600, np.float32)
    values[3], values[300] = 3e38, np.inf
    stored, scale = moments.closed(values, np.dtype(dtype))
    back = moments.opened(stored, scale)
    assert not np.isnan(back).any()
    assert back[3] == pytest.approx(3e38, rel=0.01) and back[300] >= 3e38
    assert not back[QUANTUM * 2 :].any() and not np.delete(back, [3, 300]).any()


def test_the_hash_looks_random():
    bits = moments.hashed(12345, 0, 100_000)
    halves = np.concatenate([bits & 0xFFFF, bits >> 16]).astype(np.float64) / 65536
    assert abs(halves.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(halves[:-1], halves[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef((bits & 0xFFFF).astype(float), (bits >> 16).astype(float))[0, 1]) < 0.015
    other = moments.hashed(12346, 0, 100_000)
    assert abs(np.corrcoef(bits[1:].astype(float), other[1:].astype(float))[0, 1]) < 0.015
    assert np.array_equal(moments.hashed(12345, 70_000, 10), bits[70_000:70_010])


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_every_policy_gives_the_same_bits(state_dtype, dtype, model, disk, adamw, train):
    reference = None
    for name, policy in {
        "ram": OffloadPolicy(state_dtype=state_dtype),
        "ram, small partitions": OffloadPolicy(state_dtype=state_dtype, partition_size=333),
        "ram, torch": OffloadPolicy(state_dtype=state_dtype, partition_size=600, kernel="torch"),
        "disk": disk("a", state_dtype=state_dtype),
        "disk, half in RAM": disk("b", state_dtype=state_dtype, ram_budget=100_000, partition_size=700),
        "disk, scratch": disk("c", state_dtype=state_dtype, durability="checkpoint", partition_size=777),
        "disk, update in forward": disk("d", state_dtype=state_dtype, overlap="forward", partition_size=500),
        "disk, update in backward": disk("e", state_dtype=state_dtype, overlap="backward", partition_size=500),
    }.items():
        module = model(dtype)
        optimizer = adamw(module, policy)
        train(module, optimizer, 4)
        state = optimizer.state_dict()["state"]
        found = [*module.parameters(), *(state[i][key] for i in sorted(state) for key in sorted(state[i]))]
        found = [tensor.detach().clone() for tensor in found]
        reference = reference or found
        assert all(torch.equal(a, b) for a, b in zip(reference, found, strict=True)), name


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_a_checkpoint_keeps_dtype_bits_and_the_way_on(state_dtype, dtype, model, disk, adamw, train):
    """Cases 10, 11 and 46: what was asked for is the dtype of every state tensor, RAM stays, and the run goes on the same."""
    straight = model(dtype)
    whole = adamw(straight, OffloadPolicy(state_dtype=state_dtype, partition_size=400))
    train(straight, whole, 4)
    ram, saved = whole.memory()["ram"], whole.state_dict()
    signed, unsigned = moment_names(state_dtype)
    for entry in saved["state"].values():
        assert (entry[signed].dtype, entry[unsigned].dtype) == DTYPES[state_dtype]
        assert {"exp_avg", "exp_avg_sq"} & entry.keys() == ({"exp_avg", "exp_avg_sq"} if state_dtype == "bfloat16" else set())
    halfway = model(dtype, seed=7)
    resumed = adamw(halfway, disk(state_dtype=state_dtype, partition_size=600))
    halfway.load_state_dict(straight.state_dict())
    resumed.load_state_dict(saved)
    there = resumed.state_dict()["state"]
    assert all(torch.equal(there[i][name], saved["state"][i][name]) for i in there for name in there[i])
    whole.load_state_dict(saved)
    assert whole.memory()["ram"] == ram
    train(straight, whole, 4, start=4)
    train(halfway, resumed, 4, start=4)
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), halfway.parameters(), strict=True))
    resumed.close()
    again = model(dtype, seed=9)
    adamw(again, disk(state_dtype=state_dtype, existing="resume"))
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), halfway.parameters(), strict=True))


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_a_step_that_is_taken_back_and_done_again_gives_the_same_bits(state_dtype, dtype, model, disk, adamw, train):
    """What is rounded at random is so by the step's number: a second time it is rounded the same way."""
    module = model(dtype)
    optimizer = adamw(module, disk(state_dtype=state_dtype, partition_size=500))
    train(module, optimizer, 3)
    third = optimizer.state_dict()["state"]
    optimizer.rollback()
    assert optimizer.stats()["steps"] == 2
    train(module, optimizer, 1, start=2)
    again = optimizer.state_dict()["state"]
    assert all(torch.equal(third[i][name], again[i][name]) for i in third for name in third[i])


@pytest.mark.parametrize("weights", ["float32", "bfloat16", "float16"])
def test_bytes_fall_as_promised(weights):
    n, taken = 300_000, {}
    for state_dtype in ("float32", "bfloat16", "int8"):
        parameter = torch.nn.Parameter(torch.zeros(n, dtype=getattr(torch, weights)))
        with OffloadAdamW([parameter], offload=OffloadPolicy(state_dtype=state_dtype)) as optimizer:
            taken[state_dtype] = optimizer.memory()["ram"]
            promised = state_bytes(weights, state_dtype) * n
            planned = training_bytes(n, weights, "ram", state_dtype=state_dtype)
            assert planned.steady_bytes - 2 * planned.ram["weights"] == pytest.approx(promised, abs=8)
            on_disk = training_bytes(n, weights, "disk", state_dtype=state_dtype).disk
            assert on_disk["state, two generations"] // 2 == pytest.approx(promised, abs=8)
            assert promised <= taken[state_dtype] <= promised + 4500 * optimizer.stats()["partitions"]
    assert state_bytes(weights, "bfloat16") == state_bytes(weights) - 4
    assert state_bytes(weights, "int8") == state_bytes(weights) - 6 + 8 / QUANTUM


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_the_second_moment_falls_although_a_step_of_it_is_less_than_half_a_distance(state_dtype):
    """To the nearest it would stay where it is for ever."""
    parameter = torch.nn.Parameter(torch.zeros(4096))
    optimizer = OffloadAdamW([parameter], lr=1e-6, offload=OffloadPolicy(state_dtype=state_dtype))
    scale = torch.linspace(0.1, 1, 4096)
    parameter.grad = scale.clone()
    optimizer.step()
    parameter.grad = torch.zeros(4096)
    parameter.grad[::64] = 1.0  # so that each block keeps its scale
    for _ in range(200):
        optimizer.step()
    (entry,) = optimizer.state_dict()["state"].values()
    if state_dtype == "int8":
        v = torch.from_numpy(moments.opened(entry["exp_avg_sq_8bit"].numpy(), entry["exp_avg_sq_scale"].numpy()))
    else:
        v = entry["exp_avg_sq"].float()
    quiet = torch.ones(4096, dtype=torch.bool)
    quiet[::64] = False
    expected = (0.001 * scale**2 * 0.999**200)[quiet]
    if state_dtype == "int8":
        # Where a value lies far below its block's largest its code is 1, which is rounded up to.
        wanted = expected > 0.001 * 0.2
        assert (v[quiet][wanted].mean() / expected[wanted].mean()).item() == pytest.approx(1, abs=0.05)
    else:
        assert (v[quiet].mean() / expected.mean()).item() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_a_float32_checkpoint_is_taken_over_to_the_nearest_and_goes_back(state_dtype, model, adamw, train):
    source = model()
    twin = torch.optim.AdamW(source.parameters(), lr=0.01)
    train(source, twin, 5)
    target = model()
    optimizer = adamw(target, OffloadPolicy(state_dtype=state_dtype, partition_size=500))
    optimizer.load_state_dict(twin.state_dict())
    full = adamw(model(), OffloadPolicy(partition_size=300))
    full.load_state_dict(optimizer.state_dict())
    relative = {"bfloat16": 2**-8, "int8": 0.02}[state_dtype]
    for mine, theirs in zip(full.state_dict()["state"].values(), twin.state_dict()["state"].values(), strict=True):
        for name in ("exp_avg", "exp_avg_sq"):
            assert mine[name].dtype == torch.float32
            if mine[name].numel():
                bound = relative * theirs[name].abs().max()
                assert (mine[name] - theirs[name]).abs().max() <= bound


def test_8_bit_codes_are_never_taken_for_values(model, adamw, train):
    module = model()
    optimizer = adamw(module, OffloadPolicy(state_dtype="int8"))
    train(module, optimizer, 1)
    twin = torch.optim.AdamW(module.parameters())
    twin.load_state_dict(optimizer.state_dict())
    with pytest.raises(KeyError, match="exp_avg"):
        twin.step()


@pytest.mark.parametrize(
    "change, named",
    [
        (lambda entry: entry.pop("exp_avg_scale"), r"exp_avg_8bit of parameter 0 .*torch.int8 with 2 float32"),
        (lambda entry: entry.update(exp_avg_sq_scale=torch.zeros(5)), "exp_avg_sq_8bit of parameter 0 .*2 float32"),
        (lambda entry: entry.update(exp_avg_8bit=torch.zeros(300, dtype=torch.uint8)), "exp_avg_8bit of parameter 0"),
        (lambda entry: entry.update(exp_avg_8bit=torch.zeros(7, dtype=torch.int8)), r"has shape \(7,\)"),
        (lambda entry: entry.pop("exp_avg_sq_8bit"), "has no 'exp_avg_sq'"),
    ],
)
def test_a_damaged_checkpoint_is_named_and_changes_nothing(change, named):
    parameter = torch.nn.Parameter(torch.ones(300))
    optimizer = OffloadAdamW([parameter], offload=OffloadPolicy(state_dtype="int8"))
    parameter.grad = torch.linspace(-1, 1, 300)
    optimizer.step()
    before, damaged = optimizer.state_dict(), optimizer.state_dict()
    change(damaged["state"][0])
    with pytest.raises(ValueError, match=named):
        optimizer.load_state_dict(damaged)
    after = optimizer.state_dict()
    assert all(torch.equal(after["state"][0][name], before["state"][0][name]) for name in before["state"][0])


def test_8_bits_and_amsgrad_are_refused_at_construction():
    parameter = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match=r"parameter 0 of group 0.*amsgrad"):
        OffloadAdamW([parameter], amsgrad=True, offload=OffloadPolicy(state_dtype="int8"))
    optimizer = OffloadAdamW([parameter], offload=OffloadPolicy(state_dtype="int8"))
    with pytest.raises(ValueError, match=r"parameter 0 of group 1.*amsgrad"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3))], "amsgrad": True})
    assert len(optimizer.param_groups) == 1


def test_a_directory_of_another_state_dtype_is_refused(disk):
    parameter = torch.nn.Parameter(torch.ones(300))
    with OffloadAdamW([parameter], offload=disk(state_dtype="bfloat16")) as optimizer:
        parameter.grad = torch.ones(300)
        optimizer.step()
    with pytest.raises(ValueError, match="state_dtype=bfloat16, here it is float32"):
        OffloadAdamW([parameter], offload=disk(existing="resume"))
    with pytest.raises(ValueError, match=r"OffloadPolicy\(state_dtype='fp8'\)"):
        OffloadPolicy(state_dtype="fp8")


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_a_model_learns_about_as_well(state_dtype, weights):
    """Not AdamW, but good for what it is for: the loss after training, against that of float32 state."""

    def trained(policy):
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)).to(weights)
        optimizer = OffloadAdamW(net.parameters(), lr=3e-3, offload=policy)
        inputs = torch.randn(256, 16).to(weights)
        targets = torch.sin(inputs.float() @ torch.randn(16, 4))
        losses = []
        for _ in range(300):
            optimizer.zero_grad()
            loss = (net(inputs).float() - targets).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 3
        return losses[-1]

    limit = {"bfloat16": 1.1, "int8": 1.3}[state_dtype]
    assert trained(OffloadPolicy(state_dtype=state_dtype)) < limit * trained(OffloadPolicy())
