"""Parameter groups: which settings and parameters an optimizer with offloaded state accepts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from offload_lab.sharded import local


def without_duplicates(group: dict[str, Any]) -> dict[str, Any]:
    """The group with each Parameter once: a tied weight has one master and gets one update."""
    params = group.get("params") if isinstance(group, dict) else None
    if isinstance(params, (torch.Tensor, set)) or params is None:
        return group
    listed = list(params)
    first = {id(entry[1] if isinstance(entry, tuple) else entry): entry for entry in reversed(listed)}
    return {**group, "params": list(reversed(first.values()))}


def check_group(group: dict[str, Any]) -> None:
    """Raises ValueError naming the setting that is out of range or not supported."""
    if group.get("tier") not in (None, "ram", "disk", "device"):
        raise ValueError(
            f'tier={group["tier"]!r} of a parameter group: "ram", "disk" and "device" (beside the parameter) are what a group '
            "can ask for"
        )
    for parameter in group["params"] if group.get("tier") == "device" else ():
        if not parameter.is_cpu:
            raise ValueError(
                f'tier="device" of a parameter group whose parameters are on {parameter.device}: state on an accelerator is '
                'not kept by this edition. Say tier="ram" (the update is the same), or give the group to torch.optim.AdamW.'
            )
    for name in ("capturable", "differentiable"):
        if group[name]:
            raise ValueError(f"{name}=True is not supported by OffloadAdamW; leave it out, or use torch.optim.AdamW")
    for name, value in (("lr", group["lr"]), ("betas[0]", group["betas"][0]), ("betas[1]", group["betas"][1])):
        if isinstance(value, torch.Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element, not of shape {tuple(value.shape)}")
    if not float(group["lr"]) >= 0.0:
        raise ValueError(f"Invalid learning rate: {group['lr']}")
    if not float(group["eps"]) >= 0.0:
        raise ValueError(f"Invalid epsilon value: {group['eps']}")
    for index, beta in enumerate(group["betas"]):
        if not 0.0 <= float(beta) < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
    if not float(group["weight_decay"]) >= 0.0:
        raise ValueError(f"Invalid weight_decay value: {group['weight_decay']}")


def check_overlap(named: list[tuple[str, torch.Tensor]]) -> None:
    """Raises ValueError when two distinct Parameters share memory: each would be updated with its own moments, twice."""
    extents = []
    for name, parameter in named:
        parameter = local(parameter)
        if parameter.numel():
            last = sum((size - 1) * stride for size, stride in zip(parameter.shape, parameter.stride(), strict=True))
            start = parameter.data_ptr()
            extents.append((str(parameter.device), start, start + (last + 1) * parameter.element_size(), name))
    extents.sort()
    for (device, _, end, name), (other_device, start, _, other) in pairwise(extents):
        if device == other_device and start < end:
            raise ValueError(
                f"{name} and {other} are two Parameters in the same memory. Tie weights by using one Parameter in both "
                "places (head.weight = embedding.weight), so that there is one master and one update."
            )
