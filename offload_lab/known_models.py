"""Models by their published dimensions. What they have in parameters is computed from these. Pure: no torch."""

from __future__ import annotations

import difflib

from offload_lab.models import Architecture, ModelSpec

_HUB = "https://huggingface.co/{}/blob/main/config.json"


def _gpt2(name: str, repository: str, layers: int, width: int, heads: int) -> ModelSpec:
    shape = Architecture(
        layers, width, heads, 50257, 4 * width, gated=False, tied=True, positions=1024, biases=True, dropout=True, context=1024
    )
    return ModelSpec.build(name, shape, _HUB.format(repository))


def _llama(name: str, repository: str, vocabulary: int, layers: int, width: int, heads: int, inner: int, **more) -> ModelSpec:
    return ModelSpec.build(name, Architecture(layers, width, heads, vocabulary, inner, **more), _HUB.format(repository))


def _qwen(size: str, vocabulary: int, layers: int, width: int, heads: int, kv: int, inner: int, tied: bool) -> ModelSpec:
    repository = f"Qwen/Qwen2.5-{size.upper()}"
    more = {"kv_heads": kv, "qkv_biases": True, "tied": tied}
    return _llama(f"qwen2.5-{size}", repository, vocabulary, layers, width, heads, inner, **more)


_ALL = (
    _gpt2("gpt2", "openai-community/gpt2", 12, 768, 12),
    _gpt2("gpt2-medium", "openai-community/gpt2-medium", 24, 1024, 16),
    _gpt2("gpt2-large", "openai-community/gpt2-large", 36, 1280, 20),
    _gpt2("gpt2-xl", "openai-community/gpt2-xl", 48, 1600, 25),
    _llama("llama-2-7b", "meta-llama/Llama-2-7b-hf", 32000, 32, 4096, 32, 11008),
    _llama("llama-2-13b", "meta-llama/Llama-2-13b-hf", 32000, 40, 5120, 40, 13824),
    _llama("llama-2-70b", "meta-llama/Llama-2-70b-hf", 32000, 80, 8192, 64, 28672, kv_heads=8),
    _llama("llama-3-8b", "meta-llama/Meta-Llama-3-8B", 128256, 32, 4096, 32, 14336, kv_heads=8),
    _llama("llama-3-70b", "meta-llama/Meta-Llama-3-70B", 128256, 80, 8192, 64, 28672, kv_heads=8),
    _llama("llama-3.2-1b", "meta-llama/Llama-3.2-1B", 128256, 16, 2048, 32, 8192, kv_heads=8, tied=True),
    _llama("llama-3.2-3b", "meta-llama/Llama-3.2-3B", 128256, 28, 3072, 24, 8192, kv_heads=8, tied=True),
    _llama("mistral-7b", "mistralai/Mistral-7B-v0.1", 32000, 32, 4096, 32, 14336, kv_heads=8),
    _llama("tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", 32000, 22, 2048, 32, 5632, kv_heads=4),
    _qwen("0.5b", 151936, 24, 896, 14, 2, 4864, True),
    _qwen("1.5b", 151936, 28, 1536, 12, 2, 8960, True),
    _qwen("3b", 151936, 36, 2048, 16, 2, 11008, True),
    _qwen("7b", 152064, 28, 3584, 28, 4, 18944, False),
    _qwen("14b", 152064, 48, 5120, 40, 8, 13824, False),
    _qwen("32b", 152064, 64, 5120, 40, 8, 27648, False),
    _qwen("72b", 152064, 80, 8192, 64, 8, 29568, False),
)
_ALL += (
    _llama("qwen3-0.6b", "Qwen/Qwen3-0.6B", 151936, 28, 1024, 16, 3072, kv_heads=8, head_width=128, qk_norms=True, tied=True),
    _llama("qwen3-8b", "Qwen/Qwen3-8B", 151936, 36, 4096, 32, 12288, kv_heads=8, qk_norms=True),
    _llama("gemma-2-2b", "google/gemma-2-2b", 256000, 26, 2304, 8, 9216, kv_heads=4, head_width=256, norms=4, tied=True),
    _llama("gemma-2-9b", "google/gemma-2-9b", 256000, 42, 3584, 16, 14336, kv_heads=8, head_width=256, norms=4, tied=True),
    _llama("phi-2", "microsoft/phi-2", 51200, 32, 2560, 32, 10240, gated=False, biases=True, norms=1, head_bias=True),
    _llama("phi-3-mini", "microsoft/Phi-3-mini-4k-instruct", 32064, 32, 3072, 32, 8192),
)
KNOWN: dict[str, ModelSpec] = {model.name: model for model in _ALL}
_ALIASES = {
    "gpt2-small": "gpt2",
    "gpt-2": "gpt2",
    "mistral-7b-v0.1": "mistral-7b",
    "meta-llama-3-8b": "llama-3-8b",
    "llama-3.1-8b": "llama-3-8b",
    "llama-3.1-70b": "llama-3-70b",
}


def spec(name: str) -> ModelSpec:
    """A known model by name, such as "llama-2-13b", in any case, with or without its owner on the hub.

    Raises ValueError that names the nearest one, and all.
    """
    asked = name.strip().lower().rsplit("/", 1)[-1].removesuffix("-hf")
    asked = _ALIASES.get(asked, asked)
    if asked not in KNOWN:
        near = difflib.get_close_matches(asked, KNOWN, 1)
        hint = f'. Did you mean "{near[0]}"?' if near else "."
        raise ValueError(f"model={name!r} is not known{hint} Known are {', '.join(KNOWN)}; for others give their parameters")
    return KNOWN[asked]
