"""Which model the Colab lab takes: AdamW does not fit, weights and gradients do, and RAM is not filled to its brim."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course.fitting import GUARD, PYTHIA, Room, choose, tiny
from offload_lab.state_bytes import training_bytes
from offload_lab.training import GPTConfig, TinyGPT

MB, GB = 10**6, 10**9
T4 = Room("cuda", "a T4 as Colab lends it", 15_835_660_288, 15_700 * MB, 10 * GB, 70 * GB, sixteen_bit=False)


@pytest.mark.parametrize("shape", PYTHIA, ids=lambda shape: shape.name)
def test_a_shape_has_the_parameters_that_the_real_architecture_has(shape):
    transformers = pytest.importorskip("transformers")
    made = transformers.GPTNeoXConfig(
        vocab_size=shape.rows,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=8,
        intermediate_size=4 * shape.width,
        tie_word_embeddings=False,
    )
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(made)
    assert sum(parameter.numel() for parameter in model.parameters()) == shape.parameters


def test_a_tiny_gpt_is_counted_as_it_is_built():
    assert tiny(2, 64, 32) == TinyGPT(GPTConfig(2, 64, 1, 32)).parameter_count()


def test_a_free_colab_gets_a_billion_parameters_and_keeps_its_ram():
    choice = choose(T4, download=True)
    assert choice.model == "EleutherAI/pythia-1b" and choice.dtype == "float32" and choice.pretrained
    assert choice.ram_budget == int(GUARD * T4.ram_free) < choice.state, "not all of it: the kernel would be ended"
    said = str(choice)
    assert "does not fit" in said and "6 GB may stay in RAM" in said and "predicted" in said


def test_bfloat16_only_where_the_card_computes_in_it():
    small = replace(T4, card=8_000 * MB, card_free=7_900 * MB)
    assert choose(small, download=True).layers, "nothing of the hub fits in float32"
    assert choose(replace(small, sixteen_bit=True), download=True).dtype == "bfloat16"


@pytest.mark.parametrize("download", [False, True])
@given(
    card=st.integers(2 * GB, 100 * GB),
    used=st.integers(0, 20),
    ram=st.integers(1 * GB, 200 * GB),
    disk=st.integers(1 * GB, 2000 * GB),
    sixteen_bit=st.booleans(),
)
def test_what_is_chosen_keeps_its_promises(download, card, used, ram, disk, sixteen_bit):
    room = Room("cuda", "a card", card, card * (100 - used) // 100, ram, disk, sixteen_bit)
    try:
        choice = choose(room, download)
    except ValueError as error:
        assert "Make room" in str(error)
        return
    size = training_bytes(choice.parameters, choice.dtype, "adamw")
    assert size.steady_bytes > card, "AdamW would fit"
    assert size.ram["weights"] + size.ram["gradients"] < room.card_free
    assert training_bytes(choice.parameters, choice.dtype, "disk").disk_bytes < disk
    assert min(choice.state, choice.ram_budget or choice.state) <= GUARD * ram
    assert choice.pretrained or choice.parameters == tiny(choice.layers, choice.width, choice.context)


@pytest.mark.parametrize("download", [False, True])
def test_without_a_card_the_model_is_small_and_a_limit_plays_the_card(download):
    room = Room("cpu", "", 0, 0, 4 * GB, 3 * GB)
    choice = choose(room, download)
    assert choice.device == "cpu" and choice.parameters < 100 * MB and choice.pretrained == download
    assert choice.on_card["offloaded"] < choice.card < choice.on_card["AdamW"]
    assert "none" in str(room) and "plays the card" in str(room)


def test_a_disk_without_room_is_said_before_anything_runs():
    with pytest.raises(ValueError, match=r"needs .* of disk .* Make room"):
        choose(replace(T4, disk_free=GB))
