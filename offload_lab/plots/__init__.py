"""Figures of memory over time: a picture of our own, its text twin, and the live view."""

from offload_lab.plots.live import LiveMemory, LiveRun
from offload_lab.plots.plot import MemoryPlot
from offload_lab.plots.svg import memory_svg
from offload_lab.plots.text import memory_text

__all__ = ["LiveMemory", "LiveRun", "MemoryPlot", "memory_svg", "memory_text"]
