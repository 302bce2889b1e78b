"""An optimizer whose state lives in RAM or on disk, and the lab around it."""

from offload_lab.optimizer import OffloadAdam, OffloadAdamW
from offload_lab.policy import OffloadPolicy
from offload_lab.storage.direct_io import StorageError
from offload_lab.storage.lock import DirectoryInUse

__all__ = ["DirectoryInUse", "OffloadAdam", "OffloadAdamW", "OffloadPolicy", "StorageError"]
__version__ = "0.1.0"
