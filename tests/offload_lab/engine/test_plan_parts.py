"""The pure parts: cutting parameters, placing partitions, scheduling a step, reading a policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab import OffloadPolicy
from offload_lab.caching import Cache
from offload_lab.partition import BLOCK, STATE_BYTES, WEIGHT_BYTES, cut
from offload_lab.policy import parse_bytes
from offload_lab.residency import buffer_bytes, partition_size, place
from offload_lab.schedule import Item, step

shapes = st.lists(st.tuples(st.integers(0, 5000), st.sampled_from(sorted(STATE_BYTES))), max_size=12)


@given(shapes, st.integers(1, 3000))
def test_every_element_lies_in_exactly_one_span(parameters, size):
    partitions = cut([(i, numel, dtype) for i, (numel, dtype) in enumerate(parameters)], size)
    covered = {i: [] for i in range(len(parameters))}
    for index, part in enumerate(partitions):
        assert part.index == index and 1 <= part.numel <= size
        offset = 0
        for span in part.spans:
            assert span.offset == offset and span.length > 0
            assert parameters[span.parameter][1] == part.dtype
            offset += span.length
            covered[span.parameter].append((span.start, span.length))
        assert offset == part.numel
    for i, (numel, _) in enumerate(parameters):
        at = 0
        for start, length in sorted(covered[i]):
            assert start == at
            at += length
        assert at == numel


@given(shapes, st.integers(1, 3000))
def test_fields_do_not_overlap_and_records_fit_their_buffer(parameters, size):
    for part in cut([(i, numel, dtype) for i, (numel, dtype) in enumerate(parameters)], size):
        n = part.numel
        assert part.exp_avg_at + 4 * n <= part.exp_avg_sq_at
        assert part.exp_avg_sq_at + 4 * n <= part.master_at
        assert part.master_at + (STATE_BYTES[part.dtype] - 8) * n <= part.weight_at == part.state_bytes
        whole = part.record_bytes(True)
        assert part.weight_at + WEIGHT_BYTES[part.dtype] * n <= whole <= buffer_bytes(size)
        assert whole % BLOCK == part.state_bytes % BLOCK == 0
        assert part.state_bytes - STATE_BYTES[part.dtype] * n < BLOCK + 128


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 9)), max_size=20),
    st.integers(1, 6),
)
def test_a_schedule_never_uses_a_buffer_before_it_is_free(rows, depth):
    items = [Item(i, read, write, resident) for i, (resident, read, write) in enumerate(rows)]
    tasks = step(items, Cache(depth, depth))
    assert [task.number for task in tasks] == list(range(len(tasks)))
    assert all(number < task.number for task in tasks for number in task.after)
    # all that a task waits for, directly or through others
    waits = {}
    for task in tasks:
        waits[task.number] = set(task.after).union(*(waits[n] for n in task.after))
    for task in tasks:
        for other in tasks[: task.number]:
            same_partition = other.partition == task.partition
            same_buffer = task.buffer is not None and other.buffer == task.buffer
            if same_partition or same_buffer:
                assert other.number in waits[task.number]
    for item in items:
        kinds = [task.kind for task in tasks if task.partition == item.partition]
        expected = ([] if item.resident else ["read"]) + ["update"] + (["write"] if item.write_bytes else [])
        assert kinds == expected


@given(st.integers(1, 5_000_000), st.integers(4 * buffer_bytes(256), 10**9))
def test_placement_stays_within_the_budget(elements, budget):
    policy = OffloadPolicy(tier="disk", directory="x", ram_budget=budget)
    size = partition_size(elements, policy)
    partitions = cut([(0, elements, "bfloat16")], size)
    placed = place(partitions, size, policy)
    assert placed.ram_bytes <= budget
    assert placed.buffers == 0 or len(placed.resident) < len(partitions)
    if placed.buffers:
        records = sum(p.record_bytes(True) for p in partitions if p.index in placed.resident)
        assert records + placed.buffers * placed.buffer_bytes == placed.ram_bytes


def test_a_budget_that_cannot_hold_the_state_is_refused_with_the_arithmetic():
    partitions = cut([(0, 1_000_000, "float32")], 1 << 22)
    with pytest.raises(ValueError, match=r"8,0\d\d,\d\d\d bytes.*ram_budget is 7,000,000"):
        place(partitions, 1 << 22, OffloadPolicy(tier="ram", ram_budget=7_000_000))
    with pytest.raises(ValueError, match="buffers"):
        partition_size(1_000_000, OffloadPolicy(tier="disk", directory="x", ram_budget=20_000))
    with pytest.raises(ValueError, match="partition_size"):
        partition_size(10_000_000, OffloadPolicy(tier="disk", directory="x", ram_budget="1MB", partition_size=1_000_000))


@pytest.mark.parametrize(
    "text, nbytes",
    [("1", 1), ("300MiB", 300 * 2**20), ("2 GB", 2 * 10**9), ("1.5KiB", 1536), ("7B", 7), (" 3 TiB ", 3 * 2**40), (12, 12)],
)
def test_sizes_are_read(text, nbytes):
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize("text", ["", "MiB", "-3MiB", "3 Go", "1,5GB", "0", 0, -1, True, 1.5, None, "1e9"])
def test_sizes_that_mean_nothing_are_refused(text):
    with pytest.raises(ValueError, match="size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    "wrong, named",
    [
        ({"tier": "gpu"}, "tier='gpu'"),
        ({"tier": "disk"}, "directory"),
        ({"tier": "ram", "directory": "x"}, "contradicts"),
        ({"tier": "ram", "existing": "resume"}, "disk tier"),
        ({"tier": "disk", "directory": "x", "depth": 1}, "depth=1"),
        ({"tier": "disk", "directory": "x", "ram_budget": "lots"}, "ram_budget='lots'"),
        ({"tier": "disk", "directory": "x", "partition_size": 0}, "partition_size=0"),
        ({"tier": "disk", "directory": "x", "durability": "checkpoint", "existing": "resume"}, "contradicts"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(wrong, named):
    with pytest.raises(ValueError, match=named):
        OffloadPolicy(**wrong)
