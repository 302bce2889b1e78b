"""crc32c (Castagnoli), which finds every error of up to three flipped bits in a chunk and all but one in four thousand
million of the others. Processors have an instruction for it: it costs a tenth of what reading the chunk from disk does."""

from __future__ import annotations

import numpy as np
from crc32c import crc32c


def checksum(data: bytes | np.ndarray) -> int:
    """The crc32c of `data` (contiguous). Other threads run meanwhile."""
    return crc32c(data, 0, 1)
