"""Models from their published dimensions, against their published counts, and against modules of torch."""

import pytest
import torch

from offload_lab.models import KNOWN, Architecture, ModelSpec, known
from offload_lab.training import GPTConfig, TinyGPT

PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "tinyllama-1.1b": 1_100_048_384,
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-30b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
}


def test_every_known_model_is_held_against_its_published_count():
    assert {name: known(name).parameters for name in KNOWN} == PUBLISHED


def test_a_name_that_is_not_known_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'llama-2-7b'"):
        known("llama-2-7")
    assert known("GPT2-small").parameters == PUBLISHED["gpt2"]


def test_a_module_counts_what_is_trained_and_a_tied_weight_once():
    embedding, head = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 10, bias=False)
    head.weight = embedding.weight
    frozen = torch.nn.Linear(3, 5).requires_grad_(False).to(torch.float16)
    spec = ModelSpec.of(torch.nn.ModuleList([embedding, head, frozen, torch.nn.Linear(4, 2).bfloat16()]))
    assert spec.by_dtype("float16") == {"float32": 40, "bfloat16": 10}
    assert (spec.parameters, spec.frozen, spec.frozen_bytes) == (50, 20, 40)


def test_a_module_on_the_meta_device_is_enough():
    with torch.device("meta"):
        spec = ModelSpec.of(torch.nn.Linear(200_000, 100_000))
    assert spec.parameters == 200_001 * 100_000


@pytest.mark.parametrize(
    "module, error, told",
    [
        ("no module", TypeError, "a torch.nn.Module, a ModelSpec"),
        (torch.nn.ReLU(), ValueError, "no trainable parameter"),
        (torch.nn.Linear(2, 2, dtype=torch.float64), ValueError, "weight is float64"),
    ],
)
def test_what_cannot_be_planned_is_named(module, error, told):
    with pytest.raises(error, match=told):
        ModelSpec.of(module)


def test_a_count_alone_gets_the_shape_of_the_published_model_of_that_size():
    spec = ModelSpec.sized(13_000_000_000)
    assert (spec.architecture.layers, spec.architecture.width) == (40, 5120) and "assumed" in spec.note
    with pytest.raises(ValueError, match="parameters=0"):
        ModelSpec.sized(0)


@pytest.mark.parametrize("wrong", [{"layers": 0}, {"width": 10}, {"heads": True}])
def test_a_wrong_dimension_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Architecture(**{"layers": 2, "width": 12, "heads": 3, "ffn": 48, "vocabulary": 9} | wrong)


def test_activations_are_those_of_korthikanti_less_dropout():
    """GPT-3 of 175e9 in 16 bits: s·b·h·L·(34 + 5·a·s/h), minus two masks (2·s·b·h) and the three bytes of a·s² for dropout."""
    gpt3 = Architecture(96, 12_288, 96, 4 * 12_288, 51_200, gated=False)
    sbh = 2048 * 12_288
    ends = 4 * sbh + 4 * 2048 * 51_200
    assert gpt3.activation_bytes(1, 2048) == 96 * 32 * sbh + ends
    assert gpt3.activation_bytes(1, 2048, attention="eager") == 96 * (32 * sbh + 2 * 96 * 2048**2) + ends
    assert gpt3.activation_bytes(1, 2048, checkpointing="full") == 96 * 2 * sbh + 32 * sbh + ends
    assert gpt3.activation_bytes(3, 2048, "float32") == 3 * (2 * 96 * 32 * sbh + 8 * sbh + 4 * 2048 * 51_200)


def test_a_layer_of_llama_keeps_its_gate():
    """Llama-2-7B, one token: 2·(6·4096 + 2·4096 + 4·11008) a layer."""
    layer = 2 * (8 * 4096 + 4 * 11_008)
    assert KNOWN["llama-2-7b"].activation_bytes(1, 1) == 32 * layer + 4 * 4096 + 4 * 32_000


def test_flop_of_a_token_are_six_a_weight_and_attention():
    """Llama-2-7B without its input embedding has 6,607,077,376 elements in matrices: 6 each, 12·32·4096·2048 for attention."""
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11_008) + 32_000 * 4096
    assert KNOWN["llama-2-7b"].flops_per_token(2048) == 6 * matrices + 12 * 32 * 4096 * 2048
    more = KNOWN["llama-2-7b"].flops_per_token(2048, "full") / KNOWN["llama-2-7b"].flops_per_token(2048)
    assert 1.3 < more < 4 / 3


def test_our_own_gpt_is_counted_and_shaped():
    model = TinyGPT(GPTConfig())
    spec = ModelSpec.of(model)
    assert spec.parameters == sum(p.numel() for p in model.parameters())
    assert spec.architecture is not None and spec.architecture.layers == len(model.blocks)
