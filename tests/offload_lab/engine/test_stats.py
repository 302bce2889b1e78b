"""What an optimizer tells of itself: shares that add up, bytes that agree, words that a person can read."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from offload_lab import OffloadAdamW
from offload_lab.stalls import attribute, lane_use
from offload_lab.trace import Event, Recorder


def event(kind, start, end, nbytes=0):
    return Event(kind, "lane", 0, start, end, nbytes)


def test_a_step_by_hand():
    """0 to 4 read, 4 to 6 update, 5 to 9 write; then nothing until 10."""
    events = [event("read", 0, 4, 400), event("update", 4, 6), event("write", 5, 9, 200)]
    shares = attribute(events, 0, 10)
    assert shares == pytest.approx({"disk reads": 0.4, "update": 0.2, "disk writes": 0.3, "backward": 0.0, "other": 0.1})
    use = lane_use(events, 0, 10)
    assert (use["disk reads"].bandwidth, use["disk writes"].bandwidth) == (100, 50)


def test_while_updates_are_to_come_it_is_the_read_that_is_waited_for():
    events = [event("update", 0, 1), event("write", 1, 5), event("read", 2, 4), event("update", 5, 6)]
    assert attribute(events, 0, 6)["disk reads"] == pytest.approx(2 / 6)
    assert attribute(events, 0, 6)["disk writes"] == pytest.approx(2 / 6), "a buffer that is not free yet"


spans = st.tuples(st.sampled_from(["read", "write", "update", "gradient"]), st.floats(-1, 11), st.floats(0, 5))


@given(st.lists(spans, max_size=20))
def test_shares_are_shares_and_add_up(rows):
    shares = attribute([event(kind, start, start + length) for kind, start, length in rows], 0, 10)
    assert all(share >= 0 for share in shares.values())
    assert sum(shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("overlap", ["none", "forward", "backward"])
def test_bytes_of_the_last_step_are_those_that_were_counted(model, train, adamw, disk, overlap):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(overlap=overlap, partition_size=300, ram_budget=80_000))
    train(module, optimizer, 3)
    before = optimizer.stats()
    train(module, optimizer, 1, start=3)
    after = optimizer.stats()
    assert after["last_step"]["bytes"]["disk writes"] == after["bytes_written"] - before["bytes_written"] > 0
    assert sum(after["last_step"]["waited"].values()) == pytest.approx(1)
    assert after["resident_bytes"] + after["buffer_bytes"] == after["ram_bytes"] <= 80_000
    assert 0 < after["hit_rate"] < 1


@pytest.mark.parametrize(
    "residency, order, least, most",
    [
        ("pinned", "forward", 8 / 16, 8 / 16),
        ("none", "forward", 0, 0),
        ("none", "alternating", 4 / 16, 4 / 16),  # what is left in the four buffers
        ("lru", "forward", 0, 0),  # the least recently used of a scan is what is needed next
        ("lru", "alternating", 10 / 16, 10 / 16),
        ("furthest", "forward", 7 / 16, 9 / 15),  # Belady's bound for ten buffers, less those that stream
    ],
)
def test_the_hit_rate_of_each_policy_with_the_same_ram(disk, residency, order, least, most):
    """16 partitions; RAM for four buffers and eight records, or for ten buffers."""
    parameter = torch.nn.Parameter(torch.zeros(16_000))
    policy = disk(residency=residency, order=order, ram_budget=4 * 16_384 + 8 * 12_288 + 8192)
    with OffloadAdamW([parameter], offload=policy) as optimizer:
        for _ in range(12):
            parameter.grad = torch.ones_like(parameter)
            optimizer.step()
        numbers = optimizer.stats()
    assert least <= numbers["hit_rate"] <= most
    assert numbers["bytes_read"] == round((1 - numbers["hit_rate"]) * 11 * 16 * 8192)


def test_print_says_it_in_words(model, train, adamw, disk):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(partition_size=300))
    assert "steps: 0" in str(optimizer)
    train(module, optimizer, 2)
    said = str(optimizer)
    assert all(part in said for part in ("lr: 0.01", "of the step waited for", "last step", "KiB of disk reads"))
    optimizer.close()
    assert str(optimizer).endswith("closed")


def test_the_newest_events_are_found_without_the_others():
    recorder = Recorder(limit=5)
    for second in range(8):
        recorder.add(Event("read", "disk-read", second, second, second + 1, 1))
    assert [event.partition for event in recorder.since(5.5)] == [5, 6, 7]
    assert [event.partition for event in recorder.since(6.0)] == [6, 7], "one that had ended by then is of the time before"
    assert recorder.since(0.0) == recorder.events() and recorder.since(9.0) == []
