"""verify: right where the optimizer is right, wrong where it is made wrong, and no trace of it afterwards."""

import os
from types import SimpleNamespace

import pytest
import torch

import offload_lab
from offload_lab import OffloadAdam, OffloadAdamW, OffloadPolicy, update, verify
from offload_lab.verify import DISTANCE


class Net(torch.nn.Module):
    """With a tied weight, a frozen one, one that is never used, one of no dimension and a buffer that forward changes."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(19, 24)
        self.inner = torch.nn.Linear(24, 24)
        self.head = torch.nn.Linear(24, 19, bias=False)
        self.head.weight = self.embedding.weight
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
        self.unused = torch.nn.Parameter(torch.ones(5))
        self.dropout = torch.nn.Dropout(0.1)
        self.register_buffer("calls", torch.zeros(()))
        self.to(dtype)

    def forward(self, tokens):
        self.calls += 1
        return self.head(self.dropout(torch.tanh(self.inner(self.embedding(tokens)))) * self.scale)


TOKENS = torch.arange(40).view(4, 10) % 19


def loss_of(model):
    logits = model(TOKENS).float()
    return torch.nn.functional.cross_entropy(logits.view(-1, 19), (TOKENS.view(-1) + 1) % 19)


def everything(model):
    """All that verify must not change: weights, buffers, versions, gradients, random numbers."""
    parameters = list(model.parameters())
    return (
        [p.detach().clone() for p in parameters] + [b.clone() for b in model.buffers()] + [torch.get_rng_state()],
        [p._version for p in parameters],
        [p.grad for p in parameters],
        [None if p.grad is None else p.grad.clone() for p in parameters],
    )


def same(before, after):
    return (
        all(torch.equal(a, b) for a, b in zip(before[0], after[0], strict=True))
        and before[1] == after[1]
        and all(a is b for a, b in zip(before[2], after[2], strict=True))
        and all(a is None or torch.equal(a, b) for a, b in zip(before[3], after[3], strict=True))
    )


@pytest.mark.parametrize("kernel", ["numba", "torch"])
@pytest.mark.parametrize("kind", [OffloadAdam, OffloadAdamW])
def test_it_is_as_exact_as_torch_and_leaves_no_trace(kind, kernel, dtype, disk, tmp_path):
    model = Net(dtype)
    loss_of(model).backward()
    before = everything(model)
    for policy in (OffloadPolicy(kernel=kernel), disk(kernel=kernel, partition_size=300, gradients="float32")):
        for options in ({}, {"amsgrad": True, "maximize": True, "lr": 0.02, "weight_decay": 0.1, "betas": (0.8, 0.9)}):
            verdict = verify(model, loss_of, 4, optimizer=kind, policy=policy, **options)
            assert verdict.ok, str(verdict)
            assert 0 < verdict.units < 50 and 0 < verdict.error < 1e-5 and verdict.distance < 1e-4
            assert verdict.kernel.startswith(kernel) and verdict.steps == 4 and verdict.skipped == 0
            assert [p.name for p in verdict.parameters] == [
                "scale",
                "unused",
                "embedding.weight",
                "inner.weight",
                "inner.bias",
            ], "each once; the frozen one not at all"
    assert same(before, everything(model))
    assert os.listdir(tmp_path) == []


def corrupted(field, change):
    def scalars(group, step, **options):
        values = genuine(group, step, **options)
        values[field] = change(values[field], step)
        return values

    genuine = update.scalars
    return scalars


@pytest.mark.parametrize(
    "field, change",
    [
        (update.STEP_SIZE, lambda value, step: value * 1.001),
        (update.STEP_SIZE, lambda value, step: float("nan")),
        (update.DECAY, lambda value, step: 1.0),
        (update.SIGN, lambda value, step: -value),
        (update.BETA2, lambda value, step: value * 1.0001),
        (update.ROOT_CORRECTION2, lambda value, step: 1.0),
        (update.EPS, lambda value, step: 1e-3),
        (update.SCALE, lambda value, step: 1.001 if step == 3 else 1.0),
    ],
)
@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_a_wrong_update_is_found(field, change, weights, monkeypatch):
    monkeypatch.setattr(update, "scalars", corrupted(field, change))
    verdict = verify(Net(weights), loss_of, 5, lr=0.01)
    assert not verdict.ok
    said = str(verdict)
    assert said.startswith("NOT OK: AdamW over 5 steps") and "is what rounding explains" in said
    assert verdict.worst.name in said


def test_a_weight_that_is_not_its_masters_rounding_is_found(monkeypatch):
    """The next bfloat16 beside the nearest one, in one element of one parameter."""
    genuine = OffloadAdamW.state_dict

    def shifted(self):
        saved = genuine(self)
        saved["state"][3]["master"][2, 7] *= 1.004
        return saved

    monkeypatch.setattr(OffloadAdamW, "state_dict", shifted)
    verdict = verify(Net(torch.bfloat16), loss_of, 2)
    assert not verdict.ok
    assert "inner.weight: a bfloat16 weight is not the nearest one" in str(verdict)


def test_an_optimizer_goes_on_from_where_it_is(dtype, disk):
    model = Net(dtype)
    slow = [model.embedding.weight, model.scale]
    fast = [model.inner.weight, model.inner.bias, model.frozen, model.unused]
    groups = [
        {"params": slow, "lr": torch.tensor(0.003), "amsgrad": True},
        {"params": fast, "lr": 0.02, "betas": (torch.tensor(0.7), torch.tensor(0.9)), "weight_decay": 0.2, "eps": 1e-6},
    ]
    for policy in (OffloadPolicy(partition_size=111), disk(overlap="forward"), disk("other", overlap="backward")):
        with OffloadAdamW(groups, offload=policy) as optimizer:
            for _ in range(3):
                optimizer.zero_grad()
                loss_of(model).backward()
                optimizer.step()
            state = optimizer.state_dict()
            before = everything(model)
            verdict = optimizer.verify(model, loss_of, steps=3)
            assert verdict.ok, str(verdict)
            assert same(before, everything(model))
            after = optimizer.state_dict()
            assert all(
                torch.equal(after["state"][i][n], state["state"][i][n]) for i in after["state"] for n in after["state"][i]
            )
            assert optimizer.stats()["steps"] == 3
            # What a step makes of the state depends on the state: without it the twins would start at other moments.
            assert verdict.parameters[0].moved > 0 and {p.name for p in verdict.parameters} >= {"embedding.weight", "unused"}


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_fewer_bits_are_another_algorithm_whose_distance_is_shown(state_dtype, disk):
    model = Net()
    exact = verify(model, loss_of, 10, lr=0.01)
    verdict = verify(model, loss_of, 10, lr=0.01, policy=disk(state_dtype=state_dtype, partition_size=300))
    assert verdict.ok
    assert 50 * exact.distance < verdict.distance < DISTANCE[state_dtype]
    said = str(verdict)
    assert f"AdamW with {state_dtype} moments" in said and "not AdamW" in said and f"{verdict.distance:.3g}" in said
    with OffloadAdamW(model.parameters(), offload=OffloadPolicy(state_dtype=state_dtype)) as optimizer:
        for _ in range(2):
            loss_of(model).backward()
            optimizer.step()
        assert optimizer.verify(model, loss_of, 3).ok


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_amsgrad_with_moments_in_bfloat16(weights):
    """The maximum is kept in bfloat16 too, to the nearest."""
    policy = OffloadPolicy(state_dtype="bfloat16", partition_size=300)
    gone = []

    def loss(model):
        gone.append(1)
        return loss_of(model) / len(gone) ** 2  # gradients fall, so that the maximum counts

    verdict = verify(Net(weights), loss, 12, amsgrad=True, lr=0.01, betas=(0.9, 0.9), policy=policy)
    assert verdict.ok and verdict.distance > 1e-4, str(verdict)


def test_fewer_bits_do_not_excuse_a_wrong_update(monkeypatch):
    """Twice the learning rate is far more than the distance that fewer bits may have."""
    monkeypatch.setattr(update, "scalars", corrupted(update.STEP_SIZE, lambda value, step: 2 * value))
    assert not verify(Net(), loss_of, 4, policy=OffloadPolicy(state_dtype="int8")).ok


def test_steps_with_gradients_that_are_not_finite_are_counted():
    calls = []

    def loss(model):
        calls.append(1)
        return loss_of(model) * (float("inf") if len(calls) == 2 else 1.0)

    verdict = verify(Net(), loss, 4)
    assert verdict.ok and verdict.skipped == 1
    assert "1 steps had gradients that are not finite" in str(verdict)


class Plain(torch.nn.Module):
    def __init__(self, output):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 12))
        self.output = output

    def forward(self, x, y=1.0):
        return self.output(self.weight * x * y)


@pytest.mark.parametrize(
    "batch, output",
    [
        (torch.ones(12), lambda values: values),
        ((torch.ones(12), 2.0), lambda values: values.sum()),
        ([torch.ones(12)], lambda values: values),
        ({"x": torch.ones(12), "y": 3.0}, lambda values: SimpleNamespace(loss=values.sum(), logits=values)),
    ],
)
def test_a_batch_is_what_the_model_is_called_with(batch, output):
    verdict = verify(Plain(output), batch, 2)
    assert verdict.ok and [p.name for p in verdict.parameters] == ["weight"]


def test_mistakes_are_named_and_change_nothing():
    model, other = Net(), Net()
    loss_of(model).backward()
    before = everything(model)
    with pytest.raises(ValueError, match=r"no parameter has a gradient.*the model that it is given"):
        verify(other, lambda given: loss_of(model))
    assert all(torch.equal(a, b) for a, b in zip(before[3], everything(model)[3], strict=True) if a is not None)
    with pytest.raises(ValueError, match="no parameter has a gradient"):
        verify(model, lambda given: torch.tensor(1.0))
    with pytest.raises(ValueError, match="tensor of one element"):
        verify(model, lambda given: given(TOKENS))
    with pytest.raises(ValueError, match="gives a str without a loss"):
        verify(Plain(lambda values: "text"), torch.ones(12))
    with pytest.raises(ValueError, match="steps=0"):
        verify(model, loss_of, 0)
    with pytest.raises(ValueError, match="nothing to compare"):
        verify(torch.nn.Identity(), torch.ones(3))
    with (
        OffloadAdamW(other.parameters()) as optimizer,
        pytest.raises(ValueError, match=r"shape \(\).*not one of the model's"),
    ):
        optimizer.verify(model, loss_of)


def test_it_is_public():
    assert offload_lab.verify is verify and "verify" in offload_lab.__all__
