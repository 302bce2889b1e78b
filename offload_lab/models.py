"""A model as the planner sees it: how many elements each parameter has, and the shape behind its activations. Pure: no torch.

`spec("llama-2-13b")` is one computed from published dimensions (`known_models.py`), `ModelSpec.of(module)` one counted,
`ModelSpec.sized(13_000_000_000)` one of which nothing is known but its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from offload_lab.partition import STATE_BYTES


@dataclass(frozen=True)
class Weight:
    """`times` parameters of `numel` elements each. `dtype` is None where the planner's argument decides."""

    name: str
    numel: int
    times: int = 1
    dtype: str | None = None
    trainable: bool = True


@dataclass(frozen=True)
class Architecture:
    """The dimensions of a decoder-only transformer, by the names of the Hugging Face configurations where these agree."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    inner: int
    """Width of the feed-forward network: 4 · width in GPT-2."""
    kv_heads: int | None = None
    """Heads of keys and values; None: as many as `heads`."""
    gated: bool = True
    """Three matrices in the feed-forward network (SwiGLU), or two (GELU)."""
    tied: bool = False
    """The head is the token embedding."""
    positions: int = 0
    """Learned position embeddings, which no longer sequence can use; 0: rotary."""
    biases: bool = False
    """On every linear layer, and norms with shift as well as gain (GPT-2)."""
    qkv_biases: bool = False
    """On query, key and value only (Qwen2.5)."""
    dropout: bool = False
    context: int = 2048
    """Tokens of a sequence where a plan is given none: at most what the model was published with."""
    assumed: bool = False
    """Not published: derived from a number of parameters."""

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "vocabulary", "inner", "context"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"Architecture({name}={value!r}): a whole number of at least 1 is needed")
        for name, whole in (("heads", self.width), ("kv_heads", self.heads)):
            value = getattr(self, name)
            if value is not None and (value < 1 or whole % value):
                raise ValueError(f"Architecture({name}={value!r}): {whole} cannot be shared equally by it; give a divisor")

    @property
    def kv_width(self) -> int:
        """Width of keys, and of values: less than `width` with grouped-query attention."""
        return self.width // self.heads * (self.kv_heads or self.heads)

    @property
    def layer(self) -> tuple[Weight, ...]:
        """The parameters of one layer, in the order of a module."""
        w, kv, inner = self.width, self.kv_width, self.inner
        norm = [Weight("norm", w)] + ([Weight("norm.bias", w)] if self.biases else [])
        if self.gated:
            attention = [Weight("q", w * w), Weight("k", w * kv), Weight("v", w * kv), Weight("o", w * w)]
            bias = [Weight("q.bias", w), Weight("k.bias", kv), Weight("v.bias", kv)] if self.qkv_biases else []
            network = [Weight(name, w * inner) for name in ("gate", "up", "down")]
        else:
            attention = [Weight("qkv", w * (w + 2 * kv)), Weight("o", w * w)]
            bias = [Weight("qkv.bias", w + 2 * kv), Weight("o.bias", w)] if self.biases else []
            network = [Weight("up", w * inner), Weight("down", w * inner)]
            network += [Weight("up.bias", inner), Weight("down.bias", w)] if self.biases else []
        return (*norm, *attention, *bias, *norm, *network)

    def weights(self) -> tuple[Weight, ...]:
        """Every parameter: embeddings, layers, the last norm, and the head where it is not tied."""
        first = [Weight("tokens", self.vocabulary * self.width)]
        first += [Weight("positions", self.positions * self.width)] if self.positions else []
        last = [Weight("norm", self.width)] + ([Weight("norm.bias", self.width)] if self.biases else [])
        last += [] if self.tied else [Weight("head", self.vocabulary * self.width)]
        return (*first, *(Weight(w.name, w.numel, self.layers) for w in self.layer), *last)


@dataclass(frozen=True)
class ModelSpec:
    """A model by name: its parameters, its architecture where it is known, and where its dimensions were published."""

    name: str
    weights: tuple[Weight, ...]
    architecture: Architecture | None = None
    source: str = ""

    @classmethod
    def build(cls, name: str, architecture: Architecture, source: str = "") -> ModelSpec:
        return cls(name, architecture.weights(), architecture, source)

    @classmethod
    def sized(cls, parameters: int) -> ModelSpec:
        """A model of exactly `parameters` of which nothing else is known.

        Its architecture is assumed: twelve width² a layer and 128 of width for each layer, which is what the models of 7 to
        70 billion parameters come close to (GPT-3 13B: 40 layers of 5,120), with a feed-forward network of four widths.
        Raises ValueError for anything but a whole number of at least 1.
        """
        if isinstance(parameters, bool) or not isinstance(parameters, int) or parameters < 1:
            raise ValueError(f"parameters={parameters!r}: a whole number of at least 1 is needed")
        layers = max(1, round((parameters / (12 * 128**2)) ** (1 / 3)))
        width = max(64, round((parameters / (12 * layers)) ** 0.5 / 64) * 64)
        shape = Architecture(layers, width, width // 64, 32_000, 4 * width, gated=False, assumed=True)
        weights = []
        for number in range(layers):
            elements = parameters // layers + (number < parameters % layers)
            twelfth, third = elements // 12, elements // 3  # attention is a third of a layer
            sizes = {"q": twelfth, "k": twelfth, "v": twelfth, "o": twelfth, "up": third}
            sizes["down"] = elements - sum(sizes.values())
            weights += [Weight(f"{number}.{name}", numel) for name, numel in sizes.items()]
        return cls(f"a model of {parameters:,} parameters", tuple(weights), shape)

    @classmethod
    def of(cls, module: Any, name: str | None = None) -> ModelSpec:
        """Count a torch module: each parameter once, however many names it has, with its own dtype; those that need no gradient
        are frozen.

        The architecture is read from a Hugging Face `config`, where the module has one. Raises ValueError for a module without
        parameters, or with a trainable one of a dtype that no state can be kept for.
        """
        seen: dict[int, Weight] = {}
        for called, parameter in module.named_parameters(remove_duplicate=False):
            dtype = str(parameter.dtype).removeprefix("torch.")
            if parameter.requires_grad and dtype not in STATE_BYTES:
                raise ValueError(f"{called} is {dtype}; state can be kept for {', '.join(STATE_BYTES)}. Convert the model")
            if dtype not in _BYTES:
                raise ValueError(f"{called} is {dtype}, whose bytes are not known here; known are {', '.join(_BYTES)}")
            weight = Weight(called, parameter.numel(), 1, dtype, bool(parameter.requires_grad))
            seen.setdefault(id(parameter), weight)
        if not seen:
            raise ValueError(f"{type(module).__name__} has no parameters; there is nothing to plan")
        return cls(name or type(module).__name__, tuple(seen.values()), _configured(getattr(module, "config", None)))

    def each(self) -> Iterator[Weight]:
        """Every parameter on its own, as `weights` counts them."""
        for weight in self.weights:
            for _ in range(weight.times):
                yield weight

    @property
    def parameters(self) -> int:
        """Trainable elements."""
        return sum(weight.numel * weight.times for weight in self.weights if weight.trainable)

    @property
    def frozen(self) -> int:
        return sum(weight.numel * weight.times for weight in self.weights if not weight.trainable)

    def largest(self) -> int:
        """Elements of the largest parameter."""
        return max(weight.numel for weight in self.weights)

    def layer_elements(self) -> int:
        """Elements of one layer, or of the largest parameter where no layers are known."""
        shape = self.architecture
        if shape is None:
            return self.largest()
        if shape.assumed:
            return -(-(self.parameters + self.frozen) // shape.layers)
        return sum(weight.numel for weight in shape.layer)

    def weight_bytes(self, dtype: str, trainable_only: bool = False) -> int:
        """Bytes of the weights as the model computes with them."""
        chosen = [weight for weight in self.weights if weight.trainable or not trainable_only]
        return sum(weight.numel * weight.times * element_bytes(weight.dtype or dtype) for weight in chosen)


_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1}
_BYTES |= {"float8_e4m3fn": 1, "float8_e5m2": 1, "bool": 1}


def element_bytes(dtype: str) -> int:
    """Bytes of one element. Raises ValueError for a dtype that is not known."""
    if dtype not in _BYTES:
        raise ValueError(f"dtype={dtype!r}: one of {', '.join(_BYTES)} is needed")
    return _BYTES[dtype]


def _configured(config: Any) -> Architecture | None:
    """The architecture that a Hugging Face configuration describes, or None where it does not say all of it."""

    def first(*names: str) -> Any:
        return next((getattr(config, name) for name in names if getattr(config, name, None) is not None), None)

    layers, width = first("num_hidden_layers", "n_layer"), first("hidden_size", "n_embd")
    heads, vocabulary = first("num_attention_heads", "n_head"), first("vocab_size")
    if None in (layers, width, heads, vocabulary):
        return None
    inner = first("intermediate_size", "n_inner")
    gpt2 = getattr(config, "model_type", "") == "gpt2"
    longest = first("max_position_embeddings", "n_positions") or 2048
    return Architecture(
        layers,
        width,
        heads,
        vocabulary,
        inner or 4 * width,
        kv_heads=first("num_key_value_heads"),
        gated=not gpt2,
        tied=bool(first("tie_word_embeddings")),
        positions=longest if gpt2 else 0,
        biases=gpt2,
        dropout=bool(first("attn_pdrop", "attention_dropout")),
        context=min(2048, longest),
    )
