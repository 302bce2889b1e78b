"""What a transformer keeps for backward, and how many operations it takes. Pure: no torch.

After Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models" (https://arxiv.org/abs/2205.05198),
equation 2 and section 4.3: with two bytes an element, dropout and a feed-forward network of four widths one layer keeps
s·b·h·(34 + 5·a·s/h) bytes. Here the same tensors are counted for other shapes. What a framework keeps beyond these (float32
copies inside a norm, say) is not counted.
"""

from __future__ import annotations

from offload_lab.models import Architecture, ModelSpec


def layer_bytes(shape: Architecture, batch: int, sequence: int, element: int = 2, fused_attention: bool = True) -> int:
    """Bytes that one layer keeps for backward. `fused_attention`: scores are computed again (FlashAttention, and torch's
    `scaled_dot_product_attention`), of which one float32 a head and token stays."""
    w = shape.width
    # Inputs of the norms; of the three projections; queries, keys and values; the input of the output projection.
    attention = shape.norms * w + w + shape.query_width + 2 * shape.kv_width + shape.query_width
    if shape.qk_norms:  # what goes into them
        attention += shape.query_width + shape.kv_width
    # The input of the first matrix; then GELU's input and output, or gate, SiLU's output, up, and their product.
    network = w + (4 if shape.gated else 2) * shape.inner
    masks = 2 * w if shape.dropout else 0  # a byte an element: after attention and after the network
    token = element * (attention + network) + masks
    if fused_attention:
        token += 4 * shape.heads
    else:  # softmax's output; with dropout its mask and its output too
        token += shape.heads * sequence * (element + (1 + element if shape.dropout else 0))
    return batch * sequence * token


def activation_bytes(
    shape: Architecture, batch: int, sequence: int, element: int = 2, checkpointing: str = "none", fused_attention: bool = True
) -> int:
    """Bytes of activations at their most, when forward ends: all layers (or, with checkpointing="full", their inputs and one
    layer computed again), the last norm's and the head's input, and the logits in float32.

    Raises ValueError for sequences longer than learned positions, and for a checkpointing that is not known.
    """
    if checkpointing not in ("none", "full"):
        raise ValueError(f"checkpointing={checkpointing!r}: one of 'none', 'full' is needed")
    if shape.positions and sequence > shape.positions:
        raise ValueError(f"sequence={sequence:,}: this model has {shape.positions:,} positions; give at most that")
    layer = layer_bytes(shape, batch, sequence, element, fused_attention)
    inputs = batch * sequence * shape.width * element
    layers = shape.layers * layer if checkpointing == "none" else shape.layers * inputs + layer
    outside = 2 * inputs + (batch * sequence * shape.width if shape.dropout else 0)
    return layers + outside + 4 * batch * sequence * shape.vocabulary


def flops(model: ModelSpec, tokens: int, sequence: int, checkpointing: str = "none") -> float:
    """Floating-point operations of forward and backward over `tokens`: six a weight and token that is multiplied, and twelve ·
    layers · width · sequence a token for attention (Chowdhery et al. 2022, "PaLM", appendix B, https://arxiv.org/abs/2204.02311).

    Frozen weights need no gradient of their own: four. With checkpointing="full" forward runs twice: a third more.
    """
    shape = model.architecture
    looked_up = 0
    if shape is not None and not shape.assumed:  # embeddings are read, not multiplied; a tied one is multiplied as the head
        looked_up = (0 if shape.tied else shape.vocabulary * shape.width) + shape.positions * shape.width
    trained = max(model.parameters - looked_up, 0)
    each = 6 * trained + 4 * model.frozen
    if shape is not None:
        each += 12 * shape.layers * shape.query_width * sequence
    return each * tokens * (4 / 3 if checkpointing == "full" else 1)
