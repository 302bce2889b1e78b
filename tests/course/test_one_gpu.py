"""The Colab lab's machine and model: a card that is played by a stand-in, and a model as the hub has it, made here."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from course import one_gpu, repository
from course.fitting import Choice, Room
from course.lab_runs import in_ram
from course.one_gpu import LabError, fetched, is_full, let_go, load, over_time, room, tiers
from offload_lab import OffloadAdamW, OffloadPolicy
from offload_lab.meter import Reading
from offload_lab.training import corpus, loss_of, train

TINY = Choice("TinyGPT", 0, "float32", "cpu", 1000, None, layers=1, width=64, context=16)


def test_without_a_gpu_the_room_says_so(tmp_path):
    here = room(tmp_path)
    assert here.card == 0 and here.device == "cpu" and here.ram_free > 0 and here.disk_free > 0


@pytest.mark.parametrize("capability, native", [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_a_gpu_is_asked_for_what_it_has(monkeypatch, tmp_path, capability, native):
    """With a stand-in: no test here runs on a GPU."""
    answers = {
        "is_available": True,
        "mem_get_info": (14_000, 16_000),
        "get_device_name": "a card",
        "get_device_capability": capability,
    }
    fake = SimpleNamespace(**{name: lambda answer=answer: answer for name, answer in answers.items()})
    monkeypatch.setattr(one_gpu.torch, "cuda", fake)
    here = room(tmp_path)
    assert (here.device, here.name, here.card, here.card_free) == ("cuda", "a card", 16_000, 14_000)
    assert here.sixteen_bit is native and "16 kB of memory, 14 kB free" in str(here)


def test_the_same_choice_gives_the_same_model_and_the_same_text():
    (one, ones), (other, others) = load(TINY), load(TINY)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    for _step in range(3):
        assert all(torch.equal(a, b) for a, b in zip(next(ones), next(others), strict=True))


def test_what_is_let_go_is_gone_whoever_holds_the_model():
    model, batches = load(TINY)
    optimizer = OffloadAdamW(model.parameters(), lr=1e-3)
    train(model, optimizer, batches, 1)
    for _again in range(2):
        let_go(model, optimizer)
        assert all(parameter.numel() == 0 and parameter.grad is None for parameter in model.parameters())
    with pytest.raises(RuntimeError):
        optimizer.step()


@pytest.mark.parametrize(
    "error, full",
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB."), True),
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."), True),
        (RuntimeError("size mismatch"), False),
        (ValueError("not enough memory"), False),
    ],
)
def test_only_a_full_memory_is_one(error, full):
    assert is_full(error) is full


def test_tiers_are_told_apart():
    readings = [Reading(0.0, 4, 0, 8, 16, 2, 99), Reading(0.5, 4, 4, 7, 20, 0, 99), Reading(1.0, 4, 1, 7, 20, 0, 99)]
    held = tiers(readings)
    assert (held.card, held.ram, held.disk) == (8, 8, 20)
    assert over_time(readings)["card"] == [(0.0, 6e-6), (0.5, 8e-6), (1.0, 5e-6)]
    assert tiers([]).card == 0


def test_a_state_that_is_too_large_for_ram_streams_in_part(tmp_path):
    assert in_ram(TINY, tmp_path).tier == "ram"
    part = in_ram(replace(TINY, ram_budget=5_000), tmp_path / "x")
    assert (part.tier, part.ram_budget, part.durability) == ("disk", 5_000, "checkpoint")


# --- a model of the hub ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A GPT-NeoX with its tokenizer in a folder, in the form in which the hub has them; random and very small."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("modèle caché")
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator([corpus()[:20_000].numpy().tobytes().decode()], vocab_size=300)
    transformers.PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, model_max_length=64).save_pretrained(folder)
    shape = transformers.GPTNeoXConfig(
        vocab_size=made.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    transformers.AutoModelForCausalLM.from_config(shape).save_pretrained(folder)
    return replace(TINY, model=str(folder), layers=0, width=0, batch=2, context=32, lr=3e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_pretrained_model_trains_in_the_same_loop(hub, dtype, tmp_path):
    model, batches = load(replace(hub, dtype=dtype))
    assert {parameter.dtype for parameter in model.parameters()} == {getattr(torch, dtype)}
    inputs, targets = next(batches)
    assert inputs.shape == (2, 32) and loss_of(model, inputs, targets).dtype == torch.float32
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "s", ram_budget="1MiB", durability="checkpoint")
    with OffloadAdamW(model.parameters(), lr=hub.lr, offload=policy) as optimizer:
        losses = train(model, optimizer, batches, 12)
    assert sum(losses[-3:]) < sum(losses[:3]) - 0.3


HERE = Room("cpu", "", 0, 0, 10**10, 10**10)


def test_a_model_that_is_there_is_taken(hub):
    assert fetched(hub, HERE) is hub and fetched(TINY, HERE) is TINY


def test_a_model_that_cannot_be_had_is_said_and_another_takes_its_place(tmp_path, capsys):
    pytest.importorskip("transformers")
    missing = replace(TINY, model=str(tmp_path / "nothing here"), layers=0)
    (tmp_path / "nothing here").mkdir()
    assert fetched(missing, HERE).model == "TinyGPT"
    said = capsys.readouterr().out
    assert "nothing here cannot be had: " in said and "random weights takes its place" in said
    with pytest.raises(LabError):
        load(missing)


def test_without_transformers_a_sentence_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert fetched(replace(TINY, layers=0), HERE).model == "TinyGPT"
    assert "needs transformers, which is not installed" in capsys.readouterr().out


# --- where it is published ------------------------------------------------------------------------------------------------


def test_the_repository_is_filled_in():
    text = "[open](https://example.org/github/OWNER/REPO/x) and OWNER/REPO"
    assert repository.filled(text, "ada/offload-lab") == (
        "[open](https://example.org/github/ada/offload-lab/x) and ada/offload-lab"
    )


@pytest.mark.parametrize("wrong", ["", "ada", "https://example.org/ada/lab", "ada/lab/more", 'ada/lab"; import os #'])
def test_what_is_no_repository_is_refused(wrong):
    with pytest.raises(ValueError, match="owner/name"):
        repository.filled("OWNER/REPO", wrong)
