"""How fast a file can be read in blocks of one size, with so many of them asked for at once."""

from __future__ import annotations

import threading
import time

from offload_lab.storage.direct_io import BlockFile
from offload_lab.storage.memory import Slab


def read_rate(file: BlockFile, block: int, depth: int, seconds: float = 0.2) -> float:
    """Bytes a second of reading `file` for about `seconds`, in blocks of `block` bytes, `depth` at a time (a thread each).

    Goes through the file in order and begins again at its end. Raises ValueError where a block does not fit into the file
    or `depth` is below 1, StorageError where the disk refuses.
    """
    blocks = file.nbytes // block if block > 0 else 0
    if blocks < 1 or depth < 1:
        raise ValueError(f"blocks of {block:,} bytes, {depth} at a time: at least 1 of each is needed in {file.nbytes:,} bytes")
    lock, given, moved = threading.Lock(), 0, [0] * depth
    failed: list[BaseException] = []
    until = time.perf_counter() + seconds

    def lane(number: int) -> None:
        nonlocal given
        slab = Slab(block)
        try:
            while not failed and (moved[number] == 0 or time.perf_counter() < until):
                with lock:
                    at, given = given % blocks, given + 1
                file.read(slab.bytes[:block], at * block)
                moved[number] += block
        except OSError as error:
            failed.append(error)
        finally:
            slab.close()

    threads = [threading.Thread(target=lane, args=(number,), daemon=True) for number in range(depth)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(moved) / (time.perf_counter() - begun)
