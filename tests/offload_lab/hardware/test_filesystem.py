"""What a directory is on: by injected mounts, by a fake /proc, and by file systems that are really mounted."""

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.probes.filesystem import Filesystem, Mount, filesystem_of, mounts, warnings


@pytest.mark.parametrize(
    ("fstype", "device", "nature"),
    [
        ("ext4", "/dev/vda", "disk"),
        ("apfs", "/dev/disk3s1", "disk"),
        ("fuseblk", "/dev/sdb1", "disk"),
        ("fuse.ntfs-3g", "/dev/sdb1", "disk"),
        ("tmpfs", "tmpfs", "memory"),
        ("ramfs", "ramfs", "memory"),
        ("ext4", "/dev/zram0", "memory"),
        ("ext2", "/dev/ram1", "memory"),
        ("nfs4", "server:/home", "network"),
        ("cifs", "//server/share", "network"),
        ("fuse.sshfs", "me@server:", "network"),
        ("fuse.drive", "drive", "network"),
        ("fuse", "drive", "network"),
        ("9p", "drvfs", "network"),
        ("virtiofs", "host", "network"),
        ("overlay", "overlay", "overlay"),
        ("fuse.fuse-overlayfs", "fuse-overlayfs", "overlay"),
    ],
)
def test_a_kind_has_a_nature(tmp_path, fstype, device, nature):
    found = filesystem_of(tmp_path, [Mount("/", "ext4", "/dev/vda"), Mount(str(tmp_path), fstype, device)])
    assert (found.kind, found.nature, found.device) == (fstype, nature, device)


def test_the_deepest_mount_counts_and_of_several_there_the_last(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    table = [
        Mount(str(tmp_path / "a"), "nfs", "server:/"),
        Mount("/", "ext4", "/dev/vda"),
        Mount(str(tmp_path), "xfs", "/dev/sda"),
        Mount(str(tmp_path / "a"), "tmpfs", "tmpfs"),  # over the first
        Mount(str(tmp_path) + "/a/bc", "overlay", "overlay"),  # begins with the same letters, and is no folder above
    ]
    assert filesystem_of(deep, table).kind == "tmpfs"
    assert filesystem_of(tmp_path, table).kind == "xfs"
    (tmp_path / "link").symlink_to(deep)
    assert filesystem_of(tmp_path / "link", table).kind == "tmpfs"
    assert filesystem_of("/", []).nature == "unknown"


@given(st.permutations(["/", "/data", "/data/fast", "/data/fast/state"]))
def test_the_order_of_the_table_does_not_matter_where_mount_points_differ(order):
    assert filesystem_of("/data/fast/other", [Mount(point, point, "") for point in order]).mountpoint == "/data/fast"


def test_a_fake_proc(tmp_path, monkeypatch):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mounts").write_text("/dev/vda / ext4 rw 0 0\ntmpfs /with\\040space tmpfs rw 0 0\n")
    (tmp_path / "filesystems").write_text("\text4\nnodev\ttmpfs\n")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    assert filesystem_of("/with space/x", mounts()) == Filesystem("tmpfs", "memory", "/with space", "tmpfs")
    (tmp_path / "self" / "mounts").unlink()
    assert mounts() == []


def test_file_systems_that_are_mounted(mounted, tmp_path):
    folders = [tmp_path / name for name in ("lower", "upper", "work")]
    for folder in folders:
        folder.mkdir()
    memory = mounted("tmpfs", "size=20m")
    assert filesystem_of(memory / "deeper").nature == "memory"
    options = "lowerdir={},upperdir={},workdir={}".format(*folders)
    assert filesystem_of(mounted("overlay", options)).nature == "overlay"


@pytest.mark.parametrize(
    ("nature", "direct", "told"),
    [
        ("memory", False, ["is RAM"]),
        ("memory", True, ["is RAM"]),
        ("network", True, ["over a network"]),
        ("overlay", False, ["is an overlay", "no direct I/O"]),
        ("disk", False, ["no direct I/O"]),
        ("disk", True, []),
        ("unknown", True, ["could not be found out"]),
    ],
)
def test_what_is_told(nature, direct, told):
    said = warnings("/state", Filesystem("kind", nature, "/", "device"), direct)
    assert len(said) == len(told)
    for text, part in zip(said, told, strict=True):
        assert part in text and "'/state'" in text
