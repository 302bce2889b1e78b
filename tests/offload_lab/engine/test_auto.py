"""The policy that is chosen by measurement: in RAM where it fits, and what it says of itself."""

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy, auto


def parameters(n=300_000, dtype=torch.bfloat16):
    return [torch.nn.Parameter(torch.zeros(n, dtype=dtype))]


def test_what_fits_stays_in_ram_and_nothing_is_measured(tmp_path):
    policy = OffloadPolicy.auto(parameters(), directory=tmp_path / "state")
    assert policy.tier == "ram" and "3,000,000 bytes" in policy.why and "stays in RAM" in policy.why
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_does_not_fit_goes_to_the_directory_which_is_left_as_it_was(tmp_path, dtype):
    mine = parameters(dtype=dtype)
    policy = OffloadPolicy.auto(mine, directory=tmp_path / "state", ram_budget="1MB", seconds=0.5)
    assert policy.tier == "disk" and policy.ram_budget == 1_000_000
    assert "ns a parameter" in policy.why and "io_threads" in policy.why
    assert list(tmp_path.iterdir()) == []
    with OffloadAdamW(mine, offload=policy) as optimizer:
        mine[0].grad = torch.ones_like(mine[0])
        optimizer.step()
        assert optimizer.stats()["ram_bytes"] <= 1_000_000


def test_what_was_faster_is_taken_and_what_was_not_is_left(tmp_path, monkeypatch):
    """The trials are stood in for by a formula: eight threads are best, a larger chunk is 1 % better, which is noise."""
    seen = []

    def seconds(policy, folder, elements, dtype):
        seen.append(policy)
        return elements * 1e-9 * (1 - 0.05 * policy.io_threads) * (0.99 if policy.chunk_bytes == 8 << 20 else 1.0)

    monkeypatch.setattr(auto, "_step_seconds", seconds)
    policy = OffloadPolicy.auto(parameters(), directory=tmp_path, ram_budget="1MB")
    assert policy.io_threads == 8 and policy.chunk_bytes == OffloadPolicy(tier="ram").chunk_bytes
    assert policy.depth == 4
    assert any(trial.chunk_bytes == 8 << 20 and trial.io_threads == 8 for trial in seen), "one setting after the other"


def test_time_that_is_up_is_up(tmp_path, monkeypatch):
    monkeypatch.setattr(auto, "_step_seconds", lambda *arguments: 1.0)
    monkeypatch.setattr(auto.time, "monotonic", iter(range(0, 10_000, 100)).__next__)
    policy = OffloadPolicy.auto(parameters(), directory=tmp_path, ram_budget="1MB")
    assert "no time left" in policy.why


def test_without_a_directory_what_does_not_fit_is_an_error_with_the_arithmetic():
    with pytest.raises(ValueError, match=r"3,000,000 bytes.*without directory="):
        OffloadPolicy.auto(parameters(), ram_budget="1MB")


def test_the_container_may_leave_less_than_the_machine(monkeypatch):
    texts = {"/sys/fs/cgroup/memory.max": "1000", "/sys/fs/cgroup/memory.current": "400"}
    monkeypatch.setattr(auto.Path, "read_text", lambda self: texts[str(self)])
    assert auto.available_memory() == 600
    texts["/sys/fs/cgroup/memory.max"] = "max"
    assert auto.available_memory() > 1 << 20
