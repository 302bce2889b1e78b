"""One owner a directory: a lock that dies with its process, and says who holds it."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import weakref
from pathlib import Path

from offload_lab.storage.direct_io import StorageError, describe

if sys.platform != "win32":
    import fcntl

_held: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


class DirectoryInUse(OSError):
    """Another optimizer is working in this directory."""


def boot_id() -> str:
    """An id that changes with every boot of this machine, so that a process id from before can't be taken for a live one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _owner(descriptor: int) -> str:
    """Who wrote himself into a lock file."""
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
        if owner["pid"] == os.getpid() and owner["boot_id"] == boot_id():
            return f"another optimizer of this process (pid {os.getpid()})"
        return f"process {owner['pid']} on {owner['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def holder(path: Path) -> str | None:
    """Who holds the lock file at `path`, or None; without a trace, and without waiting."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _owner(descriptor)
    finally:
        os.close(descriptor)


class DirectoryLock:
    """Held from construction to `close()` or the end of the process, whichever way it ends (`kill -9` too).

    The system lock (`flock`) decides; the process id, boot id and host written into the file are for the message.
    Raises DirectoryInUse naming the holder, StorageError where the disk has no room for the lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.owner_pid = os.getpid()
        try:
            while True:
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_still_there():
                    break
                os.close(self._fd)
        except BlockingIOError:
            who = _owner(self._fd)
            os.close(self._fd)
            self._fd = -1
            raise DirectoryInUse(
                f"the directory {str(path.parent)!r} is in use by {who}. "
                "Close that optimizer (close(), or leave its `with` block), stop that process, or choose another directory=."
            ) from None
        try:
            self._write_owner()
        except OSError as error:
            self.close()
            text = describe(path, "writing", 0, 4096, error.strerror or str(error))
            raise StorageError(error.errno, text + ". Free space, or choose another folder.") from error
        _held.add(self)

    def _write_owner(self) -> None:
        owner = {"pid": os.getpid(), "boot_id": boot_id(), "host": platform.node(), "since": round(time.time())}
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps(owner).encode(), 0)

    def _is_still_there(self) -> bool:
        """Whether the locked file is the one at the path: its last owner may have deleted it between open and lock."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Unlock. In a forked child this does nothing: the lock is the parent's."""
        if self._fd >= 0 and os.getpid() == self.owner_pid:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # not merely close: a forked child may hold the same open file
            self.forget()

    def forget(self) -> None:
        """Close the file without unlocking, as a forked child must."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _after_fork_in_child() -> None:
    # A DataLoader worker that outlives the parent would otherwise keep the directory locked.
    for lock in list(_held):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
