"""Predicted bytes against the engine itself: what it reserves, takes on disk, reads and writes."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from offload_lab import ModelSpec, OffloadAdamW, OffloadPolicy
from offload_lab.engine_bytes import HUGE_PAGE, _pages, engine_bytes
from offload_lab.partition import STATE_BYTES

SHAPES = (300_000, 1, 70_001, 4096, 255)


@pytest.mark.parametrize("dtype", sorted(STATE_BYTES))
@pytest.mark.parametrize(
    "settings",
    [
        {"tier": "ram"},
        {"tier": "ram", "state_dtype": "int8"},
        {"tier": "disk"},
        {"tier": "disk", "ram_budget": "2MiB"},
        {"tier": "disk", "ram_budget": "3MiB", "partition_size": 40_000, "durability": "checkpoint"},
        {"tier": "disk", "ram_budget": "100MiB", "state_dtype": "bfloat16"},
        {"tier": "disk", "ram_budget": "2MiB", "durability": 10, "depth": 3},
    ],
    ids=str,
)
def test_the_engine_takes_what_is_predicted(tmp_path, dtype, settings):
    parameters = [torch.nn.Parameter(torch.ones(n, dtype=getattr(torch, dtype))) for n in SHAPES]
    if settings["tier"] == "disk":
        settings = {**settings, "directory": tmp_path / "state"}
    policy = OffloadPolicy(**settings)
    predicted = engine_bytes(ModelSpec.of(torch.nn.ParameterList(parameters)), "float32", policy)
    with OffloadAdamW(parameters, offload=policy) as optimizer:
        each = policy.publish_every or 1  # steps of which one is made durable
        for step in range(1 + each):
            for parameter in parameters:
                parameter.grad = torch.ones_like(parameter)
            if step == 1:  # the first reads nothing yet
                before = optimizer.stats()
            optimizer.step()
        seen = optimizer.stats()
        assert (seen["partitions"], seen["resident_partitions"]) == (predicted.partitions, predicted.resident_partitions)
        assert optimizer.memory()["ram"] == predicted.reserved
        # A file system may count blocks of its own, which say where a file's are.
        assert 0 <= optimizer.memory()["disk"] - sum(predicted.disk.values()) <= 65536
        assert seen["resident_bytes"] == sum(predicted.resident.values())
        assert predicted.buffers <= seen["buffer_bytes"]
        assert seen["bytes_read"] - before["bytes_read"] == each * predicted.read
        assert abs(seen["bytes_written"] - before["bytes_written"] - each * predicted.written) <= each  # it is rounded


def test_frozen_parameters_have_no_state():
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(5000)), torch.nn.Parameter(torch.ones(9000), False)])
    assert sum(engine_bytes(ModelSpec.of(model), "float32", OffloadPolicy()).resident.values()) == 40960  # 8 · 5,000, in blocks


def test_kinds_of_a_bfloat16_state_by_hand():
    found = engine_bytes(ModelSpec.sized(1_000_000), "bfloat16", OffloadPolicy(tier="disk", directory="d"))
    assert found.disk["moments"] == 8_000_000 and found.disk["master"] == found.disk["weights"] == 2_000_000
    one = 12_000_000 + found.disk["record padding"]
    assert found.disk["second generation"] == one and 0 <= found.disk["record padding"] < 12288 * found.partitions


@given(st.integers(0, 5), st.integers(0, 3 * HUGE_PAGE), st.integers(0, 3 * HUGE_PAGE))
@example(2, HUGE_PAGE // 10, HUGE_PAGE // 2)  # both in the first page, which is less than they are apart
def test_pages_are_counted_once(buffers, touched, room):
    apart = touched + room
    pages = set()
    for number in range(buffers):
        first, end = number * apart, number * apart + touched
        pages.update(range(first // HUGE_PAGE, -(-end // HUGE_PAGE)) if touched else ())
    assert _pages(buffers, apart, touched) == min(len(pages) * HUGE_PAGE, buffers * apart)
