import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def forward(self, seconds):
        self.now += seconds


class Scripted:
    """An optimizer whose `stats()` are what a test says: each `step(**changes)` makes one that differs in these."""

    def __init__(self):
        self.made, self.skipped, self.read, self.written, self.needed = 0, 0, 0, 0, 0
        self.last = None
        self.rolled_back = 0

    def step(self, seconds=1.0, bandwidth=1e9, stall=0.2, hits=0.5, skip=False):
        if skip:
            self.skipped += 1
            return
        self.made += 1
        self.needed += 1000
        self.read += round(1000 * (1 - hits))
        self.written += 1000
        self.last = {
            "seconds": seconds + self.made * 1e-9,
            "bytes": {"disk reads": 1000, "disk writes": 1000},
            "bandwidth": {"disk reads": bandwidth, "disk writes": bandwidth},
            "waited": {"disk reads": stall / 2, "disk writes": stall / 2, "update": 1 - stall, "backward": 0, "other": 0},
        }

    def stats(self, *, wait=True):
        assert not wait, "a monitor must not wait for a step that is under way"
        return {
            "directories": [{"path": "/state", "share": 1.0, "bandwidth": None}],
            "durability": "step",
            "steps": self.made,
            "skipped_steps": self.skipped,
            "bytes_read": self.read,
            "bytes_written": self.written,
            "bytes_needed": self.needed,
            "last_step": self.last,
            "ram_bytes": 1,
            "disk_bytes": 2,
        }

    def rollback(self):
        self.rolled_back += 1
        self.made -= 1


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def scripted():
    return Scripted()


@pytest.fixture
def training(tmp_path):
    """A small model on disk, and a function that makes one step of it with the gradients of a seed; closed at the end."""
    opened = []

    def build(**policy):
        torch.manual_seed(0)
        model = torch.nn.Linear(64, 64)
        settings = {"tier": "disk", "directory": tmp_path / "state", "partition_size": 1000} | policy
        optimizer = OffloadAdamW(model.parameters(), lr=0.01, offload=OffloadPolicy(**settings))
        opened.append(optimizer)

        def step(seed, scale=1.0):
            inputs = torch.randn(8, 64, generator=torch.Generator().manual_seed(seed))
            optimizer.zero_grad()
            loss = model(inputs).pow(2).mean() * scale
            loss.backward()
            optimizer.step()
            return loss.item()

        return model, optimizer, step

    yield build
    for optimizer in opened:
        optimizer.close()
