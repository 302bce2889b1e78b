"""Torch's contract: what a user of `torch.optim.AdamW` may rely on, and the cases in which other offloaders broke it."""

import copy
import inspect
import pickle

import pytest
import torch
from torch.optim import lr_scheduler

from offload_lab import OffloadAdam, OffloadAdamW, OffloadPolicy


@pytest.fixture(params=["ram", "disk"])
def policy(request, disk):
    return OffloadPolicy() if request.param == "ram" else disk()


@pytest.mark.parametrize("ours, theirs", [(OffloadAdam, torch.optim.Adam), (OffloadAdamW, torch.optim.AdamW)])
def test_signature_and_defaults_are_torchs(ours, theirs):
    """Case 32."""
    mine, twin = inspect.signature(ours.__init__).parameters, inspect.signature(theirs.__init__).parameters
    assert isinstance(ours([torch.nn.Parameter(torch.zeros(1))]), torch.optim.Optimizer)
    assert list(mine)[:-1] == [name for name in twin if name in mine] and list(mine)[-1] == "offload"
    assert set(twin) <= set(mine)
    assert all(mine[name].default == twin[name].default and mine[name].kind == twin[name].kind for name in twin)
    parameter = torch.nn.Parameter(torch.zeros(1))
    assert set(theirs([parameter]).defaults) <= set(ours([parameter]).defaults)


@pytest.mark.parametrize(
    "build",
    [
        lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.5**epoch),
        lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=10),
        lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=10),
        lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0),
    ],
    ids=["LambdaLR", "CosineAnnealingLR", "OneCycleLR", "ReduceLROnPlateau"],
)
def test_schedulers_change_the_applied_rate(build, policy, model, train, adamw):
    """Case 23."""
    mine, twin = model(), model()
    a, b = adamw(mine, policy), torch.optim.AdamW(twin.parameters(), lr=0.01)
    schedulers = build(a), build(b)
    rates = set()
    for step in range(8):
        train(mine, a, 1, start=step)
        train(twin, b, 1, start=step)
        for scheduler in schedulers:
            scheduler.step(*([1.0] if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau) else []))
        assert a.param_groups[0]["lr"] == b.param_groups[0]["lr"]
        rates.add(a.param_groups[0]["lr"])
    assert len(rates) > 2 and a.defaults["lr"] == 0.01
    assert all(torch.allclose(x, y, rtol=1e-4, atol=1e-5) for x, y in zip(mine.parameters(), twin.parameters(), strict=True))


def test_groups_keep_their_own_settings(policy, model, train):
    """Cases 25, 28 and 29: odd and even parameters, one rate zero, and a group of frozen parameters only."""
    mine, twin = model(), model()
    optimizers = []
    for module, build in ((mine, lambda g: OffloadAdamW(g, offload=policy)), (twin, torch.optim.AdamW)):
        parameters = list(module.parameters())
        frozen = torch.nn.Parameter(torch.ones(4), requires_grad=False)
        groups = [
            {"params": parameters[::2], "lr": 0.01, "weight_decay": 0.1},
            {"params": parameters[1::2], "lr": 0.0, "weight_decay": 0.0},
            {"params": [frozen], "lr": 1.0},
        ]
        optimizers.append(build(groups))
        assert optimizers[-1].param_groups[0]["params"][0] is parameters[0]
    for step in range(5):
        train(mine, optimizers[0], 1, start=step)
        train(twin, optimizers[1], 1, start=step)
    assert all(torch.allclose(x, y, rtol=1e-4, atol=1e-6) for x, y in zip(mine.parameters(), twin.parameters(), strict=True))
    optimizers[0].close()


def test_a_group_added_later_is_trained(policy):
    first, second = torch.nn.Parameter(torch.zeros(1500)), torch.nn.Parameter(torch.zeros(2500))
    with OffloadAdamW([first], lr=0.1, offload=policy) as optimizer:
        first.grad = torch.ones_like(first)
        optimizer.step()
        optimizer.add_param_group({"params": [second], "lr": 0.2, "weight_decay": 0.0})
        second.grad = torch.ones_like(second)
        optimizer.step()
        assert torch.allclose(second, torch.full_like(second, -0.2))
        assert [int(entry["step"]) for entry in optimizer.state_dict()["state"].values()] == [2, 1]
        with pytest.raises(TypeError, match=r"parameter 0 of group 2.*float64"):
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))]})
        assert len(optimizer.param_groups) == 2
        optimizer.step()


def test_a_group_that_is_refused_leaves_the_next_one_right(disk):
    """The refused group's parameter must not be stepped in the place of the one that is added after it."""
    first, large, small = (torch.nn.Parameter(torch.zeros(n)) for n in (500, 90_000, 700))
    with OffloadAdamW([first], lr=0.1, weight_decay=0, offload=OffloadPolicy(tier="ram", ram_budget=100_000)) as optimizer:
        with pytest.raises(ValueError, match="ram_budget is 100,000"):
            optimizer.add_param_group({"params": [large]})
        optimizer.add_param_group({"params": [small]})
        small.grad, large.grad = torch.ones_like(small), torch.ones_like(large)
        optimizer.step()
        assert torch.allclose(small, torch.full_like(small, -0.1), atol=1e-6) and not large.any()


def test_a_parameter_that_is_unfrozen_later_is_trained(policy):
    head, body = torch.nn.Parameter(torch.zeros(10)), torch.nn.Parameter(torch.zeros(2500), requires_grad=False)
    with OffloadAdamW([body, head], lr=0.1, offload=policy) as optimizer:
        head.grad = torch.ones_like(head)
        optimizer.step()
        ram = optimizer.memory()
        body.requires_grad_(True)
        body.grad = torch.ones_like(body)
        optimizer.step()
        assert torch.allclose(body, torch.full_like(body, -0.1), atol=1e-6)
        assert optimizer.memory() != ram


def test_weights_loaded_after_construction_are_kept(policy, model, dtype, adamw, train):
    """Case 5: a step with no gradient and no decay leaves exactly the loaded weights."""
    module, other = model(dtype), model(dtype, seed=7)
    optimizer = adamw(module, policy, weight_decay=0)
    train(module, optimizer, 3)
    module.load_state_dict(other.state_dict())
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.load_state_dict({"state": {}, "param_groups": optimizer.state_dict()["param_groups"]})
    optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), other.parameters(), strict=True))


def test_an_edited_weight_becomes_the_master(policy, dtype):
    """The stale low half of the old master must not shift the new weight: next to the edit, a fresh optimizer agrees."""
    parameter = torch.nn.Parameter(torch.full((1500,), 1.0, dtype=dtype))
    with OffloadAdamW([parameter], lr=0.003, weight_decay=0, betas=(0.0, 0.0), offload=policy) as optimizer:
        for _ in range(3):
            parameter.grad = torch.ones_like(parameter)
            optimizer.step()
        with torch.no_grad():
            parameter.copy_(torch.linspace(2, 4, 1500).to(dtype))
        optimizer.step()
        other = torch.nn.Parameter(torch.linspace(2, 4, 1500).to(dtype))
        fresh = OffloadAdamW([other], lr=0.003, weight_decay=0, betas=(0.0, 0.0))
        for _ in range(2):
            other.grad = torch.ones_like(other)
            fresh.step()
            assert torch.equal(parameter, other)
            optimizer.step()


def test_several_backwards_count_as_their_sum(policy, model, adamw):
    """Case 47, in float64-exact numbers: the gradients are small integers."""
    module = torch.nn.Linear(50, 30, bias=False)
    twin = torch.nn.Linear(50, 30, bias=False)
    twin.load_state_dict(module.state_dict())
    a, b = adamw(module, policy), torch.optim.AdamW(twin.parameters(), lr=0.01)
    batches = torch.randint(-3, 4, (4, 8, 50), generator=torch.Generator().manual_seed(0)).float()
    for _ in range(3):
        for batch in batches:
            module(batch).sum().backward()
        twin(batches.reshape(-1, 50)).sum().backward()
        assert torch.equal(module.weight.grad, twin.weight.grad)
        a.step(), b.step()
        a.zero_grad(), b.zero_grad()
    assert torch.allclose(module.weight, twin.weight, rtol=1e-5, atol=1e-6)


def test_the_gradient_is_the_one_at_the_time_of_the_step(disk, adamw):
    """Case 62: shapes with little to compute and much to move; gradients written over right before and right after."""
    parameters = [torch.nn.Parameter(torch.zeros(100_001)) for _ in range(8)]
    twins = [torch.nn.Parameter(torch.zeros(100_001)) for _ in range(8)]
    with OffloadAdamW(parameters, lr=0.1, offload=disk(partition_size=50_000)) as a:
        b = torch.optim.AdamW(twins, lr=0.1)
        handles = [p.register_hook(lambda gradient: gradient * 3) for p in (*parameters, *twins)]
        for step in range(4):
            for mine, twin in zip(parameters, twins, strict=True):
                for parameter in (mine, twin):
                    parameter.grad = None
                    (parameter * (step + 1)).sum().backward()
                    parameter.grad.mul_(-1)
            a.step(), b.step()
            for parameter in (*parameters, *twins):
                parameter.grad.fill_(float(10**6))
        assert all(torch.allclose(x, y, rtol=1e-5, atol=1e-6) for x, y in zip(parameters, twins, strict=True))
        for handle in handles:
            handle.remove()


def test_tied_weights_have_one_master_and_one_update(policy, dtype, tmp_path):
    """Case 68, also where both owners are named."""
    embedding = torch.nn.Embedding(40, 30).to(dtype)
    head = torch.nn.Linear(30, 40, bias=False).to(dtype)
    head.weight = embedding.weight
    reference = torch.nn.Parameter(embedding.weight.detach().clone())
    with OffloadAdamW([embedding.weight, head.weight], lr=0.1, offload=policy) as optimizer:
        assert len(optimizer.param_groups[0]["params"]) == 1
        plain = OffloadAdamW([reference], lr=0.1)
        for _ in range(3):
            head.weight.grad = torch.ones_like(head.weight)
            reference.grad = torch.ones_like(reference)
            optimizer.step(), plain.step()
        assert torch.equal(embedding.weight, reference) and embedding.weight is head.weight
        assert len(optimizer.state_dict()["state"]) == 1


def test_two_parameters_in_one_memory_are_refused():
    shared = torch.zeros(100)
    with pytest.raises(ValueError, match=r"parameter 0 of group 0.*parameter 1 of group 0.*same memory"):
        OffloadAdamW([torch.nn.Parameter(shared[:60]), torch.nn.Parameter(shared[40:])])
    OffloadAdamW([torch.nn.Parameter(shared[:50]), torch.nn.Parameter(shared[50:])])


def test_a_group_that_ends_in_an_empty_tensor_is_updated(policy):
    """Case 65."""
    weight = torch.nn.Parameter(torch.ones(5, 3))
    with OffloadAdamW([weight, torch.nn.Parameter(torch.empty(0))], lr=0.1, offload=policy) as optimizer:
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        assert (weight < 1).all()


@pytest.mark.parametrize("layout", ["transposed", "channels_last", "expanded gradient", "slice"])
def test_layouts_that_are_not_contiguous(policy, layout, dtype):
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(6, 4, 5, 7, generator=generator).to(dtype)
    gradient = torch.randn(6, 4, 5, 7, generator=generator).to(dtype)
    if layout == "transposed":
        mine = torch.nn.Parameter(weight.clone().transpose(0, 3).contiguous().transpose(0, 3))
    elif layout == "channels_last":
        mine = torch.nn.Parameter(weight.clone().to(memory_format=torch.channels_last))
    elif layout == "slice":
        mine = torch.nn.Parameter(torch.cat([weight, weight], dim=3)[..., :7])
    else:
        mine = torch.nn.Parameter(weight.clone())
        gradient = gradient[:1, :1, :1, :1].expand(6, 4, 5, 7)
    plain = torch.nn.Parameter(weight.clone())
    with OffloadAdamW([mine], lr=0.1, offload=policy) as a:
        b = OffloadAdamW([plain], lr=0.1)
        for _ in range(3):
            mine.grad = gradient.clone(memory_format=torch.preserve_format) if layout != "expanded gradient" else gradient
            plain.grad = gradient.contiguous()
            a.step(), b.step()
    assert torch.equal(mine, plain)


def test_the_learning_rate_may_be_a_tensor(policy):
    """Case 31: filled in place by a scheduler, and not aliased by a checkpoint that is loaded."""
    rate = torch.tensor(0.1)
    parameter = torch.nn.Parameter(torch.zeros(3))
    with OffloadAdamW([parameter], lr=rate, weight_decay=0, betas=(0.0, 0.0), offload=policy) as optimizer:
        parameter.grad = torch.ones(3)
        optimizer.step()
        rate.fill_(0.4)
        optimizer.step()
        assert torch.allclose(parameter, torch.full((3,), -0.5), atol=1e-6)
        saved = optimizer.state_dict()
        optimizer.load_state_dict(saved)
        saved["param_groups"][0]["lr"].fill_(9.0)
        assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.4)


def test_a_closure_runs_once_with_gradients_on(policy):
    parameter = torch.nn.Parameter(torch.ones(3))
    with OffloadAdamW([parameter], lr=0.1, offload=policy) as optimizer:

        def closure():
            optimizer.zero_grad()
            loss = parameter.pow(2).sum()
            loss.backward()
            return loss

        assert optimizer.step(closure).item() == 3.0
        assert (parameter < 1).all()


def test_autograd_sees_that_the_step_changed_the_weights():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = OffloadAdamW([parameter], lr=0.1)
    loss = parameter.pow(2).sum()
    parameter.grad = torch.ones(3)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_grad_scaler_unscales_once_and_skips_infinities(policy):
    """Cases 44 and 61."""
    parameter = torch.nn.Parameter(torch.ones(4))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with OffloadAdamW([parameter], lr=0.1, weight_decay=0, betas=(0.0, 0.0), eps=1.0, offload=policy) as optimizer:
        scaler.scale(parameter.sum()).backward()
        scaler.unscale_(optimizer)
        assert torch.equal(parameter.grad, torch.ones(4))
        torch.nn.utils.clip_grad_norm_([parameter], 1e9)
        scaler.step(optimizer)
        scaler.update()
        assert torch.allclose(parameter, torch.full((4,), 0.95))
        before = parameter.detach().clone()
        optimizer.zero_grad()
        scaler.scale(parameter.sum() * float("inf")).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(parameter, before) and scaler.get_scale() == 512.0


@pytest.mark.parametrize("option", ["capturable", "differentiable"])
def test_what_cannot_be_supported_is_one_error_at_construction(option):
    with pytest.raises(ValueError, match=option):
        OffloadAdamW([torch.nn.Parameter(torch.zeros(1))], **{option: True})


@pytest.mark.parametrize(
    "wrong",
    [{"lr": -1.0}, {"eps": -1.0}, {"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}, {"weight_decay": -1.0}, {"lr": float("nan")}],
)
def test_settings_out_of_range_are_refused(wrong, tmp_path):
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "never")
    with pytest.raises(ValueError, match="Invalid"):
        OffloadAdamW([torch.nn.Parameter(torch.zeros(1))], offload=policy, **wrong)
    assert not (tmp_path / "never").exists()


@pytest.mark.filterwarnings("ignore:Complex modules")
@pytest.mark.parametrize("dtype", [torch.complex64, torch.float64])
def test_dtypes_that_have_no_state_are_refused_by_name(dtype):
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2).to(dtype)})
    with pytest.raises(TypeError, match=r"b\.weight is " + str(dtype).removeprefix("torch.")):
        OffloadAdamW(model.named_parameters())


def test_a_sparse_gradient_is_refused_before_anything_changes(policy):
    """Case 67."""
    embedding, linear = torch.nn.Embedding(10, 4, sparse=True), torch.nn.Linear(4, 4)
    with OffloadAdamW([*linear.parameters(), embedding.weight], lr=0.1, offload=policy) as optimizer:
        linear(embedding(torch.tensor([1, 2]))).sum().backward()
        before = linear.weight.detach().clone()
        with pytest.raises(RuntimeError, match=r"parameter 2 of group 0.*sparse"):
            optimizer.step()
        assert torch.equal(linear.weight, before) and optimizer.stats()["steps"] == 0
        embedding.weight.grad = embedding.weight.grad.to_dense()
        optimizer.step()


def test_pickling_and_copying_are_one_clear_error():
    """Case 110."""
    optimizer = OffloadAdamW([torch.nn.Parameter(torch.zeros(1))])
    for attempt in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(TypeError, match="state_dict"):
            attempt(optimizer)


def test_a_model_converted_after_construction_is_refused():
    """Case 115 and its kind."""
    module = torch.nn.Linear(3, 3)
    optimizer = OffloadAdamW(module.parameters())
    module.to(torch.bfloat16)
    module(torch.ones(1, 3, dtype=torch.bfloat16)).sum().backward()
    with pytest.raises(RuntimeError, match=r"was float32 when this optimizer was built and is torch.bfloat16"):
        optimizer.step()
