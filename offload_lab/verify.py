"""Does this optimizer compute AdamW, for this model, on this machine? N steps beside torch's own, and beside float64.

All three get the same gradients, those of the copy that our optimizer trains, so that what differs is the update alone and not
two trainings that drift apart.
"""

from __future__ import annotations

import copy
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from offload_lab.entries import as_float32
from offload_lab.policy import OffloadPolicy

if TYPE_CHECKING:
    from offload_lab.optimizer import OffloadAdam

Loss = Callable[[torch.nn.Module], torch.Tensor]

# float32 arithmetic done in the same order is as far from float64 as torch's own is. Which of its elements is farthest is
# chance; twice as far, and four units for a model so small that torch happens to have none, is what chance explains.
_FACTOR, _UNITS = 2.0, 4.0
# Moments in fewer bits are another algorithm. How far it may be from AdamW, as a share of the way that the weights went (root
# mean squares): about four times what was measured on a small GPT and on random gradients, over 1 to 50 steps.
DISTANCE: dict[str, float] = {"bfloat16": 0.02, "int8": 0.1}


@dataclass(frozen=True)
class ParameterVerdict:
    """One parameter after the last step; for a 16-bit one its float32 master is what is compared."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    error: float
    """Largest distance of an element from the float64 oracle."""
    torch_error: float
    """The same of `torch.optim`'s float32 weights."""
    unit: float
    """The unit in the last place (float32) of the parameter's largest weight."""
    moved: float
    """Root of the sum of squares of what the oracle's weights moved by, from the first step to the last."""
    off: float
    """Root of the sum of squares of what ours differ by from the oracle's."""
    rounded: bool
    """Whether the 16-bit weight is a nearest one to its master (float32: always)."""

    @property
    def units(self) -> float:
        """`error` in units in the last place."""
        return self.error / self.unit

    @property
    def torch_units(self) -> float:
        return self.torch_error / self.unit


@dataclass(frozen=True)
class Verdict:
    """What `verify` found. `print` it, or ask `.ok`."""

    parameters: tuple[ParameterVerdict, ...]
    steps: int
    skipped: int
    """Steps whose gradients were not all finite, and which therefore changed nothing."""
    state_dtype: str
    kernel: str
    where: str

    @property
    def ok(self) -> bool:
        """float32 moments: the error is float32 arithmetic's, not more. Fewer bits: as near to AdamW as that should be."""
        if self.state_dtype != "float32":
            return self.distance <= DISTANCE[self.state_dtype] and all(p.rounded for p in self.parameters)
        return all(self._as_exact_as_torch(p) and p.rounded for p in self.parameters)

    @staticmethod
    def _as_exact_as_torch(parameter: ParameterVerdict) -> bool:
        return parameter.units <= _FACTOR * parameter.torch_units + _UNITS  # False for NaN

    @property
    def worst(self) -> ParameterVerdict:
        """The parameter with the largest error in units in the last place; a NaN is larger than any number."""
        return max(self.parameters, key=lambda p: math.inf if math.isnan(p.error) else p.units)

    @property
    def error(self) -> float:
        """Largest distance of any weight from float64."""
        return self.worst.error if math.isnan(self.worst.error) else max(p.error for p in self.parameters)

    @property
    def units(self) -> float:
        """Largest distance in units in the last place of a parameter's largest weight."""
        return self.worst.units

    @property
    def distance(self) -> float:
        """How far ours are from the oracle, as a share of how far the weights went (root mean squares over all)."""
        moved = math.hypot(*(p.moved for p in self.parameters))
        off = math.hypot(*(p.off for p in self.parameters))
        return off / moved if moved else (0.0 if off == 0 else math.inf)

    def __str__(self) -> str:
        algorithm = "AdamW" if self.state_dtype == "float32" else f"AdamW with {self.state_dtype} moments"
        elements = sum(math.prod(p.shape) for p in self.parameters)
        worst = self.worst
        lines = [
            f"{'ok' if self.ok else 'NOT OK'}: {algorithm} over {self.steps} steps, {len(self.parameters)} parameters, "
            f"{elements:,} elements; {self.where}; {self.kernel}",
            f"  largest error against float64   {self.error:.3g}; torch.optim's own: "
            f"{max(p.torch_error for p in self.parameters):.3g}",
            f"  in units in the last place      {worst.units:.3g} (torch {worst.torch_units:.3g}) "
            f"in {worst.name} {worst.shape}",
            f"  share of the way that they went {self.distance:.3g}",
        ]
        if self.skipped:
            lines.append(f"  {self.skipped} steps had gradients that are not finite, and changed nothing")
        if self.state_dtype != "float32":
            lines.append(f"  not AdamW: its distance from it is expected to be at most {DISTANCE[self.state_dtype]}")
        for p in self.parameters:
            if not p.rounded:
                lines.append(f"  {p.name}: a {p.dtype} weight is not the nearest one to its float32 master")
            if self.state_dtype == "float32" and not self._as_exact_as_torch(p):
                lines.append(
                    f"  {p.name} {p.shape}: {p.units:.3g} units, torch {p.torch_units:.3g}; "
                    f"at most {_FACTOR * p.torch_units + _UNITS:.3g} is what rounding explains"
                )
        return "\n".join(lines)


def verify(
    model: torch.nn.Module,
    batch_or_loss: Any,
    steps: int = 5,
    *,
    optimizer: type[OffloadAdam] | None = None,
    policy: OffloadPolicy | None = None,
    **options: Any,
) -> Verdict:
    """Train a copy of `model` for `steps` with OffloadAdamW, and compare it with `torch.optim.AdamW` and with float64.

    `batch_or_loss` is a function that takes a model and gives its loss (it must use the model that it is given), or what the
    model is called with: a tensor, a tuple or a dict. The loss is then the model's output where that is a scalar, its
    `.loss` where it has one, else its mean square: any gradient will do. `optimizer` is OffloadAdamW (the default) or
    OffloadAdam, `options` are its arguments (lr, betas, …); `policy` is where its state lives, on disk in a temporary folder
    beside the policy's. The model, its gradients and torch's random numbers stay as they are. Takes RAM for a copy, and about
    40 bytes a parameter. Raises ValueError where there is no gradient, or nothing to compare.
    """
    from offload_lab.optimizer import OffloadAdamW

    twin, _ = _copy_of(model)
    groups = [{"params": [(name, parameter) for name, parameter in twin.named_parameters() if parameter.requires_grad]}]
    return _compare(optimizer or OffloadAdamW, twin, groups, options, policy or OffloadPolicy(), None, batch_or_loss, steps)


def verify_optimizer(
    optimizer: OffloadAdam, policy: OffloadPolicy, model: torch.nn.Module, batch_or_loss: Any, steps: int
) -> Verdict:
    """`verify`, with the groups, settings and present state of `optimizer`, which has `model`'s parameters."""
    twin, mapped = _copy_of(model)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = []
    for group in optimizer.param_groups:
        foreign = [p for p in group["params"] if id(p) not in mapped]
        if foreign:
            raise ValueError(f"a parameter of shape {tuple(foreign[0].shape)} of this optimizer is not one of the model's")
        named = [(names[id(p)], mapped[id(p)]) for p in group["params"]]
        groups.append({**{k: v for k, v in group.items() if k != "param_names"}, "params": named})
    state = optimizer.state_dict()["state"]
    return _compare(type(optimizer), twin, groups, {}, policy, state, batch_or_loss, steps)


def _copy_of(model: torch.nn.Module) -> tuple[torch.nn.Module, dict[int, torch.nn.Parameter]]:
    """A copy of the model without its gradients, and the copy of each of its parameters by the original's id."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():  # so that deepcopy does not copy gradients, which may be as large as the model
        memo[id(parameter)] = torch.nn.Parameter(parameter.detach().clone(), requires_grad=parameter.requires_grad)
    mapped = dict(memo)
    return copy.deepcopy(model, memo), mapped


def _loss_function(batch_or_loss: Any) -> Loss:
    if callable(batch_or_loss) and not isinstance(batch_or_loss, torch.Tensor):
        return batch_or_loss

    def loss(model: torch.nn.Module) -> torch.Tensor:
        if isinstance(batch_or_loss, Mapping):
            output = model(**batch_or_loss)
        else:
            output = model(*batch_or_loss) if isinstance(batch_or_loss, (tuple, list)) else model(batch_or_loss)
        found = getattr(output, "loss", None)
        output = found if isinstance(found, torch.Tensor) else output
        if not isinstance(output, torch.Tensor):
            raise ValueError(
                f"the model gives a {type(output).__name__} without a loss; "
                "give a function that takes the model and gives a loss"
            )
        return output if output.numel() == 1 else output.float().pow(2).mean()

    return loss


def _compare(
    kind: type[OffloadAdam],
    twin: torch.nn.Module,
    groups: list[dict[str, Any]],
    options: dict[str, Any],
    policy: OffloadPolicy,
    state: Mapping[int, Mapping[str, Any]] | None,
    batch_or_loss: Any,
    steps: int,
) -> Verdict:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps={steps!r}: a whole number of at least 1 is needed")
    named = [pair for group in groups for pair in group["params"]]
    if not named:
        raise ValueError("the model has no parameter that requires a gradient, so there is nothing to compare")
    with _room(policy) as there, kind(groups, **options, offload=there) as ours, torch.random.fork_rng():
        if state:
            ours.load_state_dict({"state": dict(state), "param_groups": ours.state_dict()["param_groups"]})
        plain = _Reference(ours, state or {}, torch.float32)
        oracle = _Reference(ours, state or {}, torch.float64)
        first = [weight.detach().clone() for weight in oracle.weights]
        skipped = _train(twin, [p for _, p in named], ours, (plain, oracle), _loss_function(batch_or_loss), steps)
        masters = {number: entry.get("master") for number, entry in ours.state_dict()["state"].items()}
        found = tuple(
            _judge(name, p, masters.get(i), plain.weights[i].detach(), oracle.weights[i].detach(), first[i])
            for i, (name, p) in enumerate(named)
            if p.numel()
        )
        where = "state in RAM" if there.tier == "ram" else "state on disk"
        return Verdict(found, steps, skipped, there.state_dtype, ours.stats()["kernel"], where)


@contextmanager
def _room(policy: OffloadPolicy) -> Iterator[OffloadPolicy]:
    """The policy with a folder of its own on the same disk, and nothing that goes on after a step."""
    if policy.tier == "ram":
        yield replace(policy, overlap="none")
        return
    near = policy.directories[0].absolute().parent
    with tempfile.TemporaryDirectory(prefix="offload-verify-", dir=near if near.is_dir() else None) as folder:
        yield replace(policy, directory=folder, existing="replace", overlap="none")


class _Reference:
    """torch's own optimizer over host copies of the weights in `dtype`, with the same settings and state as ours."""

    def __init__(self, ours: OffloadAdam, state: Mapping[int, Mapping[str, Any]], dtype: torch.dtype) -> None:
        self.weights: list[torch.Tensor] = []
        kind = torch.optim.AdamW if ours.param_groups[0]["decoupled_weight_decay"] else torch.optim.Adam
        groups = []
        for group in ours.param_groups:
            settings = {name: group[name] for name in ("eps", "weight_decay", "amsgrad", "maximize")}
            settings |= {"lr": float(group["lr"]), "betas": tuple(map(float, group["betas"]))}
            members = []
            for parameter in group["params"]:
                entry = state.get(len(self.weights), {})
                start = entry.get("master", parameter)
                members.append(torch.nn.Parameter(start.detach().to("cpu", dtype).clone()))
                self.weights.append(members[-1])
            groups.append({**settings, "params": members})
        self.optimizer = kind(groups, foreach=False)
        for number, entry in state.items():
            values = {name: value.to(dtype) for name, value in as_float32(entry).items()}
            self.optimizer.state[self.weights[number]] = {"step": torch.tensor(float(entry["step"])), **values}

    def step(self, gradients: Sequence[torch.Tensor | None]) -> None:
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = None if gradient is None else gradient.detach().to("cpu", weight.dtype)
        self.optimizer.step()


def _train(
    twin: torch.nn.Module,
    parameters: Sequence[torch.nn.Parameter],
    ours: OffloadAdam,
    references: Sequence[_Reference],
    loss_of: Loss,
    steps: int,
) -> int:
    """Step all by the gradients of `twin`. Returns how many steps were skipped."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    for _ in range(steps):
        with torch.enable_grad():
            loss = loss_of(twin)
            if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
                raise ValueError("the loss must be a tensor of one element")
            # Not backward(): a function that uses another model than it was given must not touch that model's gradients.
            found = torch.autograd.grad(loss, trained, allow_unused=True) if loss.requires_grad else [None] * len(trained)
        if all(gradient is None for gradient in found):
            raise ValueError(
                "no parameter has a gradient: does the loss function use the model that it is given, and not another one?"
            )
        for parameter, gradient in zip(trained, found, strict=True):
            wide = getattr(parameter, "grad_dtype", None) == torch.float32  # as the policy may have asked for
            parameter.grad = gradient.float() if wide and gradient is not None else gradient
        before = ours.stats()["skipped_steps"]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="step skipped")
            ours.step()
        if ours.stats()["skipped_steps"] == before:
            for reference in references:
                reference.step([parameter.grad for parameter in parameters])
    return ours.stats()["skipped_steps"]


def _judge(
    name: str,
    parameter: torch.Tensor,
    master: torch.Tensor | None,
    plain: torch.Tensor,
    oracle: torch.Tensor,
    first: torch.Tensor,
) -> ParameterVerdict:
    weight = parameter.detach().to("cpu")
    ours = (weight if master is None else master).double()
    rounded = True
    if master is not None:
        nearest = master.to(weight.dtype).double()
        rounded = bool(((weight.double() - ours).abs() <= (nearest - ours).abs()).all())
    largest = max(float(oracle.abs().max()), float(first.abs().max()))
    _, exponent = math.frexp(largest)
    return ParameterVerdict(
        name=name,
        shape=tuple(weight.shape),
        dtype=str(weight.dtype).removeprefix("torch."),
        error=float((ours - oracle).abs().max()),
        torch_error=float((plain.double() - oracle).abs().max()),
        unit=math.ldexp(1.0, max(exponent - 24, -149)),
        moved=float((oracle - first).norm()),
        off=float((ours - oracle).norm()),
        rounded=rounded,
    )
