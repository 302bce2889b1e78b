"""What a figure was measured on."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import numba
import psutil
import torch


def describe() -> dict[str, object]:
    """Processor, cores, memory, versions, date and load, for a benchmark's JSON."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return {
        "processor": model,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numba": numba.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "load_at_start": round(psutil.getloadavg()[0], 2),
    }
