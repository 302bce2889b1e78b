"""Case 1: RAM and disk, any cache, any partitions, any order: the same bits. And what each tier holds and moves."""

import re
from pathlib import Path

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy


def test_all_tiers_give_the_same_bits_at_every_step(model, adamw, policies, train, dtype):
    reference = None
    for name, policy in policies.items():
        module = model(dtype)
        optimizer = adamw(module, policy)
        weights = []
        for step in range(20):
            train(module, optimizer, 1, start=step)
            weights.append([p.detach().clone() for p in module.parameters()])
        state = optimizer.state_dict()
        if reference is None:
            reference = weights, state
        for mine, theirs in zip(weights, reference[0], strict=True):
            assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True)), name
        for number, entry in reference[1]["state"].items():
            assert all(torch.equal(entry[key], state["state"][number][key]) for key in entry), name


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 2048, 5003])
def test_any_size_of_parameter_and_partition(disk, size, dtype):
    results = []
    for policy in (OffloadPolicy(), disk("a"), disk("b", partition_size=1)) if size < 10 else (OffloadPolicy(), disk("a")):
        parameter = torch.nn.Parameter(torch.linspace(-1, 1, size).to(dtype))
        other = torch.nn.Parameter(torch.ones(3, 5).to(dtype))
        with OffloadAdamW([parameter, other], lr=0.1, offload=policy) as optimizer:
            for step in range(3):
                parameter.grad = torch.full_like(parameter, step - 0.5)
                other.grad = torch.ones_like(other)
                optimizer.step()
        results.append((parameter.detach().clone(), other.detach().clone()))
    assert all(torch.equal(a, b) for result in results for a, b in zip(result, results[0], strict=True))


def test_parameters_in_several_dtypes_share_one_optimizer(disk):
    results = []
    for policy in (OffloadPolicy(), disk()):
        torch.manual_seed(0)
        parameters = [torch.nn.Parameter(torch.randn(700).to(d)) for d in (torch.float32, torch.bfloat16, torch.float16)] * 1
        parameters += [torch.nn.Parameter(torch.randn(1700).to(d)) for d in (torch.float16, torch.float32, torch.bfloat16)]
        with OffloadAdamW(parameters, lr=0.1, offload=policy) as optimizer:
            for _ in range(3):
                for parameter in parameters:
                    parameter.grad = torch.ones_like(parameter)
                optimizer.step()
        results.append(parameters)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_parameter_without_a_gradient_keeps_weight_and_state(disk, missing, dtype):
    for policy in (OffloadPolicy(), disk()):
        parameters = [torch.nn.Parameter(torch.ones(600, dtype=dtype)) for _ in range(3)]
        with OffloadAdamW(parameters, lr=0.1, offload=policy) as optimizer:
            for parameter in parameters:
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
            before = [p.detach().clone() for p in parameters]
            state = optimizer.state_dict()["state"]
            parameters[missing].grad = None
            optimizer.step()
            after = optimizer.state_dict()["state"]
            for number, parameter in enumerate(parameters):
                kept = torch.equal(before[number], parameter)
                same = all(torch.equal(state[number][key], after[number][key]) for key in state[number])
                assert kept == same == (number == missing)


def test_state_at_rest_takes_the_bytes_that_the_design_says(tmp_path):
    for dtype, nbytes, weight in ((torch.float32, 8, 4), (torch.bfloat16, 10, 2), (torch.float16, 12, 0)):
        n = 1 << 20
        parameter = torch.nn.Parameter(torch.zeros(n, dtype=dtype))
        with OffloadAdamW([parameter], offload=OffloadPolicy(tier="ram")) as optimizer:
            assert 0 <= optimizer.memory()["ram"] - nbytes * n < 4096 * optimizer.stats()["partitions"] + 1
        policy = OffloadPolicy(tier="disk", directory=tmp_path / str(dtype), ram_budget="1MiB")
        with OffloadAdamW([parameter], offload=policy) as optimizer:
            assert optimizer.memory()["ram"] <= 1 << 20
            parameter.grad = torch.ones_like(parameter)
            optimizer.step()
            parts = optimizer.stats()["partitions"]
            assert 0 <= optimizer.memory()["disk"] - 2 * (nbytes + weight) * n <= 2 * parts * 8192
            optimizer.step()
            stats = optimizer.stats()
            resident = stats["resident_partitions"] / parts
            assert abs(stats["bytes_read"] - (1 - resident) * nbytes * n) < 0.1 * nbytes * n
            assert abs(stats["bytes_written"] - 2 * (nbytes + weight) * n) < 0.1 * nbytes * n


def test_the_kernel_counts_the_same_bytes(tmp_path, disk):
    """`/proc/self/io` is what the system saw of direct reads; buffered ones would come from the page cache."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        pytest.skip("no /proc/self/io on this system")

    def read_bytes():
        return int(re.search(r"^read_bytes: (\d+)", counters.read_text(), re.M)[1])

    parameter = torch.nn.Parameter(torch.zeros(1 << 20))
    with OffloadAdamW([parameter], offload=disk(partition_size=1 << 18)) as optimizer:
        if not optimizer.stats()["direct_io"]:
            pytest.skip("no direct I/O in the temporary directory")
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        before, counted = read_bytes(), optimizer.stats()["bytes_read"]
        optimizer.step()
        assert read_bytes() - before == optimizer.stats()["bytes_read"] - counted >= 8 << 20


def test_every_task_is_in_the_trace(disk):
    parameter = torch.nn.Parameter(torch.zeros(3500))
    with OffloadAdamW([parameter], offload=disk()) as optimizer:
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        events = optimizer.trace.events()
        assert sorted((e.name, e.partition) for e in events) == sorted(
            (kind, part) for kind in ("read", "update", "write") for part in range(4)
        )
        ends = {(e.name, e.partition): e.end for e in events}
        for event in events:
            assert event.end >= event.start
            if event.name != "read":
                assert event.start >= ends["read" if event.name == "update" else "update", event.partition]
        complete = [row for row in optimizer.trace.chrome_trace()["traceEvents"] if row["ph"] == "X"]
        assert len(complete) == len(events) == len(optimizer.trace.table())
        assert min(row["ts"] for row in complete) == 0
