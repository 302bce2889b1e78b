"""Linux's own walls through ctypes: namespaces, mounts, capabilities, system call filter. Standard library only.

It is imported by `jail.py` in a bare interpreter. Every function raises OSError with the call's name where the system refuses.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_PDEATHSIG, _SET_SECCOMP, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _SET_DUMPABLE = 1, 22, 24, 36, 38, 4
_DETACH = 2

# name: (x86_64, aarch64). What no exercise needs and what reaches out of a process, or holds memory that no limit counts.
_DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "socket": (41, 198),
    "connect": (42, 203),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "open_by_handle_at": (304, 265),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
}
_CLONE = (56, 220)
_CLONE3 = 435
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc(), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _prctl(option: int, second: int = 0, third: object = 0) -> None:
    more = third if isinstance(third, ctypes.c_void_p) else ctypes.c_ulong(int(third))  # type: ignore[call-overload]
    _call("prctl", option, ctypes.c_ulong(second), more, ctypes.c_ulong(0), ctypes.c_ulong(0))


def unshare(flags: int) -> None:
    _call("unshare", flags)


def die_with_parent() -> None:
    """SIGKILL when the parent goes. A change of user forgets it, so it is said again after one."""
    _prctl(_PDEATHSIG, 9)


def adopt_orphans() -> None:
    _prctl(_SUBREAPER, 1)


def no_new_privileges() -> None:
    _prctl(_NO_NEW_PRIVS, 1)


def undumpable() -> None:
    """No other process of the same user may trace this one or read its memory."""
    _prctl(_SET_DUMPABLE, 0)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    _call("mount", os.fsencode(source), os.fsencode(target), os.fsencode(kind), ctypes.c_ulong(flags), os.fsencode(data))


def bind(source: str, target: str) -> None:
    """Show `source` at `target`, to read only. Flags that the source has are kept: a user namespace may not drop them."""
    mount(source, target, flags=BIND)
    kept = os.statvfs(target).f_flag & (NOSUID | NODEV | NOEXEC)
    device = 0 if source.startswith("/dev/") else NODEV
    mount("", target, flags=REMOUNT | BIND | RDONLY | NOSUID | kept | device)


def change_root(root: str) -> None:
    """Make `root`, a mount point, the only file system there is; the old one is gone for good."""
    os.chdir(root)
    numbers = {"x86_64": 155, "aarch64": 41}
    number = numbers.get(platform.machine())
    if number is None:
        raise OSError(38, f"pivot_root: not known for {platform.machine()}")
    if _libc().syscall(ctypes.c_long(number), b".", b".") != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"pivot_root: {os.strerror(code)}")
    # Both roots now lie on one point and the old one is on top.
    _call("umount2", b".", _DETACH)
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up every capability, also those that a later call could bring back."""
    for capability in range(64):
        try:
            _prctl(_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno not in (1, 22):  # not ours to drop; no such capability
                raise
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    nothing = ctypes.create_string_buffer(bytes(24))
    _call("capset", header, nothing)


def filter_calls() -> bool:
    """Refuse the system calls of `_DENIED` with EPERM from now on. False where the machine is not one of two known."""
    column, architecture = _MACHINES.get(platform.machine(), (None, 0))
    if column is None:
        return False
    load, equal, at_least, any_bit, end = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, missing, kill = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    denied = [numbers[column] for numbers in _DENIED.values()]
    # Each test jumps over the verdict that follows it when it does not hold.
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (end, 0, 0, kill), (load, 0, 0, 0)]
    program += [(at_least, 0, 1, 0x40000000), (end, 0, 0, refuse)]  # the x32 numbers of the same calls
    for number in denied:
        program += [(equal, 0, 1, number), (end, 0, 0, refuse)]
    program += [(equal, 0, 1, _CLONE3), (end, 0, 0, missing)]  # its flags lie in memory: libc falls back to clone
    program += [(equal, 0, 3, _CLONE[column]), (load, 0, 0, 16), (any_bit, 0, 1, NEWUSER), (end, 0, 0, refuse)]
    program += [(end, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    pointer = ctypes.addressof(code)
    wanted = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), pointer))
    _prctl(_SET_SECCOMP, 2, ctypes.c_void_p(ctypes.addressof(wanted)))
    return True
