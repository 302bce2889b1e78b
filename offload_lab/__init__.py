"""An optimizer whose state lives in RAM or on disk, and the lab around it.


Without torch the parts that are arithmetic still work: planning, simulating, and the figures.
"""

from typing import Any

from offload_lab.models import ModelSpec
from offload_lab.planner import plan  # the function: what a plan is, `Plan`, comes with `from offload_lab.plan import Plan`

try:
    import torch as _torch
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
else:
    from offload_lab.optimizer import OffloadAdam, OffloadAdamW
    from offload_lab.policy import OffloadPolicy
    from offload_lab.storage.direct_io import StorageError
    from offload_lab.storage.lock import DirectoryInUse
    from offload_lab.verify import Verdict, verify

    del _torch

__all__ = [
    "DirectoryInUse",
    "ModelSpec",
    "OffloadAdam",
    "OffloadAdamW",
    "OffloadPolicy",
    "StorageError",
    "Verdict",
    "plan",
    "verify",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Only asked for what is not there: where torch is missing, that is all that needs it."""
    if name in __all__:
        raise ImportError(f"offload_lab.{name} needs torch, which is not installed: pip install torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
