"""What an export needs: a plan that was read and checked, and the settings of training that no plan has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from offload_lab.plan import Plan

WHERE = {"gpu": "on the accelerator", "ram": "in RAM", "disk": "on disk"}
WEIGHT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class ExportError(ValueError):
    """The plan cannot be had from the stack that was asked for; the message says why, and what can."""


@dataclass(frozen=True)
class Recipe:
    """Settings of AdamW and of the step. Defaults are those of `torch.optim.AdamW`, written out wherever they go, because
    other stacks have others (DeepSpeed: weight_decay 0)."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    clip: float | None = 1.0
    """Largest norm of all gradients together; None: not clipped."""

    def __post_init__(self) -> None:
        for name, value in (("lr", self.lr), ("eps", self.eps), ("weight_decay", self.weight_decay)):
            if not _number(value) or value < 0:
                raise ValueError(f"{name}={value!r}: a finite number of at least 0 is needed")
        if len(self.betas) != 2 or not all(_number(beta) and 0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas={self.betas!r}: two numbers of at least 0 and less than 1 are needed")
        if self.clip is not None and (not _number(self.clip) or self.clip <= 0):
            raise ValueError(f"clip={self.clip!r}: a finite number above 0 is needed, or None for no clipping")

    def arguments(self) -> dict[str, object]:
        """The keyword arguments of AdamW."""
        return {"lr": self.lr, "betas": list(self.betas), "eps": self.eps, "weight_decay": self.weight_decay}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def read_plan(path: Path) -> Plan:
    """The plan in the file `path`. Raises ValueError naming the file and what is wrong with it, FileNotFoundError and other
    OSErrors as the file system has them."""
    try:
        plan = Plan.from_json(path.read_text(encoding="utf-8"))
        check(plan)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: this is no plan: it is not UTF-8 text ({error.reason})") from None
    except ExportError:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return plan


def check(plan: Plan) -> None:
    """What every export relies on. Raises ValueError naming the field, ExportError where the plan itself does not fit."""
    for name in ("parameters", "batch", "sequence", "accumulation"):
        value = getattr(plan.model, name)
        if value < 1:
            raise ValueError(f"plan.model.{name}={value!r}: at least 1 is needed")
    places = plan.placement
    if plan.hardware.gpus == 0 and "gpu" in (places.state, places.weights, places.gradients):
        raise ValueError(f"plan.hardware.gpus=0, and the plan has something on an accelerator: {places}")
    if "disk" in (places.state, places.weights, places.gradients) and not plan.offload.directory:
        raise ValueError("plan.offload.directory is missing, and the plan puts something on disk: name a folder of that disk")
    if not plan.fits:
        raise ExportError(f"the plan does not fit, so there is nothing to export. {plan.why}")


def ranks(plan: Plan) -> int:
    """Processes that train: one an accelerator, or one on the CPU."""
    return max(plan.hardware.gpus, 1)


def about(plan: Plan) -> str:
    """One line on what was exported."""
    model = plan.model
    machine = plan.hardware.name
    return printable(f"{model.name}, {model.parameters:,} parameters in {model.dtype}, for {machine}: {plan.placement}")


def printable(text: str) -> str:
    """`text` on one line: a name with line breaks must not leave its comment."""
    return "".join(character if character.isprintable() else " " for character in text)


def moves(plan: Plan) -> bool:
    """Whether weights live elsewhere than where the model is computed: on the accelerator, or in RAM where there is none."""
    return plan.placement.weights != ("gpu" if plan.hardware.gpus else "ram")
