"""Every drill provokes what it says, and mends it to the last bit."""

import os
import re
from dataclasses import replace

import pytest

from offload_lab.health import drill
from offload_lab.health.figures import Reader

STATE_BYTES = (60 * 100 + 4000 + 1) * 3 * 4
"""fp32 master, exp_avg and exp_avg_sq of the drills' model: a step can't read more than all of it."""


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path):
    calls = os.preadv, os.pwritev
    yield
    assert (os.preadv, os.pwritev) == calls and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [2, 4, 6])
def test_a_kill_leaves_the_step_before(tmp_path, step):
    found = drill.killed_in_a_step(tmp_path, step)
    assert found.intact and found.figures == {"killed_in_step": step, "found_step": step - 1}, str(found)


def test_a_child_that_was_not_killed_is_no_incident(tmp_path):
    with pytest.raises(RuntimeError, match="exit code 1"):
        drill.killed_in_a_step(tmp_path, "soon")


@pytest.mark.parametrize("step", [2, 4])
def test_a_full_disk_is_an_error_with_a_way_back(tmp_path, step):
    found = drill.disk_full(tmp_path, step)
    assert found.intact and found.figures["found_step"] == step - 1, str(found)
    assert "No space left on device" in found.happened and "offload.state" in found.happened


@pytest.mark.parametrize("step", [2, 5])
def test_a_flipped_bit_is_found_and_the_step_before_is_whole(tmp_path, step):
    found = drill.corrupted_file(tmp_path, step)
    assert found.intact and found.figures["found_step"] == step - 1, str(found)
    assert "was damaged" in found.happened


def test_a_gradient_that_is_not_finite_changes_nothing(tmp_path):
    found = drill.nan_gradient(tmp_path)
    assert found.intact and found.figures == {"skipped_steps": 1, "alarms": ["skipped"]}, str(found)


def test_reads_are_slow_for_as_long_as_it_says_and_nothing_is_lost(tmp_path):
    """On the real clock, so no alarm is asked for: a machine with other work on it has alarms of its own."""
    found = drill.slow_disk(tmp_path)
    assert found.intact, str(found)
    delay = int(re.search(r"took (\d+) ms longer", found.provoked).group(1)) / 1000
    assert 0 < found.figures["slow_read_bandwidth"] <= STATE_BYTES / (delay - 0.0005)


@pytest.mark.parametrize("mended", [True, False])
def test_a_slow_disk_raises_and_clears(tmp_path, monkeypatch, mended):
    """On a clock of our own: a step takes 1 s and reads 60 MB/s, and a tenth of it while `os.preadv` is not the real one.

    Where the disk stays slow afterwards (the figures of steps 21 and later), the alarm stays, and is told.
    """
    real, read = os.preadv, Reader.read

    def measured(reader, loss, step_time):
        figures = read(reader, loss, step_time)
        slow = os.preadv is not real or (not mended and figures.step > 20)
        return replace(
            figures,
            step_time=10.0 if slow else 1.0,
            read_bandwidth=6e6 if slow else 60e6,
            write_bandwidth=60e6,
            update_time=1.0,
            stall_share=0.5,
        )

    monkeypatch.setattr(Reader, "read", measured)
    monkeypatch.setattr(drill.time, "sleep", lambda seconds: None)
    found = drill.slow_disk(tmp_path)
    assert found.intact and sorted(found.figures["alarms"]) == ["read_bandwidth", "step_time"], str(found)
    assert (found.figures["read_bandwidth"], found.figures["slow_read_bandwidth"]) == (60e6, 6e6)
    assert found.figures["active"] == ([] if mended else ["step_time", "read_bandwidth"])
    assert ("no alarm was up" if mended else "step_time, read_bandwidth was up") in found.mended


def test_a_run_that_lost_something_is_told(tmp_path, monkeypatch):
    """The check itself: weights of another step are not those of an undisturbed run."""
    whole = drill._undisturbed(5)
    monkeypatch.setattr(drill, "_undisturbed", lambda step=6: whole)
    found = drill.nan_gradient(tmp_path)
    assert not found.intact and "NOT the bits" in str(found)
