"""An optimizer whose state lives in RAM or on disk, and the lab around it."""

from offload_lab.models import ModelSpec
from offload_lab.optimizer import OffloadAdam, OffloadAdamW
from offload_lab.planner import plan  # the function: what a plan is, `Plan`, comes with `from offload_lab.plan import Plan`
from offload_lab.policy import OffloadPolicy
from offload_lab.storage.direct_io import StorageError
from offload_lab.storage.lock import DirectoryInUse
from offload_lab.verify import Verdict, verify

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
