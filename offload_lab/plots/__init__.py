"""Figures: pictures of our own with their text twins, and the live view of a training.

Each of `timeline`, `predicted_over_measured`, `memory`, `roofline`, `residency`, `bytes_per_parameter` and `plans` takes plain
data and returns a figure with `.svg()` and `.text()`, which shows itself in a notebook. `MemoryPlot` and `LiveMemory` show what
a meter reads. Only `LiveMemory` and `LiveRun` need torch, and they are imported when they are asked for.
"""

from typing import Any

from offload_lab.plots.bounds import roofline
from offload_lab.plots.cache_map import HIT, READ, WRITTEN, residency, residency_flags
from offload_lab.plots.compared import predicted_over_measured
from offload_lab.plots.parameter_bytes import bytes_per_parameter
from offload_lab.plots.plan_table import plans
from offload_lab.plots.plot import MemoryPlot
from offload_lab.plots.stacked import memory, tiers_of
from offload_lab.plots.svg import memory_svg
from offload_lab.plots.text import memory_text
from offload_lab.plots.timelines import timeline

__all__ = [
    "HIT",
    "READ",
    "WRITTEN",
    "LiveMemory",
    "LiveRun",
    "MemoryPlot",
    "bytes_per_parameter",
    "memory",
    "memory_svg",
    "memory_text",
    "plans",
    "predicted_over_measured",
    "residency",
    "residency_flags",
    "roofline",
    "tiers_of",
    "timeline",
]


def __getattr__(name: str) -> Any:
    if name in ("LiveMemory", "LiveRun"):
        from offload_lab.plots import live

        return getattr(live, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
