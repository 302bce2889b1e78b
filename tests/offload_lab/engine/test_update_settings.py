"""Settings of every group and step, as numbers and as tensors, against `torch.optim` in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import OffloadAdam, OffloadAdamW, OffloadPolicy

TWINS = {OffloadAdam: torch.optim.Adam, OffloadAdamW: torch.optim.AdamW}


def parameter_of(size, dtype=torch.float32):
    return torch.nn.Parameter(torch.randn(size, generator=torch.Generator().manual_seed(size)).to(dtype))


def tensor_or_number(value, dtype):
    return value if dtype is None else torch.tensor(value, dtype=dtype)


number_kinds = st.sampled_from([None, torch.float32, torch.float64])
group_settings = st.fixed_dictionaries(
    {
        "lr": st.sampled_from([0.0, 1e-5, 1e-3, 0.1]),
        # beta1 squared below beta2, or both zero: else m / sqrt(v) has no bound, and a rounding of v may be any change of it.
        "betas": st.sampled_from([(0.9, 0.999), (0.8, 0.9), (0.0, 0.5), (0.95, 0.95), (0.0, 0.0)]),
        "eps": st.sampled_from([1e-10, 1e-8, 1e-3]),
        "weight_decay": st.sampled_from([0.0, 0.01, 0.5]),
        "maximize": st.booleans(),
        "amsgrad": st.booleans(),
    }
)
# what a user changes between two steps: a factor for every lr, and now and then another beta, eps or decay
changes = st.lists(
    st.fixed_dictionaries(
        {"factor": st.sampled_from([1.0, 0.5, 2.0, 0.0])},
        optional={
            "betas": st.sampled_from([(0.9, 0.99), (0.5, 0.5)]),
            "eps": st.just(1e-6),
            "weight_decay": st.just(0.1),
            "maximize": st.booleans(),
        },
    ),
    min_size=1,
    max_size=6,
)


@given(
    st.sampled_from(list(TWINS)),
    st.lists(group_settings, min_size=1, max_size=3),
    changes,
    number_kinds,
    number_kinds,
    st.sampled_from([1e-3, 1.0, 30.0]),
    st.sampled_from(["numba", "torch"]),
)
@settings(max_examples=200, deadline=None)
def test_every_setting_of_every_group_and_step_is_that_of_the_twin(ours, groups, changes, lr_kind, beta_kind, size, kernel):
    mine = [parameter_of(60 + i) for i in range(len(groups))]
    twins = [torch.nn.Parameter(p.detach().double()) for p in mine]

    def build(group, parameter):
        betas = tuple(tensor_or_number(beta, beta_kind) for beta in group["betas"])
        return {**group, "params": [parameter], "lr": tensor_or_number(group["lr"], lr_kind), "betas": betas}

    def plain(group):
        """The same numbers for the twin: what a float32 tensor holds, as a float."""
        return {**group, "lr": float(group["lr"]), "betas": tuple(map(float, group["betas"]))}

    policy = OffloadPolicy(partition_size=50, kernel=kernel)
    optimizer = ours([build(g, p) for g, p in zip(groups, mine, strict=True)], offload=policy)
    twin = TWINS[ours]([plain(build(g, p)) for g, p in zip(groups, twins, strict=True)], foreach=False)
    generator = torch.Generator().manual_seed(0)
    for change in changes:
        for group, reference in zip(optimizer.param_groups, twin.param_groups, strict=True):
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].mul_(change["factor"])
            else:
                group["lr"] *= change["factor"]
            for name in change.keys() - {"factor"}:
                group[name] = change[name]
            reference.update({name: plain(group)[name] for name in ("lr", "betas", "eps", "weight_decay", "maximize")})
        for parameter, reference in zip(mine, twins, strict=True):
            parameter.grad = torch.randn(parameter.shape, generator=generator) * size
            reference.grad = parameter.grad.double()
        optimizer.step()
        twin.step()
    for parameter, reference, group in zip(mine, twins, groups, strict=True):
        # Each step rounds the weight (below 8) and an update of at most 0.4 / sqrt(1 - beta2) < 13 a few times.
        bound = len(changes) * 2**-24 * (16 + 16 * 13 * max(4 * group["lr"], 0.1))
        assert (parameter.double() - reference).abs().max() <= bound
    optimizer.close()


@pytest.mark.parametrize("ours", list(TWINS))
def test_a_learning_rate_tensor_that_is_changed_in_place_is_honoured(ours):
    """Case 31: between two steps, through the tensor that the caller kept."""
    rate = torch.tensor(0.1)
    mine, twin = parameter_of(40), parameter_of(40)
    a, b = ours([mine], lr=rate), TWINS[ours]([twin], lr=0.1, foreach=False)
    for value in (0.1, 0.5, 0.0, 0.01):
        rate.fill_(value)
        b.param_groups[0]["lr"] = value
        mine.grad = torch.ones(40)
        twin.grad = torch.ones(40)
        before = mine.detach().clone()
        a.step()
        b.step()
        assert torch.equal(before, mine.detach()) == (value == 0.0)
        assert torch.allclose(mine, twin, rtol=1e-5, atol=1e-6)
    assert a.param_groups[0]["lr"] is rate


@pytest.mark.parametrize("scheduler", [torch.optim.lr_scheduler.LambdaLR, torch.optim.lr_scheduler.ExponentialLR])
def test_a_scheduler_on_a_tensor_changes_the_applied_rate(scheduler):
    argument = 0.5 if scheduler is torch.optim.lr_scheduler.ExponentialLR else lambda epoch: 0.5**epoch
    mine, twin = parameter_of(40), parameter_of(40)
    a = OffloadAdamW([mine], lr=torch.tensor(0.1))
    b = torch.optim.AdamW([twin], lr=0.1, foreach=False)
    schedulers = [scheduler(a, argument), scheduler(b, argument)]
    for _ in range(4):
        mine.grad, twin.grad = torch.ones(40), torch.ones(40)
        a.step()
        b.step()
        for each in schedulers:
            each.step()
    assert float(a.param_groups[0]["lr"]) == pytest.approx(0.1 / 16)
    assert torch.allclose(mine, twin, rtol=1e-5, atol=1e-6)


def test_loaded_tensors_are_not_those_of_the_checkpoint():
    """Case 31: two optimizers that load one checkpoint do not share a learning rate, nor a beta."""
    source = OffloadAdamW([parameter_of(9)], lr=torch.tensor(0.25), betas=(torch.tensor(0.5), torch.tensor(0.75)))
    saved = source.state_dict()
    target = OffloadAdamW([parameter_of(9)], lr=torch.tensor(0.1))
    target.load_state_dict(saved)
    group = target.param_groups[0]
    assert float(group["lr"]) == 0.25 and tuple(map(float, group["betas"])) == (0.5, 0.75)
    group["lr"].fill_(7.0)
    group["betas"][0].fill_(0.0)
    assert float(saved["param_groups"][0]["lr"]) == 0.25 == float(source.param_groups[0]["lr"])
    assert float(source.param_groups[0]["betas"][0]) == 0.5


def test_a_resumed_run_fills_the_tensors_that_the_caller_holds(disk):
    parameter = parameter_of(9)
    with OffloadAdamW([parameter], lr=0.25, betas=(0.5, 0.75), offload=disk()) as first:
        parameter.grad = torch.ones(9)
        first.step()
    rate, beta = torch.tensor(0.1), torch.tensor(0.9)
    with OffloadAdamW([parameter], lr=rate, betas=(beta, torch.tensor(0.99)), offload=disk(existing="resume")) as second:
        assert second.param_groups[0]["lr"] is rate and float(rate) == 0.25
        assert second.param_groups[0]["betas"][0] is beta and float(beta) == 0.5


@pytest.mark.parametrize(
    "options, named",
    [
        ({"lr": torch.tensor([0.1, 0.2])}, "Tensor lr must be 1-element"),
        ({"betas": (torch.tensor([0.1, 0.2]), torch.tensor(0.9))}, r"Tensor betas\[0\] must be 1-element"),
        ({"betas": (0.9, torch.tensor([0.1, 0.2]))}, r"Tensor betas\[1\] must be 1-element"),
        ({"lr": torch.tensor(-1.0)}, "Invalid learning rate"),
        ({"lr": torch.tensor(float("nan"))}, "Invalid learning rate"),
        ({"betas": (torch.tensor(1.0), torch.tensor(0.9))}, "Invalid beta parameter at index 0"),
    ],
)
def test_tensors_that_are_no_setting_are_one_error_at_construction(options, named):
    with pytest.raises(ValueError, match=named):
        OffloadAdamW([parameter_of(3)], **options)
