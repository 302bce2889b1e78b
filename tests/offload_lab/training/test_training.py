"""The small GPT against plain torch, and the loop."""

import math
import threading

import pytest
import torch
from torch.nn import functional

from offload_lab.masters import MasterWeights
from offload_lab.training import Batches, CastLinear, GPTConfig, TinyGPT, corpus, loss_of, train

SMALL = {"layers": 2, "width": 32, "heads": 4, "context": 16}


def setup(dtype=torch.float32, seed=0, lr=3e-3):
    model = TinyGPT(GPTConfig(**SMALL, dtype=dtype), seed=seed)
    return model, MasterWeights(model.parameters(), lambda masters: torch.optim.AdamW(masters, lr=lr)), batches()


def batches(seed=0):
    return Batches(corpus(), 8, 16, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_linear_layer_is_that_of_float64(dtype):
    generator = torch.Generator().manual_seed(0)
    layer = CastLinear(7, 5)
    with torch.no_grad():
        layer.weight.normal_(generator=generator)
    layer.to(dtype)
    inputs = torch.randn(3, 4, 7, generator=generator, requires_grad=True)
    gradient = torch.randn(3, 4, 5, generator=generator)
    layer(inputs).backward(gradient)
    inputs64, weight64 = inputs.detach().double().requires_grad_(), layer.weight.detach().double().requires_grad_()
    out = functional.linear(inputs64, weight64)
    out.backward(gradient.double())
    assert torch.allclose(layer(inputs).double(), out, atol=1e-5)
    assert torch.allclose(inputs.grad.double(), inputs64.grad, atol=1e-5)
    assert layer.weight.grad.dtype == dtype
    assert torch.allclose(layer.weight.grad.double(), weight64.grad, rtol=torch.finfo(dtype).eps, atol=1e-5)


def test_a_float32_layer_is_torch_s_own_bit_for_bit():
    generator = torch.Generator().manual_seed(0)
    layer, inputs = CastLinear(32, 48), torch.randn(3, 16, 32, generator=generator, requires_grad=True)
    with torch.no_grad():
        layer.weight.normal_(generator=generator)
    gradient = torch.randn(3, 16, 48, generator=generator)
    mine, theirs = layer(inputs), functional.linear(inputs, layer.weight)
    assert torch.equal(mine, theirs)
    wanted = [inputs, layer.weight]
    for a, b in zip(*(torch.autograd.grad(out, wanted, gradient) for out in (mine, theirs)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_head_of_its_own_is_counted_and_trained(dtype):
    model = TinyGPT(GPTConfig(**SMALL, dtype=dtype, tied=False))
    assert model.parameter_count() == TinyGPT(GPTConfig(**SMALL)).parameter_count() + 256 * 32
    loss_of(model, *next(batches())).backward()
    assert {parameter.grad.dtype for parameter in model.parameters()} == {dtype}
    assert not torch.equal(model.head.weight.grad, model.bytes.grad)


def test_only_inputs_and_the_stored_weight_wait_for_backward():
    layer = CastLinear(64, 64).to(torch.bfloat16)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        layer(torch.zeros(2, 64, requires_grad=True))
    assert sorted((t.dtype, tuple(t.shape)) for t in saved if t.numel() == 64 * 64) == [(torch.bfloat16, (64, 64))]


def test_the_model_equals_the_same_model_in_plain_torch():
    model, _, text = setup()
    inputs, targets = next(text)

    def plain():
        stream = functional.embedding(inputs, model.bytes) + model.places
        for block in model.blocks:
            normed = functional.layer_norm(stream, (32,), block.norm1.gain)
            q, k, v = (h.view(8, 16, 4, 8).transpose(1, 2) for h in functional.linear(normed, block.qkv.weight).split(32, 2))
            mask = torch.full((16, 16), -math.inf).triu(1)
            mixed = (q @ k.transpose(2, 3) / math.sqrt(8) + mask).softmax(-1) @ v
            stream = stream + functional.linear(mixed.transpose(1, 2).reshape(8, 16, 32), block.out.weight)
            hidden = functional.gelu(functional.linear(functional.layer_norm(stream, (32,), block.norm2.gain), block.up.weight))
            stream = stream + functional.linear(hidden, block.down.weight)
        logits = functional.linear(functional.layer_norm(stream, (32,), model.norm.gain), model.bytes)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    loss = loss_of(model, inputs, targets)
    mine = torch.autograd.grad(loss, list(model.parameters()))
    theirs = torch.autograd.grad(plain(), list(model.parameters()))
    assert loss.item() == pytest.approx(plain().item(), rel=1e-5)
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(mine, theirs, strict=True))


def test_the_same_seed_gives_the_same_run_and_another_another():
    first, again = (train(*setup()[:2], batches(), 5) for _ in range(2))
    assert first == again
    assert train(*setup(seed=1)[:2], batches(), 5) != first
    assert train(*setup()[:2], batches(seed=1), 5) != first


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_learns(dtype):
    """The loss starts at that of 256 equal bytes and falls below that of the text's own byte frequencies."""
    model, optimizer, _ = setup(dtype, lr=1e-2)
    losses = train(model, optimizer, Batches(corpus(), 32, 16), 200)
    frequencies = torch.bincount(corpus().long(), minlength=256).double() / len(corpus())
    entropy = -(frequencies * frequencies.clamp(min=1e-12).log()).sum().item()
    assert losses[0] == pytest.approx(math.log(256), abs=0.1)
    assert sum(losses[-20:]) / 20 < entropy


def test_stop_ends_it_between_two_steps():
    stop = threading.Event()
    losses = train(*setup()[:2], batches(), 50, stop=stop, on_step=lambda step, loss: stop.set() if step == 3 else None)
    assert len(losses) == 3


def test_what_on_step_raises_is_raised():
    def on_step(step, loss):
        raise KeyError(step)

    with pytest.raises(KeyError, match="1"):
        train(*setup()[:2], batches(), 5, on_step=on_step)


def test_counts_and_shapes():
    model, _, text = setup()
    assert model.parameter_count() == 256 * 32 + 16 * 32 + 2 * (12 * 32 * 32 + 2 * 32) + 32
    inputs, targets = next(text)
    assert inputs.dtype == targets.dtype == torch.int64 and inputs.shape == targets.shape == (8, 16)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert corpus().dtype == torch.uint8 and len(corpus()) > 400_000


@pytest.mark.parametrize(
    "wrong, message", [({"width": 30}, "heads=4"), ({"layers": 0}, "layers=0"), ({"context": -1}, "context=-1")]
)
def test_shapes_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        GPTConfig(**(SMALL | wrong))


def test_a_text_longer_than_the_context_is_refused():
    model, _, _ = setup()
    with pytest.raises(ValueError, match="17 bytes do not fit"):
        model(torch.zeros(1, 17, dtype=torch.int64))
    with pytest.raises(ValueError, match="too short"):
        Batches(torch.zeros(10, dtype=torch.uint8), 2, 16)


def test_masters_keep_what_bfloat16_loses():
    weight = torch.nn.Parameter(torch.ones(10, dtype=torch.bfloat16))
    optimizer = MasterWeights([weight], lambda masters: torch.optim.AdamW(masters, lr=1e-4, weight_decay=0))
    for _ in range(100):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    assert torch.allclose(weight.float(), torch.full((10,), 0.99), atol=0.003)
    assert optimizer.memory() == {"ram": 10 * 12, "disk": 0}
