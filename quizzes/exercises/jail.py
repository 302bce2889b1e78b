"""Started by `sandbox.py` in a bare interpreter: builds the walls, then hands over to `worker.py` inside them.

    python -I -S -B jail.py CONFIG

CONFIG is JSON: level (namespaces, user, none), root (an empty folder), uid, limits, private (folders nobody may see). Exit
status 97 and a line on stderr that starts with "jail:" when a wall cannot be built. Nothing falls back to a lower one here.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kernel
import worker

FAILED = 97
LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


def main() -> None:
    config = json.loads(sys.argv[1])
    os.umask(0o022)  # the walls' own folders are walked through by another user
    kernel.die_with_parent()
    try:
        child = _start(config)
    except OSError as error:
        _fail(error)
    # Polite end: what a learner started is ended first. A launcher that is killed outright takes its child along.
    signal.signal(signal.SIGTERM, lambda *_: _end(child, config))
    for descriptor in (0, 1):
        os.close(descriptor)  # or the parent would never see the end of the results
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end(None, config, status)


def _start(config: dict[str, Any]) -> int:
    """Build the walls and fork the worker, or the first process of its namespace; return its number."""
    level = config["level"]
    if level == "namespaces":
        _enter_namespaces()
    else:
        kernel.adopt_orphans()
    child = os.fork()
    if child:
        return child
    try:
        kernel.die_with_parent()
        if level == "namespaces":
            _own_files(config)
        _become(config)
        kernel.die_with_parent()
        if level == "namespaces":
            _first_process(config)
        _limit(config["limits"])
        kernel.no_new_privileges()
        if not kernel.filter_calls() and level == "user":
            raise OSError(38, "system calls cannot be filtered on this machine, so the network cannot be closed")
        if level != "namespaces":
            os.chdir(config["root"])
    except OSError as error:
        _fail(error)
    if level != "none":
        _refuse_sight(config)
    _work()
    raise AssertionError("not reached")


def _work() -> None:
    try:
        worker.serve()
    finally:
        os._exit(0)  # no handlers, no threads waited for: the parent counts lines, not exits


def _first_process(config: dict[str, Any]) -> None:
    """Be the namespace's first process: fork the worker, end when it ends, and the system ends all the others.

    The worker isn't the first itself, because the system spares that one the signals that a limit sends.
    """
    child = os.fork()
    if child == 0:
        return
    kernel.undumpable()
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    while True:
        number, status = os.wait()
        if number == child:
            os._exit(status >> 8 if status & 127 == 0 else 128 + (status & 127))


def _enter_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    flags = kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS
    alone = user != 0
    if user == 0:
        try:
            kernel.unshare(flags)
        except PermissionError:
            alone = True  # root of a container, which may have a user namespace all the same
    if alone:
        kernel.unshare(flags | kernel.NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"65534 {user} 1"), ("gid_map", f"65534 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    kernel.mount("", "/", flags=kernel.REC | kernel.PRIVATE)


def _own_files(config: dict[str, Any]) -> None:
    """A root of its own: the standard library and the system's libraries to read, /scratch to write, nothing else."""
    root, limits = config["root"], config["limits"]
    kernel.mount("tmpfs", root, "tmpfs", kernel.NOSUID | kernel.NODEV, "size=1m,mode=755")
    library = [LIBRARY, os.path.join(sys.base_prefix, "lib"), os.path.join(sys.base_prefix, "lib64")]
    system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom"]
    shown: list[str] = []
    for path in sorted({os.path.realpath(p) if p in library else p for p in library + system if os.path.exists(p)}):
        if any(path.startswith(f"{other}/") for other in shown):
            continue
        target = root + path
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        if os.path.islink(path):
            os.symlink(os.readlink(path), target)
            continue
        if os.path.isdir(path):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
        kernel.bind(path, target)
        shown.append(path)
    for path in config["private"]:
        inside = any(path == other or path.startswith(f"{other}/") for other in shown)
        if inside and os.path.isdir(root + path):
            kernel.mount("tmpfs", root + path, "tmpfs", kernel.RDONLY, "size=4k,mode=000")
    scratch = os.path.join(root, "scratch")
    os.mkdir(scratch)
    room = f"size={limits['disk']},nr_inodes=1000,mode=1777"
    kernel.mount("tmpfs", scratch, "tmpfs", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC, room)
    kernel.mount("", root, flags=kernel.REMOUNT | kernel.BIND | kernel.RDONLY | kernel.NOSUID | kernel.NODEV)
    kernel.change_root(root)
    os.chdir("/scratch")


def _become(config: dict[str, Any]) -> None:
    """Be a user that owns nothing (root only), without any capability."""
    if os.getuid() == 0 and config["level"] != "none":
        os.setgroups([])
        os.setresgid(config["uid"], config["uid"], config["uid"])
        os.setresuid(config["uid"], config["uid"], config["uid"])
    if config["level"] == "namespaces" and os.getuid() != config["uid"]:
        kernel.drop_capabilities()


def _limit(limits: dict[str, int]) -> None:
    for name, value in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_NOFILE, limits["open"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        most = resource.getrlimit(name)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(name, (value, value))
    # A second less than the hard limit, so that the end has a signal of its own and is not mistaken for want of memory.
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    hard = limits["cpu"] + 1 if most == resource.RLIM_INFINITY else min(limits["cpu"] + 1, most)
    resource.setrlimit(resource.RLIMIT_CPU, (min(limits["cpu"], hard), hard))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # too large a file raises an error instead


def _refuse_sight(config: dict[str, Any]) -> None:
    """Raise nothing but end, where a learner's code could read what it must not."""
    if not os.access(LIBRARY, os.R_OK):
        _fail(OSError(f"other users cannot read Python itself, in {LIBRARY}"))
    for path in config["private"]:
        if os.access(path, os.R_OK):
            _fail(OSError(f"{path} can be read by every user; take that right away with: chmod o-rwx {path}"))


def _end(child: int | None, config: dict[str, Any], status: int = 9) -> None:
    """End all that was started and exit with `status` of the child; `child` is None once it was waited for."""
    if child is not None:
        os.kill(child, signal.SIGKILL)
    if config["level"] == "user":
        killer = os.fork()
        if killer == 0:
            try:
                os.setresuid(config["uid"], config["uid"], config["uid"])
                os.kill(-1, signal.SIGKILL)  # everything of that user, this process too where it gets so far
            finally:
                os._exit(0)
    with contextlib.suppress(ChildProcessError):
        while True:
            for number in _children() if config["level"] != "namespaces" else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            os.waitpid(-1, 0)
    os._exit(status >> 8 if status & 127 == 0 else 128 + (status & 127))


def _children() -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(number) for number in file.read().split()]
    return []


def _fail(error: OSError) -> None:
    os.write(2, f"jail: {error.strerror or error}\n".encode())
    os._exit(FAILED)


if __name__ == "__main__":
    main()
