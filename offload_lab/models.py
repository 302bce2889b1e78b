"""Models as the planner sees them: how many elements each parameter has, and what one token costs. Pure: no torch.

Known models are computed from their published dimensions; that this gives the published counts is tested.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Literal

ELEMENT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
Checkpointing = Literal["none", "full"]
Attention = Literal["fused", "eager"]


@dataclass(frozen=True)
class Architecture:
    """A decoder-only transformer by its published dimensions."""

    layers: int
    width: int
    heads: int
    ffn: int
    """Width of the hidden layer of the MLP."""
    vocabulary: int
    kv_heads: int | None = None
    """Heads of keys and values; None: as many as `heads`."""
    positions: int = 0
    """Rows of a learned table of positions; 0: none (rotary)."""
    gated: bool = True
    """Llama's MLP: three matrices, the gate times the up-projection. False: GPT-2's, two."""
    biases: Literal["none", "qkv", "all"] = "none"
    norm_bias: bool = False
    tied: bool = False
    """The output layer is the embedding."""

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "ffn", "vocabulary"):
            _whole(f"Architecture({name}=", getattr(self, name), 1)
        if self.width % self.heads:
            raise ValueError(f"Architecture(width={self.width}, heads={self.heads}): width must be a multiple of heads")

    @property
    def kv_width(self) -> int:
        """Width of keys, and of values."""
        return self.width // self.heads * (self.heads if self.kv_heads is None else self.kv_heads)

    def matrices(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of one layer's matrices."""
        attention = [(self.width, self.width), *[(self.width, self.kv_width)] * 2, (self.width, self.width)]
        up = [(self.width, self.ffn)] * (2 if self.gated else 1)
        return [*attention, *up, (self.ffn, self.width)]

    @property
    def layer(self) -> int:
        """Parameters of one layer."""
        biased = {"none": 0, "qkv": 3, "all": len(self.matrices())}[self.biases]
        count = sum(a * b for a, b in self.matrices()) + sum(outputs for _, outputs in self.matrices()[:biased])
        return count + 2 * self.norm

    @property
    def norm(self) -> int:
        """Parameters of one normalisation."""
        return self.width * (2 if self.norm_bias else 1)

    def sizes(self) -> tuple[int, ...]:
        """Elements: the embedding, the table of positions, each layer, the last normalisation, the output layer."""
        table = self.vocabulary * self.width
        ends = (self.norm,) if self.tied else (self.norm, table)
        return tuple(n for n in (table, self.positions * self.width, *[self.layer] * self.layers, *ends) if n)

    def flops_per_token(self, sequence: int, checkpointing: Checkpointing = "none") -> float:
        """FLOP of forward and backward for one token of a sequence of `sequence`.

        Six for each element of a matrix that the token is multiplied with (Kaplan et al. 2020, arXiv:2001.08361, section
        2.1), and 12 × layers × width × sequence for attention (Chowdhery et al. 2022, arXiv:2204.02311, appendix B: no half
        is taken off for the causal mask). `checkpointing="full"` computes the layers' forward once more: 8 for 6.
        """
        matrices = self.layers * sum(a * b for a, b in self.matrices())
        in_layers = 6 * matrices + 12 * self.layers * self.width * sequence
        again = 4 / 3 if checkpointing == "full" else 1
        return in_layers * again + 6 * self.vocabulary * self.width

    def activation_bytes(
        self,
        batch: int,
        sequence: int,
        dtype: str = "bfloat16",
        checkpointing: Checkpointing = "none",
        attention: Attention = "fused",
    ) -> int:
        """Bytes that backward needs of one forward over `batch` sequences of `sequence` tokens.

        Counted as Korthikanti et al. 2022 (arXiv:2205.05198, section 4) do, without dropout: of each operation, what its
        backward reads. With b·s tokens, width h, hidden width f, keys and values of width k, and two bytes an element, a
        layer of GPT-2 keeps b·s·(12·h + 4·k + 4·f), which is their 34·b·s·h less two masks of one byte; one of Llama
        b·s·(12·h + 4·k + 8·f), because the gate, the up-projection, the gate's activation and the product are all kept.
        "eager" attention keeps softmax's result as well, 2·b·s²·heads; "fused" does not (FlashAttention, or
        torch's scaled_dot_product_attention). "full" checkpointing keeps each layer's input, 2·b·s·h, and one layer's
        whole set while it is computed again. On top come the last normalisation and the output layer: 4·b·s·h, and
        the logits in float32, 4·b·s·vocabulary.
        """
        tokens, size = batch * sequence, ELEMENT_BYTES[dtype]
        layer = tokens * size * (6 * self.width + 2 * self.kv_width + (4 if self.gated else 2) * self.ffn)
        if attention == "eager":
            layer += size * batch * self.heads * sequence * sequence
        ends = tokens * (2 * size * self.width + 4 * self.vocabulary)
        if checkpointing == "full":
            return self.layers * tokens * size * self.width + layer + ends
        return self.layers * layer + ends


@dataclass(frozen=True)
class ModelSpec:
    """What is trained. `sizes`: elements of each trainable parameter (or of each layer), a tied one once."""

    name: str
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...] | None = None
    """Of each of `sizes`; None: all are of the dtype that is planned for."""
    frozen_bytes: int = 0
    """Of parameters that are not trained: their weights are needed, and nothing else."""
    frozen: int = 0
    architecture: Architecture | None = None
    """None: activations and FLOP cannot be predicted."""
    note: str = ""
    """What of this was assumed."""

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 0 or not sum(self.sizes):
            raise ValueError(f"{self.name} has no trainable parameter; there is nothing to plan")
        if self.dtypes is not None and len(self.dtypes) != len(self.sizes):
            raise ValueError(f"{self.name}: {len(self.dtypes)} dtypes for {len(self.sizes)} parameters")

    @property
    def parameters(self) -> int:
        """Trainable ones."""
        return sum(self.sizes)

    def by_dtype(self, dtype: str) -> dict[str, int]:
        """Trainable parameters of each dtype, `dtype` where the spec leaves it open."""
        counted: dict[str, int] = {}
        for number, size in enumerate(self.sizes):
            own = dtype if self.dtypes is None else self.dtypes[number]
            counted[own] = counted.get(own, 0) + size
        return counted

    @classmethod
    def of(cls, module: Any, name: str | None = None) -> ModelSpec:
        """The spec of a `torch.nn.Module`, on any device, "meta" too. Nothing of it is read or changed.

        Raises TypeError for what has no parameters, ValueError where none is trainable or one is of a dtype that has no
        state. The architecture is taken from `module.config` where it names one as Hugging Face or `offload_lab.training` do.
        """
        if not hasattr(module, "named_parameters"):
            raise TypeError(
                f"model={module!r}: a torch.nn.Module, a ModelSpec, the name of a known model, or a number of parameters"
            )
        sizes, dtypes, frozen, frozen_bytes = [], [], 0, 0
        for label, parameter in module.named_parameters():  # a tied one comes once
            dtype = str(parameter.dtype).removeprefix("torch.")
            if not parameter.requires_grad:
                frozen += parameter.numel()
                frozen_bytes += parameter.numel() * parameter.element_size()
                continue
            if dtype not in ELEMENT_BYTES:
                raise ValueError(f"{label} is {dtype}; plans are made for {', '.join(ELEMENT_BYTES)}. Convert the model first.")
            sizes.append(parameter.numel())
            dtypes.append(dtype)
        architecture = _architecture(getattr(module, "config", None))
        called = type(module).__name__ if name is None else name
        return cls(called, tuple(sizes), tuple(dtypes), frozen_bytes, frozen, architecture)

    @classmethod
    def sized(cls, parameters: int) -> ModelSpec:
        """A model of which only the count is known. Its shape is assumed: Llama's, a layer for each 128 of width.

        That is 40 layers of width 5120 for 13e9, as the published one has. Raises ValueError for less than one parameter.
        """
        _whole("parameters=", parameters, 1)
        layers = max(1, round((parameters / (12 * 128**2)) ** (1 / 3)))
        width = 128 * layers
        shape = Architecture(layers, width, heads=layers, ffn=round(width * 8 / 3), vocabulary=32_000)
        note = f"only the count is known: activations and FLOP are those of {layers} layers of width {width}, assumed"
        return cls(f"{parameters:,} parameters", (parameters,), architecture=shape, note=note)


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        end = ")" if "(" in name else ""
        raise ValueError(f"{name}{value!r}{end}: a whole number of at least {least} is needed")


def _architecture(config: Any) -> Architecture | None:
    """From the names that Hugging Face's and our own configurations use, or None."""

    def first(*names: str) -> Any:
        return next((getattr(config, name) for name in names if getattr(config, name, None) is not None), None)

    layers, width = first("num_hidden_layers", "n_layer", "layers"), first("hidden_size", "n_embd", "width")
    heads, vocabulary = first("num_attention_heads", "n_head", "heads"), first("vocab_size", "vocabulary", "vocab")
    if not all(isinstance(value, int) for value in (layers, width, heads, vocabulary)):
        return None
    gated = first("intermediate_size") is not None and first("hidden_act") == "silu"
    ffn = first("intermediate_size", "n_inner") or 4 * width
    return Architecture(layers, width, heads, ffn, vocabulary, first("num_key_value_heads"), gated=gated)


def _gpt2(layers: int, width: int, heads: int) -> Architecture:
    """Radford et al. 2019, table 2; vocabulary and positions as in https://huggingface.co/openai-community/gpt2."""
    return Architecture(
        layers, width, heads, 4 * width, 50_257, positions=1024, gated=False, biases="all", norm_bias=True, tied=True
    )


def _llama(layers: int, width: int, heads: int, ffn: int, vocabulary: int = 32_000, kv: int | None = None, tied: bool = False):
    return Architecture(layers, width, heads, ffn, vocabulary, kv, tied=tied)


KNOWN: dict[str, Architecture] = {
    "gpt2": _gpt2(12, 768, 12),
    "gpt2-medium": _gpt2(24, 1024, 16),
    "gpt2-large": _gpt2(36, 1280, 20),
    "gpt2-xl": _gpt2(48, 1600, 25),
    "tinyllama-1.1b": _llama(22, 2048, 32, 5632, kv=4),
    # Touvron et al. 2023, arXiv:2302.13971, table 2, and arXiv:2307.09288; hidden widths from the published configurations
    "llama-7b": _llama(32, 4096, 32, 11_008),
    "llama-13b": _llama(40, 5120, 40, 13_824),
    "llama-30b": _llama(60, 6656, 52, 17_920),
    "llama-65b": _llama(80, 8192, 64, 22_016),
    "llama-2-7b": _llama(32, 4096, 32, 11_008),
    "llama-2-13b": _llama(40, 5120, 40, 13_824),
    "llama-2-70b": _llama(80, 8192, 64, 28_672, kv=8),
    # Grattafiori et al. 2024, arXiv:2407.21783, table 3; the small ones from their published configurations
    "llama-3-8b": _llama(32, 4096, 32, 14_336, 128_256, kv=8),
    "llama-3-70b": _llama(80, 8192, 64, 28_672, 128_256, kv=8),
    "llama-3.1-405b": _llama(126, 16_384, 128, 53_248, 128_256, kv=8),
    "llama-3.2-1b": _llama(16, 2048, 32, 8192, 128_256, kv=8, tied=True),
    "llama-3.2-3b": _llama(28, 3072, 24, 8192, 128_256, kv=8, tied=True),
    "mistral-7b": _llama(32, 4096, 32, 14_336, kv=8),  # Jiang et al. 2023, arXiv:2310.06825, table 1
    # Qwen team 2024, arXiv:2412.15115; widths from the published configurations
    "qwen2.5-0.5b": Architecture(24, 896, 14, 4864, 151_936, 2, biases="qkv", tied=True),
    "qwen2.5-7b": Architecture(28, 3584, 28, 18_944, 152_064, 4, biases="qkv"),
}
_ALIASES = {"gpt2-small": "gpt2"}


def known(name: str) -> ModelSpec:
    """A published model by name. Raises ValueError that lists the names."""
    key = _ALIASES.get(name.lower(), name.lower())
    if key not in KNOWN:
        near = difflib.get_close_matches(key, KNOWN, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"model={name!r} is not known.{hint} Known are {', '.join(KNOWN)}; or give a number of parameters")
    return ModelSpec(key, KNOWN[key].sizes(), architecture=KNOWN[key])
