"""Models counted tensor by tensor, by hand, from the dimensions that their makers published; and plans for them by hand.

Dimensions: Jiang et al. 2023, "Mistral 7B", table 1; Qwen Team 2024, "Qwen2.5 Technical Report", table 1, and the configuration
on its page; Gemma Team 2024, "Gemma 2", table 1; Javaheripi et al. 2023, "Phi-2", and its configuration; Zhang et al. 2024,
"TinyLlama", table 2; Qwen Team 2025, "Qwen3 Technical Report", table 1.
"""

import pytest
import torch

from offload_lab import ModelSpec, catalogue, plan
from offload_lab.activations import activation_bytes, flops, layer_bytes
from offload_lab.given_machine import machine
from offload_lab.known_models import spec
from offload_lab.models import Architecture
from offload_lab.placing import RUNTIME

GIB, TB = 1 << 30, 10**12

BY_HAND = {
    # grouped queries: 32 heads of 128, keys and values of 8 heads; no biases; two norms; head of its own
    "mistral-7b": 2 * 32000 * 4096 + 32 * (2 * 4096 * 4096 + 2 * 4096 * (8 * 128) + 3 * 4096 * 14336 + 2 * 4096) + 4096,
    # biases on query, key and value: 28 heads and twice 4 heads of 128
    "qwen2.5-7b": 2 * 152064 * 3584
    + 28 * (2 * 3584 * 3584 + 2 * 3584 * 512 + (3584 + 512 + 512) + 3 * 3584 * 18944 + 2 * 3584)
    + 3584,
    # tied; the head is not counted again
    "qwen2.5-0.5b": 151936 * 896 + 24 * (2 * 896 * 896 + 2 * 896 * 128 + (896 + 128 + 128) + 3 * 896 * 4864 + 2 * 896) + 896,
    # tied; 8 heads of 256, which are not 2,304 together, keys and values of 4; four norms
    "gemma-2-2b": 256000 * 2304 + 26 * (2 * 2304 * 2048 + 2 * 2304 * 1024 + 3 * 2304 * 9216 + 4 * 2304) + 2304,
    # a bias on everything; one norm with shift and gain; two matrices in the network; a bias on the head
    "phi-2": 2 * 51200 * 2560
    + 51200
    + 32 * (4 * (2560 * 2560 + 2560) + 2560 * 10240 + 10240 + 10240 * 2560 + 2560 + 2 * 2560)
    + 2 * 2560,
    # 32 heads of 64, keys and values of 4
    "tinyllama-1.1b": 2 * 32000 * 2048 + 22 * (2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 5632 + 2 * 2048) + 2048,
    # tied; 16 heads of 128, which are 2,048 of a width of 1,024; a norm of queries and one of keys, of 128 each
    "qwen3-0.6b": 151936 * 1024 + 28 * (2 * 1024 * 2048 + 2 * 1024 * 1024 + 3 * 1024 * 3072 + 2 * 1024 + 2 * 128) + 1024,
}
PUBLISHED = {
    "mistral-7b": 7_241_732_096,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-0.5b": 494_032_768,
    "gemma-2-2b": 2_614_341_888,
    "phi-2": 2_779_683_840,
    "tinyllama-1.1b": 1_100_048_384,
    "qwen3-0.6b": 596_049_920,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_tensor_by_tensor_is_what_was_published_and_what_is_computed(name):
    assert BY_HAND[name] == PUBLISHED[name] == spec(name).parameters


@pytest.mark.parametrize("name", ["gemma-2-2b", "phi-2", "phi-3-mini", "qwen3-0.6b", "qwen3-8b", "tinyllama-1.1b"])
def test_the_real_implementation_has_the_same_tensors_and_the_same_shape(name):
    transformers = pytest.importorskip("transformers")
    shape = spec(name).architecture
    kind = {"gemma-2": "Gemma2Config", "phi-2": "PhiConfig", "phi-3": "Phi3Config", "qwen3": "Qwen3Config"}
    made = next((config for start, config in kind.items() if name.startswith(start)), "LlamaConfig")
    if not hasattr(transformers, made):
        pytest.skip(f"this transformers has no {made}")
    more = {"head_dim": shape.head_width} if shape.head_width else {}
    if made == "Qwen3Config":
        more = {"head_dim": 128}
    config = getattr(transformers, made)(
        num_hidden_layers=shape.layers, hidden_size=shape.width, num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads or shape.heads, intermediate_size=shape.inner, vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied, pad_token_id=0, **more,
    )  # fmt: skip
    with torch.device("meta"):
        module = transformers.AutoModelForCausalLM.from_config(config)
    counted = ModelSpec.of(module)
    assert counted.parameters == spec(name).parameters
    assert counted.layer_elements() == spec(name).layer_elements()
    assert layer_bytes(counted.architecture, 1, 64) == layer_bytes(shape, 1, 64)
    if made not in ("PhiConfig", "Phi3Config"):  # these keep query, key and value, or gate and up, in another number of tensors
        assert sorted(w.numel for w in counted.each()) == sorted(w.numel for w in spec(name).each())


def test_a_kind_that_is_not_known_has_the_network_that_its_count_tells():
    """Pythia's has two matrices; a Llama of the same width three."""
    transformers = pytest.importorskip("transformers")
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 100}
    for made, gated in (("GPTNeoXConfig", False), ("LlamaConfig", True)):
        with torch.device("meta"):
            module = transformers.AutoModelForCausalLM.from_config(getattr(transformers, made)(**sizes))
        assert ModelSpec.of(module).architecture.gated is gated


def test_heads_of_a_width_of_their_own():
    """Gemma 2 2B: queries are 2,048 wide, keys and values 1,024; attention is 12 · layers · 2,048 · sequence operations."""
    shape = spec("gemma-2-2b").architecture
    assert (shape.query_width, shape.kv_width) == (2048, 1024)
    # Inputs of four norms and of the projections, queries, keys, values, the output's input; then the network.
    assert layer_bytes(shape, 1, 1) == 2 * (5 * 2304 + 2048 + 2 * 1024 + 2048 + 2304 + 4 * 9216) + 4 * 8
    assert flops(spec("gemma-2-2b"), 1, 100) == 6 * 2_614_341_888 + 12 * 26 * 2048 * 100
    with pytest.raises(ValueError, match="heads=7"):
        Architecture(1, 64, 7, 10, 256)
    assert Architecture(1, 64, 7, 10, 256, head_width=16).query_width == 112


def test_gemma_2_2b_on_a_4090_by_hand():
    """State of 12 bytes a parameter and gradients in float32 while the update runs; logits of 256,000 words."""
    n, tokens = 2_614_341_888, 1024
    made = plan("gemma-2-2b", machine(ram=64 * GIB, gpu="rtx4090", disk=TB), sequence=tokens)
    # On the card 2 + 2 + 4 + 8 bytes, and 2 for float32 gradients, would be 47 GB. Its state goes to RAM, and 4 bytes stay.
    assert (made.placement.state, made.placement.weights, made.placement.gradients) == ("ram", "gpu", "gpu")
    shape = spec("gemma-2-2b").architecture
    token = 2 * (5 * 2304 + 2 * 2048 + 2 * 1024 + 2304 + 4 * 9216) + 4 * 8
    kept = tokens * (26 * token + 2 * 2 * 2304 + 4 * 256000)
    assert made.tiers["gpu"] == {"weights": 2 * n, "gradients": 2 * n, "activations": kept, "runtime": RUNTIME["gpu"]}
    assert kept == activation_bytes(shape, 1, tokens)
    assert made.tiers["ram"]["moments"] == 8 * n and made.tiers["ram"]["master"] == 2 * n
    operations = tokens * (6 * n + 12 * 26 * 2048 * tokens)  # the embedding is the head, and is multiplied
    assert made.time.lanes["compute"] == pytest.approx(operations / (0.4 * 165.2e12))
    assert made.time.lanes["link-down"] == pytest.approx(4 * n / made.hardware.device_to_host.value)


def test_qwen_7b_on_a_laptop_by_hand():
    """15.2 GB of weights and 15.2 GB of gradients are more than 16 GiB, wherever the state is."""
    n = 7_615_616_512
    made = plan("qwen2.5-7b", catalogue.machine("laptop"))
    assert not made.fits and made.total("ram") >= 4 * n
    assert f"{2 * n / 1e9:.1f} GB" in made.why and "Nothing that was tried fits" in made.why


def test_phi_2_in_float16_on_a_t4_by_hand():
    """5.6 GB and 5.6 GB on a card of 17.2; state of 8 + 4 bytes in RAM, for float16 has no half of a float32 in it."""
    n = 2_779_683_840
    made = plan("phi-2", machine(ram=64 * GIB, gpu="t4"), dtype="float16", sequence=512)
    assert made.fits and made.placement.runs_with == "offload_lab"
    assert (made.tiers["gpu"]["weights"], made.tiers["gpu"]["gradients"]) == (2 * n, 2 * n)
    assert (made.tiers["ram"]["moments"], made.tiers["ram"]["master"]) == (8 * n, 4 * n)
    looked_up = 51200 * 2560
    operations = 512 * (6 * (n - looked_up) + 12 * 32 * 2560 * 512)
    assert made.time.lanes["compute"] == pytest.approx(operations / (0.4 * 65e12))
    assert "emulated" not in made.why


def test_mistral_7b_on_four_a100_by_hand():
    """16 bytes a parameter and 2 for float32 gradients, shared by four: 32.6 GB on each beside activations and whole layers."""
    n = 7_241_732_096
    made = plan("mistral-7b", machine(ram=512 * GIB, gpu="a100-80", gpus=4))
    gpu = made.tiers["gpu"]
    assert made.placement.runs_with == "torch"
    assert [gpu[kind] for kind in ("weights", "gradients", "master", "moments", "copies")] == [n // 2, n // 2, n, 2 * n, n // 2]
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    assert gpu["buffers"] == 2 * (3 * layer + 2 * 32000 * 4096 + 4096)
    assert made.time.between == 3 * 2 * n * 3 // 4
    assert made.time.lanes["between"] == pytest.approx(3 * 2 * n * 0.75 / (0.75 * 300e9))
    assert made.time.lanes["gpu update"] == pytest.approx(30 * n / 4 / 2039e9)
