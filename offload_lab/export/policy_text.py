"""The arguments of OffloadPolicy that a plan asks for, as Python text."""

from __future__ import annotations

from offload_lab.export.recipe import ranks
from offload_lab.plan import Plan


def policy_text(plan: Plan, backward: bool = False) -> str:
    """Those that differ from the defaults, for one process. `backward`: whether gradients may be used up during backward; of
    several ranks none knows then what the others will skip."""
    offload, places = plan.offload, plan.placement
    arguments: dict[str, object] = {"tier": places.state}
    if places.state == "disk":
        arguments |= {"directory": offload.directory, "durability": offload.durability}
        if offload.durability != "checkpoint":
            arguments["existing"] = "resume"
        arguments["depth"] = offload.depth
    if offload.ram_budget is not None:
        arguments["ram_budget"] = offload.ram_budget // ranks(plan)  # the plan's is the machine's, the policy's a process's
    if offload.partition_size is not None:
        arguments["partition_size"] = offload.partition_size
    for name, defaults in (
        ("state_dtype", ("float32",)),
        ("gradients", ("parameter",)),
        ("overlap", ("none",) if backward else ("none", "backward")),
    ):
        if getattr(offload, name) not in defaults:
            arguments[name] = getattr(offload, name)
    return ", ".join(f"{name}={_literal(value)}" for name, value in arguments.items())


def _literal(value: object) -> str:
    if not isinstance(value, str):
        return repr(value)
    return f'"{value}"' if value.isprintable() and not set('"\\') & set(value) else repr(value)
