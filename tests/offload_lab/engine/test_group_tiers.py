"""Tiers by parameter group: norms in RAM, embeddings on disk, whatever the budget would do."""

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy


def groups(dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(0)
    sizes = {"ram": 1500, None: 2500, "disk": 3500}
    return [
        {
            "params": [torch.nn.Parameter(torch.randn(numel, generator=generator).to(dtype))],
            **({"tier": tier} if tier else {}),
        }
        for tier, numel in sizes.items()
    ]


def stepped(made, optimizer, numbers):
    for step in numbers:
        generator = torch.Generator().manual_seed(step)
        for group in made:
            for parameter in group["params"]:
                parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
        optimizer.step()


def places(optimizer):
    """For each group, how many of its partitions stay in RAM, and how many it has."""
    engine = optimizer._engine
    return [(sum(index in engine.resident for index in t.parts), len(t.parts)) for t in engine.tracked]


@pytest.mark.parametrize("budget, expected", [
    (None, [(2, 2), (0, 3), (0, 4)]),
    ("10MB", [(2, 2), (3, 3), (0, 4)]),
])  # fmt: skip
@pytest.mark.parametrize("durability", ["step", "checkpoint"])
def test_each_group_is_where_it_asked_to_be_in_the_same_bits(disk, budget, expected, durability):
    made, plain = groups(), [{"params": group["params"]} for group in groups()]
    policy = disk(ram_budget=budget, durability=durability)
    with OffloadAdamW(made, lr=0.01, offload=policy) as optimizer, OffloadAdamW(plain, lr=0.01) as reference:
        stepped(made, optimizer, range(4))
        stepped(plain, reference, range(4))
        assert places(optimizer) == expected
        for a, b in zip(made, plain, strict=True):
            assert torch.equal(a["params"][0], b["params"][0])
        optimizer.load_state_dict(reference.state_dict())  # case 16: a checkpoint does not move state
        assert places(optimizer) == expected and optimizer.param_groups[2]["tier"] == "disk"
        stepped(made, optimizer, range(4, 6))
        stepped(plain, reference, range(4, 6))
        assert all(torch.equal(a["params"][0], b["params"][0]) for a, b in zip(made, plain, strict=True))


def test_they_are_there_after_a_resume(disk):
    made = groups()
    with OffloadAdamW(made, lr=0.01, offload=disk()) as optimizer:
        stepped(made, optimizer, range(2))
    again = groups()
    with OffloadAdamW(again, lr=0.01, offload=disk(existing="resume")) as resumed:
        assert places(resumed) == [(2, 2), (0, 3), (0, 4)]
        assert all(torch.equal(a["params"][0], b["params"][0]) for a, b in zip(made, again, strict=True))


def test_what_cannot_be_is_refused(disk):
    made = groups()
    with pytest.raises(ValueError, match=r'tier="disk".*names no directory'):
        OffloadAdamW(made, offload=OffloadPolicy())
    made[0]["tier"] = "gpu"
    with pytest.raises(ValueError, match="tier='gpu'"):
        OffloadAdamW(made, offload=disk())
    made[0]["tier"] = "ram"
    with pytest.raises(ValueError, match="too small"):
        OffloadAdamW(made, offload=disk(ram_budget=2 * 16_384 + 1000, depth=2))


def test_beside_the_parameter_is_ram_where_the_parameter_is_in_ram(tmp_path):
    near, far = torch.nn.Parameter(torch.ones(3000)), torch.nn.Parameter(torch.ones(3000))
    policy = OffloadPolicy(tier="disk", directory=tmp_path / "state", ram_budget="1MiB", partition_size=1000)
    groups = [{"params": [near], "tier": "device"}, {"params": [far], "tier": "disk"}]
    with OffloadAdamW(groups, offload=policy) as optimizer:
        near.grad, far.grad = torch.ones(3000), torch.ones(3000)
        optimizer.step()
        assert optimizer.stats()["resident_partitions"] == 3
    elsewhere = torch.nn.Parameter(torch.ones(3, device="meta"))
    with pytest.raises(ValueError, match=r"are on meta: state on an accelerator is not kept"):
        OffloadAdamW([{"params": [elsewhere], "tier": "device"}], offload=policy)
