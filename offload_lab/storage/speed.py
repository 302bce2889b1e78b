"""How fast directories are, measured on files in them: what striping goes by."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from offload_lab.storage.direct_io import BlockFile
from offload_lab.storage.memory import Slab

_SIZE, _CHUNK, _THREADS = 64 << 20, 4 << 20, 4


def mixed_speed(directory: Path, direct: str, nbytes: int = _SIZE) -> float:
    """Bytes a second while half of the traffic writes and half reads, as in a step. Leaves nothing behind.

    Raises StorageError where the directory has no room for `nbytes` or cannot be written.
    """
    path = directory / "offload.probe"
    buffers = [Slab(_CHUNK) for _ in range(2 * _THREADS)]
    for slab in buffers:
        slab.bytes[:] = 7  # an untouched page reads as zeros, which some disks do not store
    failed: list[BaseException] = []
    try:
        file = BlockFile(path, nbytes, direct)
        try:
            for at in range(0, nbytes, _CHUNK):
                file.write(buffers[0].bytes, at)
            file.sync()

            def lane(number: int) -> None:
                transfer = file.write if number % 2 else file.read
                try:
                    for at in range(number // 2 * _CHUNK, nbytes, _THREADS * _CHUNK):
                        transfer(buffers[number].bytes, at)
                except OSError as error:
                    failed.append(error)

            threads = [threading.Thread(target=lane, args=(number,)) for number in range(2 * _THREADS)]
            start = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            file.sync()
            seconds = time.perf_counter() - start
        finally:
            file.close()
    finally:
        path.unlink(missing_ok=True)
        for slab in buffers:
            slab.close()
    if failed:
        raise failed[0]
    return 2 * nbytes / seconds
