"""A file system that really fills up."""

import subprocess

import pytest

from offload_lab import StorageError
from offload_lab.health import Monitor, Thresholds


@pytest.fixture
def small_disk(tmp_path):
    """Eight megabytes of memory as a file system of its own."""
    target = tmp_path / "small"
    target.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(target)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a file system here: {done.stderr.strip()}")
    yield target
    subprocess.run(["umount", "-l", str(target)], check=True)


def test_a_disk_that_fills_up_is_raised_before_a_save_fails(training, small_disk):
    _, optimizer, step = training(directory=small_disk / "state")
    monitor = Monitor(optimizer, Thresholds(disk_free="4MiB"))
    step(0)
    assert monitor.observe() == []
    filler = small_disk / "somebody else's"
    filler.write_bytes(bytes(5 << 20))
    step(1)
    (alarm,) = monitor.observe()
    assert alarm.kind == "disk_free" and alarm.value < 4 << 20 and "saves will fail" in alarm.message
    with filler.open("ab", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while file.write(bytes(1 << 12)):
            pass
    with pytest.raises(StorageError):
        optimizer.save(small_disk / "state.pt")
    filler.unlink()
    step(2)
    assert monitor.observe() == [] and monitor.active == []
    optimizer.save(small_disk / "state.pt")
