"""A property over whole runs: whatever the shapes, the policy and the events, the disk tier's bits are the RAM tier's."""

import tempfile
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab import OffloadAdamW, OffloadPolicy

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
events = st.one_of(
    st.tuples(st.just("step"), st.sets(st.integers(0, 5), max_size=4)),  # parameters without a gradient
    st.tuples(st.just("edit"), st.integers(0, 5)),
    st.tuples(st.just("nan"), st.integers(0, 5)),
    st.tuples(st.just("reload"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
)


@given(
    shapes=st.lists(st.tuples(st.integers(0, 700), st.sampled_from(DTYPES), st.booleans()), min_size=1, max_size=6),
    size=st.integers(1, 400),
    depth=st.integers(2, 5),
    budget=st.one_of(st.none(), st.integers(10, 400)),
    chunk=st.integers(1, 20_000),
    durability=st.sampled_from(["step", "checkpoint", 2, 3]),
    order=st.sampled_from(["forward", "alternating"]),
    residency=st.sampled_from(["pinned", "none", "lru", "furthest"]),
    overlap=st.sampled_from(["none", "forward"]),
    state_dtype=st.sampled_from(["float32", "float32", "bfloat16", "int8"]),
    kernel=st.sampled_from(["numba", "numba", "torch"]),
    script=st.lists(events, max_size=8),
)
@settings(max_examples=120, deadline=None)
@pytest.mark.filterwarnings("ignore:step skipped")
def test_disk_equals_ram_whatever_happens(
    shapes, size, depth, budget, chunk, durability, order, residency, overlap, state_dtype, kernel, script
):
    with tempfile.TemporaryDirectory() as directory:
        settings_ = {"partition_size": size, "depth": depth, "chunk_bytes": chunk, "durability": durability}
        settings_ |= {"order": order, "residency": residency, "overlap": overlap, "state_dtype": state_dtype}
        if state_dtype == "int8":
            shapes = [(numel, dtype, False) for numel, dtype, _ in shapes]
        if budget is not None:
            settings_["ram_budget"] = depth * 12_288 + budget * 1000
        disk = OffloadPolicy(tier="disk", directory=directory, kernel=kernel, **settings_)
        runs = [run(shapes, policy, script) for policy in (OffloadPolicy(state_dtype=state_dtype), disk)]
    for a, b in zip(*runs, strict=True):
        assert torch.equal(a, b)


def run(shapes, policy, script):
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(n, generator=generator).to(dtype)) for n, dtype, _ in shapes]
    groups = [{"params": [p], "amsgrad": amsgrad} for p, (_, _, amsgrad) in zip(parameters, shapes, strict=True)]

    def build(policy):
        return OffloadAdamW([dict(group) for group in groups], lr=0.01, offload=policy)

    optimizer = build(policy)
    for kind, detail in [("step", set()), *script, ("step", set())]:
        for number, parameter in enumerate(parameters):
            left_out = kind == "step" and number in detail
            fresh = torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
            parameter.grad = None if left_out else fresh
        if kind == "step":
            optimizer.step()
        elif detail is not None and detail < len(parameters) and parameters[detail].numel():
            if kind == "edit":
                with torch.no_grad():
                    parameters[detail].mul_(0.5)
            else:
                parameters[detail].grad[-1] = float("nan")
                optimizer.step()
        elif kind == "reload":
            optimizer.load_state_dict(optimizer.state_dict())
        elif kind == "reopen" and policy.tier == "disk" and policy.keeps_weights and optimizer.stats()["steps"]:
            optimizer.close()
            before = [p.detach().clone() for p in parameters]
            optimizer = build(replace(policy, existing="resume", partition_size=None))
            with torch.no_grad():
                for parameter, held in zip(parameters, before, strict=True):
                    if not torch.equal(parameter, held):
                        parameter.copy_(held)  # edited after the last step: the directory holds that step
    state = optimizer.state_dict()["state"]
    optimizer.close()
    tensors = [p.detach() for p in parameters]
    return tensors + [state[number][key] for number in sorted(state) for key in sorted(state[number])]
