"""Bandwidth of the disk under a directory: read, write and both, past the page cache, on files as large as time allows."""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from offload_lab.partition import BLOCK
from offload_lab.storage.checksum import checksum
from offload_lab.storage.direct_io import BlockFile, StorageError
from offload_lab.storage.memory import Slab

Say = Callable[[str], None]
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Reasons for which a file can be no longer; the disk itself works."""
_BUFFERS = 256 << 20  # bytes of memory that transfers go through; a step goes through all of its state
_WRITTEN = 4 << 30  # bytes after which a writing phase ends once it has been through the file: disks wear


@dataclass(frozen=True)
class Seen:
    """Bytes a second while `touched` bytes of the disk are in use. `mixed`: both directions together, half of it reads."""

    touched: int
    read: float
    write: float
    mixed: float


@dataclass(frozen=True)
class Found:
    """What was seen, the smallest file first; whether it was past the page cache; the bytes that were written in all; why no
    larger file was tried, if so."""

    seen: tuple[Seen, ...]
    direct: bool
    written: int
    cut_short: str = ""


@contextmanager
def scratch(directory: Path) -> Iterator[BlockFile]:
    """A file in `directory` that has no name any more: whatever happens, the system frees it with the process.

    Raises StorageError where the directory cannot be written.
    """
    path = directory / f".offload-measure-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        file = BlockFile(path, BLOCK)
    except StorageError:
        raise
    except OSError as error:
        text = f"{str(directory)!r} cannot be written: {error.strerror}. Name a folder that can be, or mend its permissions"
        raise StorageError(error.errno, text) from error
    finally:
        path.unlink(missing_ok=True)
    try:
        yield file
    finally:
        file.close()


class Traffic:
    """Transfers of `chunk` bytes in a file, by `threads` threads that read and as many that write, as a step has them: each
    with its checksum, and from memory that no cache of the processor holds."""

    def __init__(self, file: BlockFile, chunk: int, threads: int) -> None:
        self.file, self.chunk, self._threads = file, chunk, threads
        self.written = 0
        each = max(1, _BUFFERS // (2 * threads * chunk))
        self._slabs = [Slab(each * chunk) for _ in range(2 * threads)]
        random = np.random.default_rng(0).bytes(chunk)
        for slab in self._slabs:  # not zeros, which some disks and file systems do not even store
            slab.bytes.reshape(each, chunk)[:] = np.frombuffer(random, np.uint8)

    def close(self) -> None:
        for slab in self._slabs:
            slab.close()

    def run(self, *directions: str, touched: int, seconds: float, passes: float = float("inf")) -> tuple[int, float]:
        """Move the first `touched` bytes in "read", "write" or both, in a circle, for `seconds` or `passes` of each, whichever
        ends first; at least one chunk. Returns (bytes, seconds); what was written is flushed within them.

        Raises StorageError of the first transfer that fails; all threads have ended then.
        """
        turn = _Turn(directions, touched // self.chunk, passes, seconds, 2 * self._threads)
        threads = []
        for number, slab in enumerate(self._slabs):
            direction = ("read", "write")[number % 2]
            if direction in directions:
                work = self.file.read if direction == "read" else self.file.write
                arguments = (turn, direction, work, slab.bytes.reshape(-1, self.chunk))
                threads.append(threading.Thread(target=self._work, args=arguments, name="offload measure", daemon=True))
        start = time.perf_counter()
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:  # Ctrl-C as well: no thread may use a buffer or the file after this
            turn.end()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            self.written += turn.given.get("write", 0) * self.chunk
        if turn.error is not None:
            raise turn.error
        if "write" in directions:
            self.file.sync()
        return turn.total * self.chunk, time.perf_counter() - start

    def _work(self, turn: _Turn, direction: str, move: Callable[[np.ndarray, int], None], buffers: np.ndarray) -> None:
        try:
            turns = itertools.cycle(buffers)
            while (number := turn.next(direction)) is not None:
                buffer = next(turns)
                # As a step does: the sum of what is written before it, and of what was read after it.
                if direction == "write":
                    checksum(buffer)
                move(buffer, number * self.chunk)
                if direction == "read":
                    checksum(buffer)
        except BaseException as error:  # raised in the caller's thread
            turn.end(error)


class _Turn:
    """Which chunk is next in each direction. Neither gets ahead of the other by more than `lead`, so that half is reads."""

    def __init__(self, directions: tuple[str, ...], chunks: int, passes: float, seconds: float, lead: int) -> None:
        self.given = dict.fromkeys(directions, 0)
        self._chunks, self._most, self._lead = chunks, chunks * passes, lead
        self._deadline = time.perf_counter() + seconds
        self._changed = threading.Condition()
        self._ended = False
        self.error: BaseException | None = None

    @property
    def total(self) -> int:
        return sum(self.given.values())

    def next(self, direction: str) -> int | None:
        with self._changed:
            while not self._over(direction) and self.given[direction] - min(self.given.values()) >= self._lead:
                self._changed.wait()
            if self._over(direction):
                self._ended = True
                self._changed.notify_all()
                return None
            number = self.given[direction]
            self.given[direction] += 1
            self._changed.notify_all()
        # Writers begin half way, so that nobody reads what is just being written.
        return (number + (self._chunks // 2 if direction == "write" and len(self.given) > 1 else 0)) % self._chunks

    def _over(self, direction: str) -> bool:
        if self._ended:
            return True
        given = self.given[direction]
        return given >= 1 and (given >= self._most or time.perf_counter() >= self._deadline)

    def end(self, error: BaseException | None = None) -> None:
        with self._changed:
            self._ended = True
            self.error = self.error or error
            self._changed.notify_all()


def probe(
    directory: Path, seconds: float, *, smallest: int, largest: int, chunk: int, threads: int, say: Say = lambda text: None
) -> Found:
    """Measure in `directory` on up to three sizes of file, from `smallest` bytes to what `seconds` allow, but never more than
    `largest`, nor than half of what is free.

    Raises StorageError where the disk refuses or fails, or not even four chunks fit.
    """
    free = shutil.disk_usage(directory).free
    most = min(free // 2, largest) // chunk * chunk
    if most < 4 * chunk:
        text = f"only {free:,} bytes are free in {str(directory)!r}; at least {8 * chunk:,} are needed to measure its disk"
        raise StorageError(errno.ENOSPC, text)
    first = max(4 * chunk, min(smallest, most) // chunk * chunk)
    with scratch(directory) as file:
        traffic = Traffic(file, chunk, threads)
        try:
            return _sizes(traffic, first, most, seconds, say)
        finally:
            traffic.close()


def _sizes(traffic: Traffic, first: int, most: int, seconds: float, say: Say) -> Found:
    direct = traffic.file.direct
    seen = [_at(traffic, first, 0.2 * seconds, say)]
    # As large as the slowest of the three can go through in its quarter of the time.
    rate = min(seen[0].read, seen[0].write, seen[0].mixed)
    last = min(most, int(0.6 * seconds / 4 * rate)) // traffic.chunk * traffic.chunk
    sizes = [(last, 0.6)] if last > first else []
    if last > 8 * first:
        sizes.insert(0, (int((first * last) ** 0.5) // traffic.chunk * traffic.chunk, 0.2))
    for size, share in sizes:
        try:
            seen.append(_at(traffic, size, share * seconds, say))
        except StorageError as error:
            if error.errno not in FULL:
                raise
            # A quota, or somebody else took the space: what was seen so far stands.
            return Found(
                tuple(seen), direct, traffic.written, f"no file larger than {seen[-1].touched:,} bytes: {error.strerror}"
            )
    return Found(tuple(seen), direct, traffic.written)


def _at(traffic: Traffic, size: int, seconds: float, say: Say) -> Seen:
    """The three figures on a file of `size` bytes; fewer, where filling it takes more than its share of the time."""
    say(f"disk: reading and writing a file of {size / 2**20:,.0f} MiB, {seconds:.0f} s …")
    traffic.file.extend(size)
    # Reserved blocks that were never written read as zeros without the disk: what is measured is written first.
    filled, _ = traffic.run("write", touched=size, seconds=seconds / 2, passes=1)
    size = min(size, filled)
    rates = {}
    for name, directions in (("read", ("read",)), ("write", ("write",)), ("mixed", ("read", "write"))):
        passes = max(1.0, _WRITTEN / size) if "write" in directions else float("inf")
        if not traffic.file.direct:
            passes = 1.0  # a second one would read from memory
            traffic.file.sync()
            traffic.file.drop_cached()
        moved, taken = traffic.run(*directions, touched=size, seconds=seconds / 4, passes=passes)
        rates[name] = moved / taken
    return Seen(size, **rates)
