"""Plans written by hand, for exporting: one small model, any placement. Used by bench.exports and by the tests of exports."""

from offload_lab.hardware import Figure, Hardware
from offload_lab.plan import PHASES, Load, Offload, Placement, Plan, Targets

GB = 10**9


def plan(state="disk", weights="gpu", gradients="gpu", *, gpus=1, capacity=None, model=None, fits=True, why="", offload=None):
    """A plan of one million bfloat16 parameters, on a machine of assumed figures."""
    on_disk = "disk" in (state, weights, gradients)
    offload = {"directory": "state" if on_disk else None} | (offload or {})
    loads = {"name": "small", "parameters": 1_000_000, "dtype": "bfloat16", "batch": 2, "sequence": 8} | (model or {})
    assumed = Figure(64 * GB, "assumed", "for a test")
    return Plan(
        fits=fits,
        why=why,
        model=Load(**loads),
        hardware=Hardware(name="a machine", ram=assumed, dram_bandwidth=assumed, gpus=gpus),
        placement=Placement(state, weights, gradients),
        offload=Offload(**offload),
        targets=Targets(),
        capacity=capacity if capacity is not None else {"gpu": 24 * GB, "ram": 64 * GB, "disk": 1000 * GB},
        phases={phase: {} for phase in PHASES},
        time=None,
    )
