"""Bytes of a training, moment by moment and a parameter at a time, from the engine's own predictions. Pure: no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from offload_lab.state_bytes import training_bytes
from quizzes.say import _
from quizzes.values import Strict

MILLION = 10**6
KINDS = {
    "weights": "weights",
    "gradients": "gradients",
    "float32 gradients": "gradients",
    "master weights": "master",
    "low half of masters": "master",
    "exp_avg": "moments",
    "exp_avg_sq": "moments",
    "max_exp_avg_sq": "moments",
    "scales of moments": "moments",
    "state, two generations": "optimizer state",
    "weights, two generations": "weights",
}
"""Kinds of `training_bytes` as a figure groups them. Buffers are not among them: they do not grow with the model."""


def kind_name(kind: str) -> str:
    return {
        "weights": _("weights"),
        "gradients": _("gradients"),
        "master": _("masters"),
        "moments": _("moments"),
        "optimizer state": _("optimizer state"),
    }[kind]


class Way(Strict):
    """A way of training, as `training_bytes` has it."""

    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    optimizer: Literal["adamw", "ram", "disk"] = "adamw"
    state_dtype: Literal["float32", "bfloat16", "int8"] = "float32"

    @model_validator(mode="after")
    def _is_possible(self) -> Way:
        training_bytes(MILLION, self.dtype, self.optimizer, state_dtype=self.state_dtype)
        return self

    def by_tier(self) -> dict[str, dict[str, float]]:
        """Tier -> kind -> bytes a parameter, between two steps; tiers that hold nothing left out."""
        parameters = 1024 * MILLION
        made = training_bytes(parameters, self.dtype, self.optimizer, state_dtype=self.state_dtype)
        tiers = {"RAM": _grouped(made.ram, parameters), "disk": _grouped(made.disk, parameters)}
        return {tier: kinds for tier, kinds in tiers.items() if kinds}


class Moments(Strict):
    """torch's AdamW on `parameters` million parameters: what memory holds as `steps` steps go by; `limit` in GB is drawn as a
    line. With `letters`, kinds are called P, Q, R, … in the order in which they come."""

    parameters: Annotated[int, Field(ge=1, le=100_000)]
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    steps: Annotated[int, Field(ge=1, le=2)] = 2
    limit: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = None
    letters: bool = False

    def columns(self) -> list[tuple[str, str, dict[str, int]]]:
        """(which step, what happens, kind -> bytes) of each moment, in order.

        Weights and masters are there from the start, gradients come with backward and go when they are cleared, moments come
        with the first step and stay.
        """
        made = training_bytes(self.parameters * MILLION, self.dtype, "adamw")
        steady, peak = _grouped(made.ram), _grouped({**made.ram}, more=made.transient)
        built = {kind: steady[kind] for kind in ("weights", "master") if kind in steady}
        without = {kind: steady[kind] for kind in steady if kind != "gradients"}
        first = built | {"gradients": steady["gradients"]}
        found = [("", _("built"), built)]
        for number in range(1, self.steps + 1):
            named = _("step {number}").format(number=number)
            found.append((named, _("backward"), first if number == 1 else steady))
            found.append((named, _("update"), peak))
            found.append((named, _("cleared"), without))
        return found

    def names(self) -> dict[str, str]:
        """Kind -> what the figure calls it, in the order in which they come."""
        kinds = dict.fromkeys(kind for _step, _what, held in self.columns() for kind in held)
        if not self.letters:
            return {kind: kind_name(kind) for kind in kinds}
        return {kind: chr(ord("P") + place) for place, kind in enumerate(kinds)}


def _grouped(kinds: dict[str, int], divisor: int = 1, more: dict[str, int] | None = None) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, nbytes in [*kinds.items(), *(more or {}).items()]:
        if kind in KINDS and nbytes:
            found[KINDS[kind]] = found.get(KINDS[kind], 0) + nbytes
    return found if divisor == 1 else {kind: nbytes / divisor for kind, nbytes in found.items()}  # type: ignore[misc]
