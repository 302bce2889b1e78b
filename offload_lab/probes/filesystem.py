"""What kind of file system a directory is on, and what that means for figures that were measured there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

Nature = Literal["disk", "memory", "network", "overlay", "unknown"]

_MEMORY = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs"}
_NETWORK = {
    "nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "afpfs", "ceph", "lustre", "gpfs", "beegfs", "orangefs", "pvfs2",
    "glusterfs", "ocfs2", "gfs2", "9p", "virtiofs", "vboxsf", "vmhgfs", "webdav", "davfs", "wekafs", "panfs", "juicefs",
}  # fmt: skip
# FUSE says "fuse.PROGRAM". Some programs serve a local disk; these do not.
_LOCAL_FUSE = {"ntfs", "ntfs-3g", "exfat", "bindfs", "mergerfs", "gocryptfs", "ext2", "lxcfs"}
_OVERLAY = {"overlay", "overlayfs", "aufs", "unionfs", "fuse-overlayfs"}


@dataclass(frozen=True)
class Mount:
    mountpoint: str
    fstype: str
    device: str


@dataclass(frozen=True)
class Filesystem:
    """`kind` as the system names it (ext4, tmpfs, nfs4, …), and what it is by nature."""

    kind: str
    nature: Nature
    mountpoint: str
    device: str

    def __str__(self) -> str:
        return f"{self.kind} on {self.device}" if self.device and self.device != self.kind else self.kind


def mounts() -> list[Mount]:
    """What is mounted, later mounts last; empty where the system does not say."""
    try:
        return [Mount(p.mountpoint, p.fstype, p.device) for p in psutil.disk_partitions(all=True)]
    except (OSError, RuntimeError):  # a container without /proc
        return []


def filesystem_of(directory: str | os.PathLike[str], mounted: Iterable[Mount] | None = None) -> Filesystem:
    """The file system that holds `directory`: of the mounts above it the deepest, and of several there the last."""
    path = Path(os.path.realpath(directory))
    found: Mount | None = None
    for mount in mounts() if mounted is None else mounted:
        above = path.is_relative_to(mount.mountpoint) if mount.mountpoint else False
        if above and (found is None or len(Path(mount.mountpoint).parts) >= len(Path(found.mountpoint).parts)):
            found = mount
    if found is None:
        return Filesystem("unknown", "unknown", "", "")
    return Filesystem(found.fstype, _nature(found), found.mountpoint, found.device)


def _nature(mount: Mount) -> Nature:
    kind, _, program = mount.fstype.lower().partition(".")
    if kind in _MEMORY or mount.device.startswith(("/dev/ram", "/dev/zram")):
        return "memory"
    if kind in _OVERLAY or program in _OVERLAY:
        return "overlay"
    if kind in _NETWORK:
        return "network"
    if kind == "fuse":
        return "disk" if program in _LOCAL_FUSE else "network"
    return "disk"  # fuseblk too: a local disk behind a program


def warnings(directory: str, found: Filesystem, direct: bool) -> list[str]:
    """What a person should know before trusting a bandwidth that was measured in `directory`. `direct`: past the page cache."""
    told = []
    if found.nature == "memory":
        told.append(
            f"{directory!r} is RAM ({found}): state that is moved there takes the memory that it was to free, and the figures "
            "are of memory. Name a folder on a disk."
        )
    elif found.nature == "network":
        told.append(
            f"{directory!r} is reached over a network or from a host ({found}): others share its bandwidth, and it may change "
            "from hour to hour. A local disk is what the disk tier is for."
        )
    elif found.nature == "overlay":
        told.append(
            f"{directory!r} is an overlay, as containers have it ({found}): what is written there is lost with the container "
            "and may be limited. Mount a volume, and name a folder on it."
        )
    elif found.nature == "unknown":
        told.append(f"what {directory!r} is on could not be found out: the system does not list its mounts")
    if not direct and found.nature != "memory":
        told.append(
            f"{directory!r} has no direct I/O ({found}): files go through the page cache, which takes RAM, and reads may be "
            "faster than the disk while what is read is in it"
        )
    return told
