"""Lesson 3: the smallest offloaded optimizer, tried on a counted link, then by the engine's own `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from course.contract import LEARNERS_ERRORS, Beside
from course.pretend import Wire
from offload_lab.training import Batches, GPTConfig, TinyGPT, corpus, loss_of
from offload_lab.verify import Verdict, verify
from quizzes.answers import shell
from quizzes.say import N_, _

Optimizer = Callable[..., Any]
_SHAPES = ((40, 25), (300,), ())
_STEPS = 6
_LR, _BETAS, _EPS, _DECAY = 1e-2, (0.9, 0.95), 1e-8, 0.1
_SETTINGS = {"lr": _LR, "betas": _BETAS, "eps": _EPS, "decay": _DECAY}

# What people write instead of AdamW on masters, as a change to the right one; and what to say to whom it fits.
_IDEAS = {
    "alone": N_(
        "Your masters are the rounded weights again in each step, so small updates are lost (lesson 2). Take the float32 "
        "master of the step before, not the weight from the device."
    ),
    "no bias correction": N_(
        "Your moments are used as they are. They began at zero: divide by 1 − beta**step, as adamw() does."
    ),
    "always step 1": N_("Your step count stays at 1: bias correction then never ends. Count every call of step()."),
    "count of updates": N_("Your count goes up with each weight. Bias correction counts steps, not weights."),
    "forgets": N_("Your moments begin at zero in each step. Make them once, in __init__, and keep them."),
    "no decay": N_("Your masters are not decayed: pass decay on to adamw()."),
    "defaults": N_("You call adamw() with its own defaults. Pass lr, betas, eps and decay on."),
    "16-bit moments": N_("Your moments are kept in bfloat16. That is another algorithm: exp_avg_sq hardly ever changes there."),
}


def check_optimizer(kind: Optimizer) -> bool:
    """Try `kind(weights, wire, lr=, betas=, eps=, decay=)`; print what is right or wrong, with a picture where a notebook
    shows one; return whether all is right. What it raises is said, not raised."""
    try:
        said, rows = _try(kind)
        verdict = None if said else verified(kind)
    except LEARNERS_ERRORS as error:
        print(_("Not yet: it stops with {type}: {error}").format(type=type(error).__name__, error=error))
        return False
    if verdict is None:
        print(said)
        if rows and shell() is not None:
            from IPython.display import display

            display(Beside(_("Bytes a parameter over the link: expected and yours"), rows))
        return False
    print(_("Down 2 and up 2 bytes a parameter, and masters as they should be. Now the engine's own test:\n"))
    print(verdict)
    if not verdict.ok:
        print(_("\nNot yet: on a model of many layers it drifts. Is anything shared between weights, or kept in 16 bits?"))
    return verdict.ok


def _try(kind: Optimizer) -> tuple[str, list[tuple[str, float, float | None, str]]]:
    """What is wrong, empty for nothing; and the rows of the picture."""
    wire, weights = Wire(), _weights()
    mine = kind(weights, wire, **_SETTINGS)
    masters = getattr(mine, "masters", None)
    if masters is None or masters is ...:
        return _("Not begun. Fill in __init__ first: self.masters, one float32 tensor for each weight."), []
    if wrong := _wrong_masters(mine.masters, weights):
        return _("Not yet: {wrong}").format(wrong=wrong), []
    elements, before = 0, [weight.detach().clone() for weight in weights]
    for step in range(_STEPS):
        gradients = _gradients(step)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = None if gradient is None else gradient.clone()
            elements += 0 if gradient is None else gradient.numel()
        mine.step()
    if not wire.crossings and all(torch.equal(a, b.detach()) for a, b in zip(before, weights, strict=True)):
        return _("Not begun. Fill in step(): after six steps no weight has changed, and nothing has crossed the link."), []
    down, up = wire.crossed("down") / elements, wire.crossed("up") / elements
    rows = [(f"bytes {way}", 2.0, each, f"{each:.3g}") for way, each in (("down", down), ("up", up))]
    if wrong := _wrong_masters(mine.masters, weights) or _wrong_bytes(wire, down, up) or _wrong_numbers(mine.masters, weights):
        return _("Not yet: {wrong}").format(wrong=wrong), rows
    return "", rows


def _wrong_masters(masters: Any, weights: Sequence[torch.Tensor]) -> str:
    if not isinstance(masters, list | tuple) or len(masters) != len(weights):
        return _("self.masters has to be a list of {count} tensors, one for each weight, in their order.").format(
            count=len(weights)
        )
    for number, (master, weight) in enumerate(zip(masters, weights, strict=True)):
        if not isinstance(master, torch.Tensor) or master.shape != weight.shape:
            return _("self.masters[{number}] has to be a tensor of shape {shape}, as its weight.").format(
                number=number, shape=tuple(weight.shape)
            )
        if master.dtype != torch.float32:
            return _("self.masters[{number}] is {dtype}. A master is float32; 16 bits lose small updates (lesson 2).").format(
                number=number, dtype=master.dtype
            )
    return ""


def _wrong_bytes(wire: Wire, down: float, up: float) -> str:
    wide = {way for way, dtype, _count in wire.crossings if dtype.itemsize > 2}
    if down == 0:
        return _(
            "nothing came down the link, so you read a gradient where it lies. Here device and host share a "
            "memory, and it works; on an accelerator the host cannot. Fetch it with self.wire.down(…)."
        )
    if "down" in wide:
        return _(
            "{down:.3g} bytes a parameter come down. You widen before the link; fetch 16 bits, then widen on this side."
        ).format(down=down)
    if down > 2:
        return _(
            "{down:.3g} bytes a parameter come down, and the gradient has 2. What else do you fetch? With "
            "whole masters in host memory the weight need not come down, and the state is here already."
        ).format(down=down)
    if up == 0:
        return _("nothing went up the link, so the device computes on with its old weights. Send them with self.wire.up(…).")
    if "up" in wide:
        return _("{up:.3g} bytes a parameter go up: float32 masters. Round them on this side, and send 16 bits.").format(up=up)
    if up > 2:
        return _("{up:.3g} bytes a parameter go up, and the new weight has 2. What else do you send?").format(up=up)
    if (down, up) != (2, 2):
        return _(
            "{down:.3g} bytes a parameter come down and {up:.3g} go up, where each should be 2. Is a weight left out?"
        ).format(down=down, up=up)
    return ""


def _wrong_numbers(masters: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]) -> str:
    start = [weight.detach().float() for weight in _weights()]
    # Whether a weight that had no gradient in a step counts that step is left free: torch does not, and it is one line more.
    if not any(_near(masters, _masters_of(right), start) for right in ("", "own count")):
        for name, told in _IDEAS.items():
            if _near(masters, _masters_of(name), start):
                return _(told)
        return _(
            "after six steps the masters are not AdamW's. Is every update made with this step's gradient of its own weight?"
        )
    for number, (master, weight) in enumerate(zip(masters, weights, strict=True)):
        if not torch.equal(weight.detach(), master.to(weight.dtype)):
            return _("weight {number} on the device is not its master, rounded to 16 bits. What is sent up, and when?").format(
                number=number
            )
    return ""


def _near(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor], start: Sequence[torch.Tensor]) -> bool:
    """Whether they are the same but for rounding: within a thousandth of the way that they went."""
    apart = sum(float((a.double() - b.double()).norm()) for a, b in zip(some, others, strict=True))
    went = sum(float((b.double() - c.double()).norm()) for b, c in zip(others, start, strict=True))
    return apart <= 1e-3 * went  # False for NaN


def _weights() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(3)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator).bfloat16()) for shape in _SHAPES]


def _gradients(step: int) -> list[torch.Tensor | None]:
    """One is missing in the third step: not every weight takes part in every backward."""
    generator = torch.Generator().manual_seed(30 + step)
    made: list[torch.Tensor | None] = [torch.randn(shape, generator=generator).bfloat16() for shape in _SHAPES]
    if step == 2:
        made[1] = None
    return made


def _masters_of(idea: str) -> list[torch.Tensor]:
    """Masters after the six steps, by AdamW in float64 with `idea` in the place of what is right ("" for nothing)."""
    lr, (beta1, beta2), eps, decay = _LR, _BETAS, _EPS, _DECAY
    if idea == "defaults":
        lr, (beta1, beta2), eps, decay = 1e-3, (0.9, 0.999), 1e-8, 0.01
    if idea == "no decay":
        decay = 0.0
    masters = [weight.detach().double() for weight in _weights()]
    moments = [(torch.zeros_like(master), torch.zeros_like(master)) for master in masters]
    counts, updates = [0] * len(masters), 0
    for step in range(_STEPS):
        for number, gradient in enumerate(_gradients(step)):
            if gradient is None:
                continue
            updates, counts[number] = updates + 1, counts[number] + 1
            mean, square = moments[number]
            if idea == "forgets":
                mean, square = torch.zeros_like(mean), torch.zeros_like(square)
            wide = gradient.double()
            mean = beta1 * mean + (1 - beta1) * wide
            square = beta2 * square + (1 - beta2) * wide * wide
            if idea == "16-bit moments":
                mean, square = mean.bfloat16().double(), square.bfloat16().double()
            moments[number] = mean, square
            count = {"always step 1": 1, "count of updates": updates, "own count": counts[number]}.get(idea, step + 1)
            corrections = (1.0, 1.0) if idea == "no bias correction" else (1 - beta1**count, 1 - beta2**count)
            master = masters[number] * (1 - lr * decay)
            master = master - lr * (mean / corrections[0]) / ((square / corrections[1]).sqrt() + eps)
            masters[number] = master.bfloat16().double() if idea == "alone" else master
    return masters


class _AsTheEngine:
    """What `verify` asks of an optimizer, around a learner's."""

    def __init__(self, kind: Optimizer, groups: Sequence[dict[str, Any]], lr: float) -> None:
        parameters = [parameter for group in groups for _, parameter in group["params"]]
        settings = {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
        fixed = {"amsgrad": False, "maximize": False, "decoupled_weight_decay": True}
        self.param_groups = [{"params": parameters, **settings, **fixed}]
        self._parameters = parameters
        self._mine = kind(parameters, Wire(), lr=lr, betas=(0.9, 0.999), eps=1e-8, decay=0.01)

    def __enter__(self) -> _AsTheEngine:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def step(self) -> None:
        kept = [parameter.grad for parameter in self._parameters]  # a learner's step may give them up; verify needs them
        self._mine.step()
        for parameter, gradient in zip(self._parameters, kept, strict=True):
            parameter.grad = gradient

    def stats(self) -> dict[str, Any]:
        return {"kernel": "your own update", "skipped_steps": 0}

    def state_dict(self) -> dict[str, Any]:
        return {"state": {number: {"master": master} for number, master in enumerate(self._mine.masters)}}


def verified(kind: Optimizer) -> Verdict:
    """The engine's own comparison with torch and with float64, for a learner's optimizer on a small GPT in bfloat16."""
    model = TinyGPT(GPTConfig(layers=2, width=32, heads=2, context=32, dtype=torch.bfloat16))
    batch = next(Batches(corpus(), 4, 32))

    def built(groups: Iterable[dict[str, Any]], lr: float, offload: Any) -> _AsTheEngine:
        return _AsTheEngine(kind, list(groups), lr)

    return verify(model, lambda twin: loss_of(twin, *batch), 5, optimizer=built, lr=1e-3)  # type: ignore[arg-type]
