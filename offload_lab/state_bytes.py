"""What weights, gradients and state take, a parameter at a time: the arithmetic of the lessons. Pure: no torch.

Every figure here is *predicted*. `planner.py` places a whole training on a machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab.partition import MASTER_BYTES, MOMENT_BYTES, QUANTUM, WEIGHT_BYTES

ELEMENT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
OPTIMIZERS = ("adamw", "ram", "disk")
DEFAULT_BUDGET = 32 << 20


@dataclass(frozen=True)
class TrainingBytes:
    """Predicted bytes of a process that trains `parameters` parameters of `dtype`, activations and Python left out."""

    parameters: int
    dtype: str
    optimizer: str
    ram: dict[str, int]
    """Bytes by kind, between steps, in RAM (or on the accelerator, where model and optimizer live there)."""
    transient: dict[str, int]
    """Bytes by kind that come on top while a step runs."""
    disk: dict[str, int]

    @property
    def steady_bytes(self) -> int:
        return sum(self.ram.values())

    @property
    def peak_bytes(self) -> int:
        return self.steady_bytes + sum(self.transient.values())

    @property
    def disk_bytes(self) -> int:
        return sum(self.disk.values())

    def rows(self) -> list[tuple[str, str, int]]:
        """(where, kind, bytes) of everything that is not zero."""
        parts = (("RAM", self.ram), ("RAM, during a step", self.transient), ("disk", self.disk))
        return [(where, kind, nbytes) for where, kinds in parts for kind, nbytes in kinds.items() if nbytes]

    def __str__(self) -> str:
        lines = [f"{self.parameters:,} parameters in {self.dtype}, {self.optimizer} (predicted, without activations)"]
        lines += [
            f"  {where:19} {kind:22} {nbytes:>16,} bytes  {nbytes / self.parameters:6.2f} a parameter"
            for where, kind, nbytes in self.rows()
        ]
        lines.append(
            f"  {'RAM at the peak':42} {self.peak_bytes:>16,} bytes  {self.peak_bytes / self.parameters:6.2f} a parameter"
        )
        return "\n".join(lines)


def training_bytes(
    parameters: int,
    dtype: str = "bfloat16",
    optimizer: str = "adamw",
    *,
    ram_budget: int | None = None,
    state_dtype: str = "float32",
    amsgrad: bool = False,
) -> TrainingBytes:
    """Predict for one of three optimizers.

    "adamw": `torch.optim.AdamW`; a 16-bit model with float32 masters beside it, and float32 copies of the gradients during
    the step. "ram" and "disk": OffloadAdamW; on disk two generations of state and weights, in RAM at most `ram_budget`
    bytes of buffers and resident partitions (32 MiB if not given). `state_dtype` is the policy's, and of OffloadAdamW only;
    `amsgrad` adds a third moment. Raises ValueError for anything it does not know.
    """
    if isinstance(parameters, bool) or not isinstance(parameters, int) or parameters < 1:
        raise ValueError(f"parameters={parameters!r}: a whole number of at least 1 is needed")
    if dtype not in ELEMENT_BYTES:
        raise ValueError(f"dtype={dtype!r}: one of {', '.join(ELEMENT_BYTES)} is needed")
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer={optimizer!r}: one of {', '.join(OPTIMIZERS)} is needed")
    if state_dtype not in MOMENT_BYTES or (state_dtype != "float32" and optimizer == "adamw"):
        raise ValueError(f"state_dtype={state_dtype!r}: one of {', '.join(MOMENT_BYTES)} is needed, and for adamw float32")
    if state_dtype == "int8" and amsgrad:
        raise ValueError('state_dtype="int8" has no amsgrad')
    n, element = parameters, ELEMENT_BYTES[dtype]
    names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")
    moments = {name: MOMENT_BYTES[state_dtype] * n for name in names}
    if state_dtype == "int8":
        moments["scales of moments"] = 2 * 4 * -(-n // QUANTUM)
    ram = {"weights": element * n, "gradients": element * n}
    transient: dict[str, int] = {}
    disk: dict[str, int] = {}
    if optimizer == "adamw":
        if dtype != "float32":
            ram["master weights"] = 4 * n
            transient["float32 gradients"] = 4 * n - element * n  # the 16-bit ones go as the copies come
        ram |= moments
    elif optimizer == "ram":
        master = MASTER_BYTES[dtype]
        ram |= moments
        if master:
            ram["low half of masters" if master == 2 else "master weights"] = master * n
    else:
        ram["buffers"] = DEFAULT_BUDGET if ram_budget is None else ram_budget
        state = sum(moments.values()) + MASTER_BYTES[dtype] * n
        disk = {"state, two generations": 2 * state, "weights, two generations": 2 * WEIGHT_BYTES[dtype] * n}
    return TrainingBytes(n, dtype, optimizer, ram, transient, disk)


def readable(nbytes: int | float) -> str:
    """Bytes in decimal units, as disks and memory figures are read aloud: 453 MB, 1.2 GB."""
    value, units = float(nbytes), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while abs(value) >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if value >= 100 or units[0] == "bytes" else f"{value:.3g} {units[0]}"
