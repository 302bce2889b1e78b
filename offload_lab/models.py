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
    head_width: int | None = None
    """Of one head, where it is not width / heads (Gemma 2, Qwen3)."""
    norms: int = 2
    """In a layer: before attention and before the network; Gemma 2 has one after each as well, Phi one for both."""
    qk_norms: bool = False
    """Of every query and key, with one gain for all heads (Qwen3)."""
    head_bias: bool = False
    """On the head, where it is not tied (Phi)."""
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
            if name == "heads" and self.head_width is not None:
                continue
            if value is not None and (value < 1 or whole % value):
                raise ValueError(f"Architecture({name}={value!r}): {whole} cannot be shared equally by it; give a divisor")

    @property
    def kv_width(self) -> int:
        """Width of keys, and of values: less than `width` with grouped-query attention."""
        return (self.head_width or self.width // self.heads) * (self.kv_heads or self.heads)

    @property
    def query_width(self) -> int:
        """Width of queries, and of what attention gives: `width`, unless heads have a width of their own."""
        return self.width if self.head_width is None else self.head_width * self.heads

    @property
    def layer(self) -> tuple[Weight, ...]:
        """The parameters of one layer, in the order of a module."""
        w, kv, inner, qw = self.width, self.kv_width, self.inner, self.query_width
        norm = [Weight("norm", w)] + ([Weight("norm.bias", w)] if self.biases else [])
        if self.gated:
            attention = [Weight("q", w * qw), Weight("k", w * kv), Weight("v", w * kv), Weight("o", qw * w)]
            bias = [Weight("q.bias", qw), Weight("k.bias", kv), Weight("v.bias", kv)] if self.qkv_biases else []
            network = [Weight(name, w * inner) for name in ("gate", "up", "down")]
        else:
            attention = [Weight("qkv", w * (qw + 2 * kv)), Weight("o", qw * w)]
            bias = [Weight("qkv.bias", qw + 2 * kv), Weight("o.bias", w)] if self.biases else []
            network = [Weight("up", w * inner), Weight("down", w * inner)]
            network += [Weight("up.bias", inner), Weight("down.bias", w)] if self.biases else []
        if self.qk_norms:
            gain = self.head_width or w // self.heads
            bias = [*bias, Weight("q.norm", gain), Weight("k.norm", gain)]
        return (*norm, *attention, *bias, *norm * (self.norms - 1), *network)

    def weights(self) -> tuple[Weight, ...]:
        """Every parameter: embeddings, layers, the last norm, and the head where it is not tied."""
        first = [Weight("tokens", self.vocabulary * self.width)]
        first += [Weight("positions", self.positions * self.width)] if self.positions else []
        last = [Weight("norm", self.width)] + ([Weight("norm.bias", self.width)] if self.biases else [])
        last += [] if self.tied else [Weight("head", self.vocabulary * self.width)]
        last += [Weight("head.bias", self.vocabulary)] if self.head_bias and not self.tied else []
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
        counted = sum(weight.numel for weight in seen.values())
        shape = _configured(getattr(module, "config", None), counted)
        return cls(name or type(module).__name__, tuple(seen.values()), shape)

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


_OF_TYPE: dict[str, dict[str, Any]] = {
    "gpt2": {"gated": False, "biases": True},
    "phi": {"gated": False, "biases": True, "norms": 1, "head_bias": True},
    "gemma2": {"norms": 4},
    "qwen2": {"qkv_biases": True},
    "qwen3": {"qk_norms": True},
}
"""What a Hugging Face configuration leaves to the code of its model."""


def _configured(config: Any, counted: int) -> Architecture | None:
    """The architecture that a Hugging Face configuration describes, or None where it does not say all of it. Of a kind that is
    not known here, the feed-forward network is the one, of two matrices or three, that comes nearer to `counted` elements."""

    def first(*names: str) -> Any:
        return next((getattr(config, name) for name in names if getattr(config, name, None) is not None), None)

    layers, width = first("num_hidden_layers", "n_layer"), first("hidden_size", "n_embd")
    heads, vocabulary = first("num_attention_heads", "n_head"), first("vocab_size")
    if None in (layers, width, heads, vocabulary):
        return None
    inner = first("intermediate_size", "n_inner")
    kind = getattr(config, "model_type", "")
    longest = first("max_position_embeddings", "n_positions") or 2048
    head = first("head_dim")
    common = {
        "kv_heads": first("num_key_value_heads"),
        "tied": bool(first("tie_word_embeddings")),
        "positions": longest if kind == "gpt2" else 0,
        "dropout": bool(first("attn_pdrop", "attention_dropout")),
        "context": min(2048, longest),
        "head_width": None if head is None or head * heads == width else head,
    }
    ways = [_OF_TYPE[kind]] if kind in _OF_TYPE else [{"gated": True}, {"gated": False}]
    shapes = [Architecture(layers, width, heads, vocabulary, inner or 4 * width, **common, **way) for way in ways]
    return min(shapes, key=lambda shape: abs(sum(w.numel * w.times for w in shape.weights()) - counted))
