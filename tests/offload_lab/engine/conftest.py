import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy


@pytest.fixture(params=["float32", "bfloat16", "float16"])
def dtype(request):
    return getattr(torch, request.param)


@pytest.fixture
def disk(tmp_path):
    """A disk policy over small partitions, so that a small model has many; keyword arguments change it."""

    def policy(name="state", **changes):
        return OffloadPolicy(**({"tier": "disk", "directory": tmp_path / name, "partition_size": 1000} | changes))

    return policy


@pytest.fixture
def policies(disk):
    """Policies that must not differ in a single bit: RAM, disk, half and half, other partitions, other durability."""
    return {
        "ram": OffloadPolicy(tier="ram"),
        "ram, small partitions": OffloadPolicy(tier="ram", partition_size=333),
        "disk": disk("a"),
        "disk, half in RAM": disk("b", ram_budget=150_000),
        "disk, all in RAM": disk("c", ram_budget="100MB"),
        "disk, two buffers": disk("d", depth=2, io_threads=1, chunk_bytes=4096),
        "disk, buffered": disk("e", direct_io="off"),
        "disk, scratch": disk("f", durability="checkpoint", partition_size=777),
        "disk, scratch, half in RAM": disk("g", durability="checkpoint", ram_budget=150_000),
    }


@pytest.fixture
def train():
    """Train a small model with awkward shapes for `steps`; the same seed gives the same gradients for the same weights."""

    def run(model, optimizer, steps, seed=0, start=0):
        for step in range(start, start + steps):
            generator = torch.Generator().manual_seed(1000 * seed + step)
            inputs = torch.randn(4, 37, generator=generator).to(next(model.parameters()).dtype)
            optimizer.zero_grad()
            model(inputs).float().pow(2).mean().backward()
            optimizer.step()

    return run


@pytest.fixture
def model():
    """A model of `dtype` with parameters of one element, of 37 × 65, of 65, and an empty one; the same for the same seed."""

    class Awkward(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(37, 65)
            self.empty = torch.nn.Parameter(torch.empty(0))
            self.scale = torch.nn.Parameter(torch.tensor(1.5))
            self.second = torch.nn.Linear(65, 11)
            self.unused = torch.nn.Parameter(torch.ones(5))

        def forward(self, x):
            return self.second(torch.tanh(self.first(x)) * self.scale)

    def build(dtype=torch.float32, seed=0):
        torch.manual_seed(seed)
        return Awkward().to(dtype)

    return build


@pytest.fixture
def adamw():
    """OffloadAdamW with a large lr, closed at the end of the test."""
    opened = []

    def build(module, policy=None, **options):
        optimizer = OffloadAdamW(module.parameters(), **({"lr": 0.01} | options), offload=policy)
        opened.append(optimizer)
        return optimizer

    yield build
    for optimizer in opened:
        optimizer.close()
