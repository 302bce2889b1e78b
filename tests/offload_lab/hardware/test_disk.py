"""The disk's probe: what it touches, what it leaves behind, and what happens when the disk refuses."""

import errno
import os
import shutil
import threading
import time

import numpy as np
import pytest

from offload_lab.probes import disk
from offload_lab.probes.disk import Traffic, _Turn, probe, scratch
from offload_lab.storage.direct_io import BlockFile, StorageError

TINY = {"smallest": 64 << 10, "largest": 1 << 20, "chunk": 16 << 10, "threads": 2}


def nothing_left(folder):
    assert list(folder.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "offload measure"]


def open_files():
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


class Recorded:
    """Stands in for a BlockFile: notes every transfer."""

    direct = True

    def __init__(self, write_seconds=0.0):
        self.reads, self.writes, self.most_apart, self._lock = [], [], 0, threading.Lock()
        self._write_seconds = write_seconds

    def read(self, into, offset):
        self._note(self.reads, offset)

    def write(self, data, offset):
        time.sleep(self._write_seconds)
        self._note(self.writes, offset)

    def _note(self, where, offset):
        with self._lock:
            where.append(offset)
            self.most_apart = max(self.most_apart, abs(len(self.reads) - len(self.writes)))

    def sync(self):
        pass


def test_three_figures_at_more_than_one_size_and_nothing_left(tmp_path):
    before, seen_names = open_files(), []
    found = probe(tmp_path, 2.0, **TINY, say=lambda text: seen_names.append(sorted(os.listdir(tmp_path))))
    assert len(found.seen) >= 2
    sizes = [seen.touched for seen in found.seen]
    assert sizes == sorted(sizes) and sizes[0] == 64 << 10 and sizes[-1] <= 1 << 20
    for seen in found.seen:
        assert seen.touched % (16 << 10) == 0
        assert min(seen.read, seen.write, seen.mixed) > 0
    assert found.written >= sum(sizes)
    assert seen_names and not any(seen_names), "the file has no name while it is used: even kill -9 leaves nothing"
    assert open_files() == before
    nothing_left(tmp_path)


@pytest.mark.parametrize("free", [400_000, 1_000_000, 10_000_000])
def test_never_more_than_half_of_what_is_free(tmp_path, monkeypatch, free):
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, (1 << 40) - free, free))
    asked = []
    extend = BlockFile.extend
    monkeypatch.setattr(BlockFile, "extend", lambda self, nbytes: (asked.append(nbytes), extend(self, nbytes))[1])
    probe(tmp_path, 0.5, **(TINY | {"largest": 1 << 30}))
    assert 0 < max(asked) <= free // 2


def test_a_disk_that_is_full_is_told_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, 1 << 40, 100_000))
    with pytest.raises(StorageError, match="only 100,000 bytes are free") as raised:
        probe(tmp_path, 0.5, **TINY)
    assert raised.value.errno == errno.ENOSPC
    nothing_left(tmp_path)


@pytest.mark.parametrize("call", ["preadv", "pwritev"])
def test_a_disk_that_fails_is_an_error_that_says_where(tmp_path, monkeypatch, call):
    real, calls, before = getattr(os, call), [0], open_files()

    def failing(fd, buffers, offset):
        calls[0] += 1
        if calls[0] > 9:
            raise OSError(errno.EIO, "Input/output error")
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(StorageError, match=rf"bytes at byte .*{tmp_path}.*Input/output error") as raised:
        probe(tmp_path, 1.0, **TINY)
    assert raised.value.errno == errno.EIO
    assert open_files() == before
    nothing_left(tmp_path)


def test_a_quota_keeps_what_was_measured_before_it(tmp_path, monkeypatch):
    real = os.posix_fallocate

    def limited(fd, offset, length):
        if length > 64 << 10:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        return real(fd, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", limited)
    found = probe(tmp_path, 0.5, **TINY)
    assert [seen.touched for seen in found.seen] == [64 << 10]
    assert "no file larger than 65,536 bytes" in found.cut_short and "quota" in found.cut_short
    with pytest.raises(StorageError, match="quota"):
        probe(tmp_path, 0.5, **(TINY | {"smallest": 128 << 10}))
    nothing_left(tmp_path)


def test_an_interrupt_ends_the_threads_first(tmp_path, monkeypatch):
    class Interrupted(threading.Thread):
        def join(self, timeout=None):
            if not raised:
                raised.append(True)
                raise KeyboardInterrupt
            super().join(timeout)

    raised, before = [], open_files()
    monkeypatch.setattr(disk.threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        probe(tmp_path, 60.0, **TINY)
    assert open_files() == before
    nothing_left(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def refused(self, path, nbytes):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(BlockFile, "__init__", refused)
    with pytest.raises(StorageError, match=f"{str(tmp_path)!r} cannot be written: Permission denied"), scratch(tmp_path):
        pass


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("chunks", [1, 2, 7])
def test_a_pass_touches_every_chunk_once(threads, chunks):
    file = Recorded()
    traffic = Traffic(file, 4096, threads)
    moved, _ = traffic.run("write", touched=chunks * 4096, seconds=60, passes=1)
    assert sorted(file.writes) == [4096 * n for n in range(chunks)] and not file.reads
    assert moved == traffic.written == chunks * 4096
    traffic.run("read", touched=chunks * 4096, seconds=60, passes=2)
    assert sorted(file.reads) == sorted([4096 * n for n in range(chunks)] * 2)
    traffic.close()


def test_of_mixed_traffic_half_is_reads_however_slow_the_writes():
    file = Recorded(write_seconds=0.002)
    traffic = Traffic(file, 4096, 2)
    traffic.run("read", "write", touched=16 * 4096, seconds=60, passes=4)
    assert len(file.reads) - len(file.writes) in range(-5, 6) and len(file.writes) >= 59
    assert file.most_apart <= 4 + 2  # the lead, and the writes that are on their way
    traffic.close()


def test_the_lead_is_kept_and_the_two_begin_apart():
    turn = _Turn(("read", "write"), 10, float("inf"), 60, 3)
    assert [turn.next("read") for _ in range(3)] == [0, 1, 2]
    waiting = threading.Thread(target=lambda: got.append(turn.next("read")))
    got = []
    waiting.start()
    waiting.join(0.05)
    assert not got, "the fourth read waits for a write"
    assert turn.next("write") == 5
    waiting.join()
    assert got == [3]
    turn.end()
    assert turn.next("read") is None and turn.total == 5


def test_what_is_written_is_not_zeros(tmp_path):
    """Disks and file systems that compress, or leave zeros out, would look faster than they are."""
    with scratch(tmp_path) as file:
        file.extend(64 << 10)
        traffic = Traffic(file, 16 << 10, 1)
        traffic.run("write", touched=64 << 10, seconds=60, passes=1)
        back = traffic._slabs[0].bytes[: 16 << 10]
        file.read(back, 0)
        assert len(np.unique(back)) > 200
        traffic.close()


def test_transfers_carry_checksums_and_go_through_memory_that_no_cache_holds(tmp_path, monkeypatch):
    """As those of a step do: a probe without was up to a fifth faster than a step."""
    summed = []
    monkeypatch.setattr(disk, "checksum", lambda data: summed.append(data.ctypes.data))
    with scratch(tmp_path) as file:
        file.extend(32 << 20)
        traffic = Traffic(file, 4 << 20, 1)
        for directions in (("write",), ("read",), ("read", "write")):
            summed.clear()
            moved, _ = traffic.run(*directions, touched=32 << 20, seconds=60, passes=1)
            assert len(summed) == moved // (4 << 20) >= 8
            assert len(set(summed)) == len(summed), "each chunk in a place of its own"
        traffic.close()
