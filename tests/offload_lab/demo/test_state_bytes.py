"""The arithmetic of the lessons against figures worked out by hand."""

import pytest

from offload_lab.demo import PRESETS
from offload_lab.state_bytes import readable, training_bytes
from offload_lab.training import GPTConfig, TinyGPT


@pytest.mark.parametrize(
    "dtype, optimizer, steady, peak, disk",
    [
        ("float32", "adamw", 4 + 4 + 4 + 4, 16, 0),
        ("bfloat16", "adamw", 2 + 2 + 4 + 4 + 4, 18, 0),
        ("float16", "adamw", 16, 18, 0),
        ("float32", "ram", 4 + 4 + 8, 16, 0),
        ("bfloat16", "ram", 2 + 2 + 10, 14, 0),
        ("float16", "ram", 2 + 2 + 12, 16, 0),
        ("float32", "disk", 8, 8, 2 * (8 + 4)),
        ("bfloat16", "disk", 4, 4, 2 * (10 + 2)),
        ("float16", "disk", 4, 4, 2 * 12),
    ],
)
def test_bytes_a_parameter(dtype, optimizer, steady, peak, disk):
    n = 1_000_003
    budget = 5_000_000 if optimizer == "disk" else None
    made = training_bytes(n, dtype, optimizer, ram_budget=budget)
    assert made.steady_bytes == steady * n + (budget or 0)
    assert made.peak_bytes == peak * n + (budget or 0)
    assert made.disk_bytes == disk * n
    assert f"{made.peak_bytes:,}" in str(made)


@pytest.mark.parametrize("wrong", [(0,), (True,), (1.5,), (10, "int8"), (10, "float32", "sgd")])
def test_what_it_does_not_know_is_named(wrong):
    with pytest.raises(ValueError, match="needed"):
        training_bytes(*wrong)


@pytest.mark.parametrize(
    "nbytes, text", [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (453_000_000, "453 MB"), (1_234_000_000, "1.23 GB")]
)
def test_bytes_read_aloud(nbytes, text):
    assert readable(nbytes) == text


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_a_presets_arithmetic_is_the_models(preset):
    small = type(preset)(layers=2, width=64, steps=1, heads=4)
    model = TinyGPT(GPTConfig(layers=2, width=64, heads=4, context=small.context))
    assert small.parameters == model.parameter_count()
    assert preset.parameters > 20_000_000
