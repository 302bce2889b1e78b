"""The update that goes on during the next forward: exact, whoever reads a weight, and however slow the disk is."""

import copy
import os
import pickle
import threading
import time
import warnings

import pytest
import torch

from offload_lab import OffloadAdamW, StorageError


@pytest.fixture
def slow_disk(monkeypatch):
    """Every write takes 5 ms longer, so that a step of many partitions is still under way long after `step()` returned."""
    real = os.pwritev

    def slow(*arguments):
        time.sleep(0.005)
        return real(*arguments)

    monkeypatch.setattr(os, "pwritev", slow)


@pytest.fixture
def stepped(model, adamw, disk, train, slow_disk):
    """A model whose update is under way, and the parameters that it has to end with."""

    def build(dtype=torch.bfloat16, **policy):
        modules = []
        for overlap in ("none", "forward"):
            module = model(dtype)
            optimizer = adamw(module, disk(overlap, overlap=overlap, partition_size=100, **policy))
            train(module, optimizer, 2)
            modules.append((module, optimizer))
        (right, _), (module, optimizer) = modules
        return module, optimizer, [p.detach().clone() for p in right.parameters()]

    return build


READERS = {
    "forward": lambda p: torch.nn.functional.linear(torch.eye(p.shape[-1], dtype=p.dtype), p).T,
    "detach": lambda p: p.detach().clone(),
    "data": lambda p: p.data.clone(),
    "numpy": lambda p: torch.from_numpy(p.detach().float().numpy().copy()).to(p.dtype),
    "tolist": lambda p: torch.tensor(p.tolist(), dtype=p.dtype),
    "arithmetic": lambda p: (p * 1).detach(),
    "out of a list": lambda p: torch.stack([p, p])[0].detach(),
    "foreach": lambda p: torch._foreach_mul([p], 1.0)[0].detach(),
    "deepcopy": lambda p: copy.deepcopy(p).detach(),
    "pickle": lambda p: pickle.loads(pickle.dumps(p)).detach(),
    "address": lambda p: (p.data_ptr(), p.detach().clone())[1],
    "another thread": lambda p: in_thread(lambda: p.detach().clone()),
}


def in_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_a_weight_gets_the_new_one(stepped, reader):
    module, optimizer, right = stepped()
    assert optimizer.stats()["deferred_parameters"] > 0
    weight = module.second.weight
    assert torch.equal(READERS[reader](weight), right[-2])
    assert type(weight) is torch.nn.Parameter


@pytest.mark.parametrize("reading", ["state_dict", "eval", "zero_grad", "to", "named_parameters", "load_state_dict"])
def test_readers_of_the_whole_model_wait(stepped, reading):
    module, _, right = stepped()
    if reading == "state_dict":
        values = list(module.state_dict().values())
    elif reading == "to":
        values = list(module.to(torch.float64).to(torch.bfloat16).parameters())
    elif reading == "load_state_dict":
        other = copy.deepcopy(module)
        other.load_state_dict(module.state_dict())
        values = list(other.parameters())
    else:
        if reading == "eval":
            with torch.no_grad():
                module.eval()(torch.ones(1, 37, dtype=torch.bfloat16))
        elif reading == "zero_grad":
            module.zero_grad(set_to_none=False)
        values = [parameter.detach() for _, parameter in module.named_parameters()]
    assert all(torch.equal(value, expected) for value, expected in zip(values, right, strict=True))


def test_the_optimizers_own_state_waits(stepped):
    _, optimizer, _ = stepped()
    state = optimizer.state_dict()["state"]
    assert {int(entry["step"]) for entry in state.values()} == {2}
    assert optimizer.wait() is None


def test_shape_and_dtype_do_not_wait(stepped):
    module, _, _ = stepped()
    weight = module.second.weight
    assert (weight.shape, weight.dtype, weight.requires_grad, weight.numel()) == ((11, 65), torch.bfloat16, True, 715)
    weight.grad = None
    assert type(weight) is not torch.nn.Parameter, "still under way"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("zero", ["own", "module", "in place", "overwritten"])
def test_gradients_may_be_cleared_or_overwritten_right_after_the_step(model, adamw, disk, train, slow_disk, dtype, zero):
    """Case 62: the update still reads them."""
    finals = []
    for overlap in ("none", "forward"):
        module = model(dtype)
        optimizer = adamw(module, disk(overlap, overlap=overlap, partition_size=100))
        for step in range(3):
            generator = torch.Generator().manual_seed(step)
            module(torch.randn(4, 37, generator=generator).to(dtype)).float().pow(2).mean().backward()
            optimizer.step()
            if zero == "own":
                optimizer.zero_grad()
            elif zero == "module":
                module.zero_grad()
            elif zero == "in place":
                optimizer.zero_grad(set_to_none=False)
            else:
                for parameter in module.parameters():
                    if parameter.grad is not None:
                        parameter.grad.fill_(float("nan"))
                        parameter.grad = None
        finals.append([p.detach().clone() for p in module.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*finals, strict=True))


def test_a_backward_whose_graph_is_older_than_the_step_does_not_reach_into_its_gradients(adamw, disk, slow_disk):
    """The graph of a bias holds no weight, so nothing else would notice."""
    finals = []
    for overlap in ("none", "forward"):
        bias = torch.nn.Parameter(torch.ones(3000))
        optimizer = OffloadAdamW([bias], lr=0.01, offload=disk(overlap, overlap=overlap, partition_size=100))
        older = (bias * -100).sum()
        bias.sum().backward()
        optimizer.step()
        older.backward()  # adds to bias.grad in place
        finals.append(bias.detach().clone())
        optimizer.close()
    assert torch.equal(*finals)


def test_a_disk_that_fails_under_way_is_told_to_the_next_reader_and_the_next_step(model, adamw, disk, train, monkeypatch):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(overlap="forward", partition_size=100))
    train(module, optimizer, 2)
    optimizer.wait()

    def failing(*arguments):
        raise OSError(5, "Input/output error")

    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    monkeypatch.setattr(os, "pwritev", failing)
    optimizer.step()
    with pytest.raises((RuntimeError, StorageError), match="Input/output error"):
        list(module.second.weight)
    assert type(module.second.weight) is torch.nn.Parameter
    with pytest.raises(StorageError, match=r"offload\.state'.*Input/output error"):
        optimizer.wait()
    with pytest.raises(RuntimeError, match=r'stopped after step 2 because of.*existing="resume"'):
        optimizer.step()


def test_closing_and_forking_wait(stepped):
    module, optimizer, right = stepped()
    child = os.fork()
    if not child:
        same = all(torch.equal(p, q) for p, q in zip(module.parameters(), right, strict=True))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    optimizer.step()
    optimizer.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("offload")]


def test_compiled_code_reads_without_asking_so_nothing_is_deferred(model, adamw, disk, train, slow_disk):
    """Case 116."""
    finals = []
    for overlap in ("none", "forward"):
        module = model(torch.bfloat16)
        optimizer = adamw(module, disk(overlap, overlap=overlap, partition_size=100))
        compiled = torch.compile(module, backend="eager")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                train(compiled, optimizer, 2)
        finally:
            torch._dynamo.reset()
        told = [str(warning.message) for warning in caught if "torch.compile" in str(warning.message)]
        assert len(told) == (overlap == "forward")
        assert optimizer.stats()["deferred_parameters"] == 0
        finals.append([p.detach().clone() for p in module.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*finals, strict=True))


@pytest.mark.parametrize("fullgraph", [False, True])
def test_what_is_compiled_while_a_step_is_under_way_waits_for_it(stepped, fullgraph):
    module, optimizer, right = stepped()
    try:
        compiled = torch.compile(module, backend="eager", fullgraph=fullgraph)
        assert optimizer._engine.stepping._underway is not None
        compiled(torch.zeros(1, 37, dtype=torch.bfloat16))
        assert optimizer._engine.stepping._underway is None
    finally:
        torch._dynamo.reset()
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), right, strict=True))


def test_an_update_that_failed_stops_the_compilation_that_waited_for_it(stepped):
    module, optimizer, _ = stepped()
    optimizer._engine.stepping._underway.thread.join()
    optimizer._engine.stepping._underway.fail(StorageError(28, "no space left on a pretended disk"))
    try:
        compiled = torch.compile(module, backend="eager")
        with pytest.raises(Exception, match="no space left on a pretended disk"):
            compiled(torch.zeros(1, 37, dtype=torch.bfloat16))
    finally:
        torch._dynamo.reset()


def test_the_next_steps_first_reads_are_made_before_it(model, adamw, disk, train):
    module = model(torch.bfloat16)
    optimizer = adamw(module, disk(overlap="forward", partition_size=100))
    train(module, optimizer, 2)
    optimizer.wait()
    read = optimizer.stats()["bytes_read"]
    train(module, optimizer, 1, start=2)
    optimizer.wait()
    partitions = optimizer.stats()["partitions"]
    starts = [event for event in optimizer.trace.events() if event.name == "read"]
    assert len(starts) > partitions
    per_step = optimizer.stats()["bytes_read"] - read
    train(module, optimizer, 1, start=3)
    optimizer.wait()
    assert optimizer.stats()["bytes_read"] - read == 2 * per_step, "reading ahead reads nothing twice"
