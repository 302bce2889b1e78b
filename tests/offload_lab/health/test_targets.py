"""Targets and thresholds: validation, JSON, and the comparison, by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.health.targets import Measured, Targets, compare
from offload_lab.health.thresholds import KINDS, Thresholds


def test_a_target_is_compared_by_hand():
    targets = Targets(
        seconds_per_step=2, peak_ram_bytes="1KiB", loss=3.0, loss_tolerance=0.5, loss_steps=2, cost=2.0, run_steps=900,
        price_per_hour=4.0,
    )  # fmt: skip
    seen = Measured(seconds=(1.0, 1.0, 4.0), losses=(9.0, 4.0, 3.0), peak_ram_bytes=1025)
    checks = {check.name: check for check in compare(targets, seen)}
    assert list(checks) == ["seconds_per_step", "peak_ram_bytes", "loss", "cost"]
    assert checks["seconds_per_step"].measured == 1.0 and checks["seconds_per_step"].passed
    assert checks["peak_ram_bytes"].target == 1024 and not checks["peak_ram_bytes"].passed
    assert checks["loss"].measured == 3.5 == checks["loss"].target and checks["loss"].passed, "the bound itself passes"
    # The mean of 1, 1 and 4 s is 2 s; 900 steps are half an hour at 4 USD an hour.
    assert checks["cost"].measured == 2.0 and checks["cost"].passed


def test_what_cannot_be_measured_or_is_not_finite_does_not_pass():
    gpu, loss = compare(Targets(peak_gpu_bytes=10**12, loss=100.0), Measured((1.0,), (float("nan"),)))
    assert not gpu.passed and "could not be measured" in gpu.text
    assert not loss.passed and "nan" in loss.text
    assert not any(check.passed for check in compare(Targets(seconds_per_step=1, loss=1.0), Measured((), ())))


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_it_passes_exactly_where_the_figure_is_within_the_target(target, seen):
    (check,) = compare(Targets(seconds_per_step=target), Measured((seen,), ()))
    assert check.passed == (seen <= target)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "no target is set"),
        ({"seconds_per_step": 0}, "seconds_per_step=0"),
        ({"seconds_per_step": True}, "seconds_per_step=True"),
        ({"loss": float("nan")}, "loss=nan"),
        ({"loss": 1, "loss_tolerance": -1}, "loss_tolerance=-1"),
        ({"loss": 1, "loss_steps": 0}, "loss_steps=0"),
        ({"peak_ram_bytes": "5 parsec"}, "peak_ram_bytes='5 parsec'"),
        ({"cost": 5}, "needs run_steps"),
        ({"seconds": 1}, "has no seconds; it has seconds_per_step"),
        ([1], "one JSON object is needed, not list"),
    ],
)
def test_a_field_that_is_wrong_is_named(given, named):
    with pytest.raises(ValueError) as raised:
        Targets.from_dict(given)
    assert named in str(raised.value)


def test_json_comes_back_and_a_plan_gives_its_targets(tmp_path):
    targets = Targets(seconds_per_step=2.5, peak_ram_bytes="2GB", loss=3)
    path = tmp_path / "targets.json"
    path.write_text(targets.to_json())
    assert Targets.read(path) == targets and Targets.read(path).peak_ram_bytes == 2 * 10**9
    path.write_text(
        json.dumps(
            {
                "format": 1,
                "fits": True,
                "targets": {"seconds_per_step": 9.1, "cost": 3.0, "loss": None},
                "time": {"steps": 50, "lanes": {}},
                "hardware": {"price": {"value": 1.5, "source": "assumed", "note": ""}},
            }
        )
    )
    assert Targets.read(path) == Targets(seconds_per_step=9.1, cost=3.0, run_steps=50, price_per_hour=1.5)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"targets\.json"):
        Targets.read(path)


def test_thresholds_come_back_from_json_and_none_turns_one_off():
    chosen = Thresholds(step_time=0.5, disk_free="2GiB", endurance="600TB", hit_share=None)
    assert Thresholds.from_dict(json.loads(chosen.to_json())) == chosen
    assert set(KINDS) - set(chosen.detectors()) == {"hit_share"}
    off = Thresholds(step_time=None, bandwidth=None, stall_share=None, hit_share=None, skipped=None, loss_sigmas=None,
                     disk_free=None, wear=None)  # fmt: skip
    assert off.detectors() == {}
    assert "wear" not in Thresholds().detectors(), "there is no wear without an endurance"


@pytest.mark.parametrize(
    "wrong", [{"bandwidth": 1.0}, {"window": 4}, {"hold": 0}, {"skipped": 0}, {"sigmas": 0}, {"disk_free": "x"}, {"step": 1}]
)
def test_a_threshold_that_is_wrong_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Thresholds.from_dict(wrong)
