"""Every drill provokes what it says, and mends it to the last bit."""

import os

import pytest

from offload_lab.health import drill


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


def test_a_slow_disk_raises_and_clears(tmp_path):
    found = drill.slow_disk(tmp_path)
    assert found.intact and found.figures["active"] == [] and "read_bandwidth" in found.figures["alarms"], str(found)
    assert len(set(found.figures["alarms"])) == len(found.figures["alarms"]), "each is raised once"


def test_a_run_that_lost_something_is_told(tmp_path, monkeypatch):
    """The check itself: weights of another step are not those of an undisturbed run."""
    whole = drill._undisturbed(5)
    monkeypatch.setattr(drill, "_undisturbed", lambda step=6: whole)
    found = drill.nan_gradient(tmp_path)
    assert not found.intact and "NOT the bits" in str(found)
