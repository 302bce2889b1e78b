"""Known models against their published counts and against the real implementations; modules counted."""

import pytest
import torch

from offload_lab.activations import activation_bytes, flops, layer_bytes
from offload_lab.known_models import KNOWN, spec
from offload_lab.models import Architecture, ModelSpec

# As published: the sum over the tensors of each checkpoint, as its page on the hub states it.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "tinyllama-1.1b": 1_100_048_384,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-8b": 8_190_735_360,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "phi-2": 2_779_683_840,
    "phi-3-mini": 3_821_079_552,
}


@pytest.mark.parametrize("name", KNOWN)
def test_parameters_are_those_published(name):
    assert spec(name).parameters == PUBLISHED[name] and spec(name).frozen == 0
    assert sum(weight.numel for weight in spec(name).each()) == PUBLISHED[name]


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl", "llama-2-13b", "llama-3.2-1b", "mistral-7b", "qwen2.5-0.5b", "qwen2.5-7b"])
def test_parameters_are_those_of_the_real_implementation(name):
    """transformers builds the same dimensions, on no device; every parameter's size is compared, not only their sum."""
    transformers = pytest.importorskip("transformers")
    known = spec(name)
    shape = known.architecture
    common = {"vocab_size": shape.vocabulary, "tie_word_embeddings": shape.tied}
    if name.startswith("gpt2"):
        config = transformers.GPT2Config(n_layer=shape.layers, n_embd=shape.width, n_head=shape.heads, **common)
    else:
        kind = {"l": "LlamaConfig", "m": "MistralConfig", "q": "Qwen2Config"}[name[0]]
        config = getattr(transformers, kind)(
            num_hidden_layers=shape.layers,
            hidden_size=shape.width,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads or shape.heads,
            intermediate_size=shape.inner,
            **common,
        )
    with torch.device("meta"):
        module = transformers.AutoModelForCausalLM.from_config(config)
    counted = ModelSpec.of(module)
    assert sorted(weight.numel for weight in counted.each()) == sorted(weight.numel for weight in known.each())
    assert counted.parameters == known.parameters
    assert activation_bytes(counted.architecture, 1, 512) == activation_bytes(shape, 1, 512)


def test_names_are_read_generously_and_unknown_ones_told():
    assert spec("meta-llama/Llama-2-13b-hf") is spec("LLAMA-2-13B")
    with pytest.raises(ValueError, match=r"model='lama-2-13b'.*llama-2-13b.*give their parameters"):
        spec("lama-2-13b")


@pytest.mark.parametrize("parameters", [1, 2, 1000, 124_000_000, 13_000_000_000, 10**12])
def test_a_size_alone_is_exact_in_parameters(parameters):
    made = ModelSpec.sized(parameters)
    assert made.parameters == parameters and made.architecture.assumed
    if parameters == 13_000_000_000:  # near GPT-3 13B, which has 40 layers of 5,120 (Brown et al. 2020, table 2.1)
        assert abs(made.architecture.layers - 40) <= 2 and abs(made.architecture.width - 5120) <= 256


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "7B"])
def test_a_size_that_is_none_is_named(wrong):
    with pytest.raises(ValueError, match=r"parameters=.*at least 1"):
        ModelSpec.sized(wrong)


def test_a_module_counts_tied_ones_once_and_frozen_ones_apart():
    embedding, head, adapter = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 10, bias=False), torch.nn.Linear(4, 4)
    head.weight = embedding.weight
    adapter.weight.requires_grad_(False)
    model = torch.nn.ModuleList([embedding, head, adapter, torch.nn.Linear(4, 1, bias=False).to(torch.bfloat16)])
    counted = ModelSpec.of(model, "mine")
    assert (counted.name, counted.parameters, counted.frozen, counted.architecture) == ("mine", 40 + 4 + 4, 16, None)
    assert counted.weight_bytes("float16") == 4 * (40 + 4 + 16) + 2 * 4  # dtypes are the module's own
    assert counted.weight_bytes("float16", trainable_only=True) == 4 * (40 + 4) + 2 * 4
    with pytest.raises(ValueError, match="has no parameters"):
        ModelSpec.of(torch.nn.ReLU())
    with pytest.raises(ValueError, match="weight is float64"):
        ModelSpec.of(torch.nn.Linear(2, 2).double())


def test_activations_are_those_of_the_paper():
    """Korthikanti et al. 2022: s·b·h·(34 + 5·a·s/h) a layer, 34·s·b·h without the scores, 2·s·b·h checkpointed; GPT-3 175B."""
    s, b, h, a = 2048, 4, 12288, 96
    gpt3 = Architecture(96, h, a, 51200, 4 * h, gated=False, biases=True, dropout=True)
    assert layer_bytes(gpt3, b, s, fused_attention=False) == s * b * h * 34 + 5 * a * s * s * b
    assert layer_bytes(gpt3, b, s) == s * b * (34 * h + 4 * a)
    outside = s * b * h * (2 + 2 + 1) + 4 * s * b * 51200
    assert activation_bytes(gpt3, b, s) == 96 * layer_bytes(gpt3, b, s) + outside
    assert activation_bytes(gpt3, b, s, checkpointing="full") == 96 * 2 * s * b * h + layer_bytes(gpt3, b, s) + outside


def test_activations_of_a_gated_network_by_hand():
    """Llama-2-7B, one token: inputs of two norms, two projections and the network, q, k, v: 8 · 4,096; then 4 · 11,008."""
    assert layer_bytes(spec("llama-2-7b").architecture, 1, 1) == 2 * (8 * 4096 + 4 * 11008) + 4 * 32


def test_what_activations_cannot_be_is_named():
    shape = spec("gpt2").architecture
    with pytest.raises(ValueError, match=r"sequence=1,025.*1,024 positions"):
        activation_bytes(shape, 1, 1025)
    with pytest.raises(ValueError, match="checkpointing='some'"):
        activation_bytes(shape, 1, 8, checkpointing="some")
    with pytest.raises(ValueError, match="heads=7"):
        Architecture(1, 64, 7, 10, 256)


def test_operations_by_hand():
    """Llama-2-7B: its embedding, 32,000 · 4,096, is looked up; attention adds 12 · 32 · 4,096 · 2,048 a token."""
    each = 6 * (6_738_415_616 - 131_072_000) + 12 * 32 * 4096 * 2048
    assert flops(spec("llama-2-7b"), 10, 2048) == 10 * each
    assert flops(spec("llama-2-7b"), 10, 2048, "full") == pytest.approx(10 * each * 4 / 3)
