"""Many small parameters are taken up at once. Whatever is done to them between steps, the bits are those of a step that takes
up each by itself."""

from __future__ import annotations

import sys
import weakref

import pytest
import torch

from offload_lab import OffloadAdamW, OffloadPolicy, crowd, devices, engine, reading, walk
from tests.offload_lab.engine.fake_link import FakeLink

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SHAPES = [(16,), (), (1,), (3, 5), (5, 3), (7,), (4, 4, 2), (1000,)] * 4 + [(2000,), (0,)]


class Run:
    """A model of small parameters and its optimizer; the same numbers for the same seed."""

    def __init__(self, dtype: torch.dtype, **options) -> None:
        self.draw = torch.Generator().manual_seed(3)
        self.dtype = dtype
        self.parameters = [torch.nn.Parameter(self.random(shape)) for shape in SHAPES]
        half = len(SHAPES) // 2
        groups = [{"params": self.parameters[:half]}, {"params": self.parameters[half:], "lr": 0.01, "weight_decay": 0.3}]
        self.optimizer = OffloadAdamW(groups, lr=0.1, **options)

    def random(self, shape, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.randn(shape, generator=self.draw).to(dtype or self.dtype)

    def gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = self.random(parameter.shape).to(parameter.device)

    def bits(self) -> list[torch.Tensor]:
        state = self.optimizer.state_dict()["state"]
        kept = [entry[name] for _, entry in sorted(state.items()) for name in sorted(entry)]
        return [value.detach().clone() for value in [*self.parameters, *kept]]


@pytest.fixture
def taken(monkeypatch):
    """How many steps took the crowd up at once."""
    count = []
    take = crowd.Crowd.take

    def counted(self, kernel):
        result = take(self, kernel)
        count.append(result is not None)
        return result

    monkeypatch.setattr(crowd.Crowd, "take", counted)
    return count


@pytest.fixture(params=["compiled", "attributes"])
def reader(request, monkeypatch):
    """Both ways to read a crowd."""
    if request.param == "compiled":
        why = walk.why_not()
        if why is not None:
            pytest.skip(why)
    else:
        monkeypatch.setattr(crowd, "reads_compiled", lambda kernel: False)
    return request.param


def alone(monkeypatch) -> None:
    monkeypatch.setattr(crowd, "LEAST", 1 << 40)


def nothing(run: Run) -> None:
    pass


def other_storage(run: Run) -> None:
    for parameter in run.parameters[::3]:
        parameter.data = run.random(parameter.shape)


def same_values_elsewhere(run: Run) -> None:
    run.held = [parameter.data for parameter in run.parameters]  # so that no address comes back
    for parameter in run.parameters:
        parameter.data = parameter.data.clone()


def edited_in_place(run: Run) -> None:
    with torch.no_grad():
        for parameter in run.parameters[1::2]:
            parameter.add_(0.25)


def weights_loaded(run: Run) -> None:
    torch.nn.ParameterList(run.parameters).load_state_dict({str(i): run.random(s) for i, s in enumerate(SHAPES)})


def state_loaded(run: Run) -> None:
    run.optimizer.load_state_dict(run.optimizer.state_dict())


def state_loaded_before_weights(run: Run) -> None:
    """Masters that count only once the weights that follow are there."""
    packed = run.optimizer.state_dict()
    weights = {str(i): parameter.detach().clone() for i, parameter in enumerate(run.parameters)}
    weights_loaded(run)
    run.optimizer.load_state_dict(packed)
    torch.nn.ParameterList(run.parameters).load_state_dict(weights)


def fewer_gradients(run: Run) -> None:
    for parameter in run.parameters[::2]:
        parameter.grad = None


def no_gradients(run: Run) -> None:
    for parameter in run.parameters:
        parameter.grad = None


def strided_gradients(run: Run) -> None:
    for parameter in run.parameters:
        if parameter.dim() == 2:
            parameter.grad = run.random(parameter.shape[::-1]).t()


def negated_gradients(run: Run) -> None:
    for parameter in run.parameters[:9]:
        parts = torch.view_as_complex(run.random((*parameter.shape, 2), torch.float32))
        parameter.grad = parts.conj().imag if run.dtype is torch.float32 else parts.conj().imag.to(run.dtype)


def wide_gradients(run: Run) -> None:
    for parameter in run.parameters:
        parameter.grad = None
        parameter.grad_dtype = torch.float32
        parameter.grad = run.random(parameter.shape, torch.float32)


def one_wide_gradient(run: Run) -> None:
    parameter = run.parameters[0]
    parameter.grad = None
    parameter.grad_dtype = torch.float32
    parameter.grad = run.random(parameter.shape, torch.float32)


def strided_weight(run: Run) -> None:
    for parameter in run.parameters:
        if parameter.dim() == 2:
            parameter.data = run.random(parameter.shape[::-1]).t()


def transposed_in_place(run: Run) -> None:
    """The same memory at the same address, in another order."""
    square = next(parameter for parameter in run.parameters if parameter.shape == (4, 4, 2))
    square.data = square.data.transpose(0, 1)


def swapped(run: Run) -> None:
    """The Python object stays, what is behind it goes."""
    for parameter in run.parameters[:20]:
        gradient, parameter.grad = parameter.grad, None
        torch.utils.swap_tensors(parameter, torch.nn.Parameter(run.random(parameter.shape)))
        parameter.grad = gradient


def other_settings(run: Run) -> None:
    run.optimizer.param_groups[0].update(lr=0.003, betas=(0.5, 0.6), maximize=True)


def one_more_group(run: Run) -> None:
    late = [torch.nn.Parameter(run.random((5,))) for _ in range(3)]
    run.parameters += late
    run.optimizer.add_param_group({"params": late, "lr": 0.5})
    for parameter in late:
        parameter.grad = run.random((5,))


def not_finite(run: Run) -> None:
    run.parameters[5].grad.view(-1)[-1] = float("inf")


def clipped(run: Run) -> None:
    run.optimizer.clip_grad_norm_(0.01)


EVENTS = [
    nothing,
    other_storage,
    same_values_elsewhere,
    edited_in_place,
    weights_loaded,
    state_loaded,
    state_loaded_before_weights,
    fewer_gradients,
    no_gradients,
    strided_gradients,
    negated_gradients,
    wide_gradients,
    one_wide_gradient,
    strided_weight,
    transposed_in_place,
    swapped,
    other_settings,
    one_more_group,
    not_finite,
    clipped,
]


def trained(dtype: torch.dtype, event, policy: OffloadPolicy | None) -> list[torch.Tensor]:
    run = Run(dtype, offload=policy)
    with run.optimizer:
        for step in range(7):
            run.gradients()
            if step in (2, 3, 5):
                event(run)
            if event is not_finite and step in (2, 3, 5):
                with pytest.warns(UserWarning, match="parameter 5 of group 0 .* is not finite"):
                    run.optimizer.step()
            else:
                run.optimizer.step()
            for parameter in run.parameters:
                parameter.grad = None
                if hasattr(parameter, "grad_dtype") and parameter.grad_dtype != dtype:
                    parameter.grad_dtype = dtype
        return run.bits()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_all_at_once_and_one_by_one_agree_in_every_bit(event, dtype, reader, taken, monkeypatch):
    if event in (wide_gradients, one_wide_gradient) and not hasattr(torch.Tensor, "grad_dtype"):
        pytest.skip("this torch keeps gradients in the parameter's dtype")
    together = trained(dtype, event, None)
    assert sum(taken) >= 2, "no crowd was taken up"
    alone(monkeypatch)
    taken.clear()
    apart = trained(dtype, event, None)
    assert not taken
    assert len(together) == len(apart)
    for one, other in zip(together, apart, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert torch.equal(one.contiguous().view(-1).view(torch.uint8), other.contiguous().view(-1).view(torch.uint8))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_on_disk_too(dtype, reader, taken, monkeypatch, tmp_path):
    disk = OffloadPolicy(tier="disk", directory=tmp_path / "together", partition_size=3000)
    together = trained(dtype, fewer_gradients, disk)
    assert any(taken)
    alone(monkeypatch)
    apart = trained(dtype, fewer_gradients, None)
    assert all(torch.equal(one, other) for one, other in zip(together, apart, strict=True))


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_random_bits_of_rounded_moments_are_those_of_each_parameter(state_dtype, reader, taken, monkeypatch):
    policy = OffloadPolicy(state_dtype=state_dtype)
    together = trained(torch.bfloat16, edited_in_place, policy)
    assert any(taken)
    alone(monkeypatch)
    apart = trained(torch.bfloat16, edited_in_place, policy)
    assert all(torch.equal(one, other) for one, other in zip(together, apart, strict=True))


def ready(dtype: torch.dtype = torch.bfloat16) -> Run:
    """A run whose next step would take the crowd up."""
    run = Run(dtype)
    for _ in range(2):
        run.gradients()
        run.optimizer.step()
    run.gradients()
    return run


def sparse(run: Run) -> None:
    run.parameters[0].grad = torch.sparse_coo_tensor(torch.tensor([[1]]), run.random((1,)), (16,), check_invariants=True)


def converted(run: Run) -> None:
    run.parameters[3].grad = None
    run.parameters[3].data = run.parameters[3].data.double()
    run.parameters[3].grad = torch.ones(3, 5, dtype=torch.float64)


def viewed_as_another_dtype(run: Run) -> None:
    parameter, other = run.parameters[3], torch.float16 if run.dtype is torch.bfloat16 else torch.bfloat16
    parameter.grad = None
    parameter.data = parameter.data.view(other)  # the same address, the same size
    parameter.grad = torch.ones(3, 5, dtype=other)


def cut_short(run: Run) -> None:
    parameter = run.parameters[0]
    parameter.grad = None
    parameter.data = parameter.data[:4]  # the same address, and less behind it
    parameter.grad = run.random((4,))


def of_another_amsgrad(run: Run) -> None:
    run.optimizer.param_groups[0]["amsgrad"] = True


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (sparse, "is sparse"),
        (converted, r"was bfloat16 .* is torch.float64 now"),
        (viewed_as_another_dtype, r"was bfloat16 .* is torch.float16 now"),
        (cut_short, "had 16 elements .* has 4 now"),
        (of_another_amsgrad, "amsgrad of"),
    ],
)
def test_what_is_refused_one_by_one_is_refused_at_once(wrong, said, reader):
    run = ready()
    engine = run.optimizer._engine
    wrong(run)
    weights = [parameter.detach().clone() for parameter in run.parameters]
    records = {index: record.copy() for index, record in engine.resident.items()}
    with pytest.raises(RuntimeError, match=said):
        run.optimizer.step()
    assert all(torch.equal(now, before) for now, before in zip(run.parameters, weights, strict=True))
    assert all((engine.resident[index] == record).all() for index, record in records.items())
    assert engine.steps == 2 and {tracked.step for tracked in engine.tracked if tracked.numel} == {2}


def test_gradients_may_go_while_the_optimizer_lives(reader):
    """Nothing is kept of a step's gradients: neither they nor where they were."""
    run = ready()
    run.optimizer.step()
    gone = [weakref.ref(parameter.grad) for parameter in run.parameters]
    run.optimizer.zero_grad()
    assert not any(reference() is not None for reference in gone)


def test_versions_count_as_they_do_one_by_one(reader, monkeypatch):
    """Autograd sees each update, once; two parameters that are views of one tensor share a counter."""
    base = torch.zeros(40 * 16, dtype=torch.bfloat16)
    counts = []
    for least in (crowd.LEAST, 1 << 40):
        monkeypatch.setattr(crowd, "LEAST", least)
        parameters = [torch.nn.Parameter(piece) for piece in base.clone().split(16)]
        with OffloadAdamW(parameters) as optimizer:
            for _ in range(4):
                for parameter in parameters:
                    parameter.grad = torch.full((16,), 1e-3, dtype=torch.bfloat16)
                optimizer.step()
            counts.append([parameter._version for parameter in parameters])
            assert not any(tracked.edited() for tracked in optimizer._engine.tracked)
    assert counts[0] == counts[1]


def test_a_tensor_without_a_version_counter_is_an_error_and_no_crash(reader):
    run = ready()
    parameter = run.parameters[0]
    with torch.inference_mode():
        other = torch.nn.Parameter(run.random((16,)))
    parameter.grad = None
    torch.utils.swap_tensors(parameter, other)
    parameter.data = run.random((16,))  # no longer "inference" by its looks
    parameter.grad = run.random((16,))
    with pytest.raises(RuntimeError, match="Inference tensors"):
        run.optimizer.step()


def test_the_compiled_reader_runs_where_it_should():
    if sys.platform != "linux" or tuple(map(int, torch.__version__.split(".")[:2])) not in walk.EDITIONS:
        pytest.skip("not a machine or a torch for which there is one")
    pytest.importorskip("numba")
    assert walk.why_not() is None


def test_without_numba_the_attributes_are_read(taken):
    run = Run(torch.bfloat16, offload=OffloadPolicy(kernel="torch"))
    for _ in range(3):
        run.gradients()
        run.optimizer.step()
    assert sum(taken) == 2 and isinstance(run.optimizer._engine.stepping.crowd._reader, reading.Attributes)


def test_stats_say_how_they_are_read(reader):
    run = ready()
    numbers = run.optimizer.stats()
    assert numbers["small_parameters"] == sum(0 < parameter.numel() <= crowd.SMALL for parameter in run.parameters)
    assert numbers["small_parameters_read"].startswith("by a compiled loop" if reader == "compiled" else "attribute by")
    assert f"{numbers['small_parameters']} small parameters are taken up at once" in repr(run.optimizer)
    run.optimizer.close()
    assert run.optimizer._engine.stepping.crowd is None


def test_a_gradient_that_was_not_finite_is_not_remembered(reader, taken):
    run = ready()
    run.parameters[5].grad.view(-1)[0] = float("nan")
    with pytest.warns(UserWarning, match="not finite"):
        run.optimizer.step()
    run.gradients()
    run.parameters[5].grad = None
    taken.clear()
    run.optimizer.step()
    assert taken == [True]


def test_a_crowd_beside_parameters_on_a_device(reader, taken, monkeypatch):
    """One partition holds both: what goes over the link, and what was never there."""
    finals = []
    for least in (crowd.LEAST, 1 << 40):
        monkeypatch.setattr(crowd, "LEAST", least)
        fake = FakeLink(delay=0.001)
        with pytest.MonkeyPatch.context() as patch:
            for module in (devices, engine):
                patch.setattr(module, "link_of", lambda tensor, fake=fake: fake if tensor.numel() == 2000 else None)
            run = Run(torch.bfloat16)
            with run.optimizer:
                for step in range(5):
                    run.gradients()
                    if step == 3:
                        fewer_gradients(run)
                    run.optimizer.step()
                assert fake.copied["up"] > 0 and run.optimizer.stats()["partitions"] == 1
        fake.close()
        finals.append([parameter.detach().clone() for parameter in run.parameters])
    assert sum(taken) == 4
    assert all(torch.equal(one, other) for one, other in zip(*finals, strict=True))
