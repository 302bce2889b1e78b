"""Lesson 9: what it says of gates, monitors, drills and files holds; its check accepts what is right and names what is not."""

import math
import re
import statistics

import pytest

from course.checks.lesson_09 import gated, go


def right(figures, targets):
    if not targets:
        raise ValueError("a gate without a target decides nothing")
    reasons = []
    for name, most in targets.items():
        value = figures.get(name)
        if name == "seconds_per_step":
            counted = figures.get("seconds", [])[2:]
            value = statistics.median(counted) if counted else None
        if value is None or not math.isfinite(value) or value > most:
            reasons.append(name)
    return not reasons, reasons


def also_right(figures, targets):
    """The other way round: what surely passes is taken away; a list for the pair, which is as good."""
    known = dict(figures)
    if len(figures.get("seconds", ())) > 2:
        ordered = sorted(figures["seconds"][2:])
        known["seconds_per_step"] = (ordered[len(ordered) // 2] + ordered[~(len(ordered) // 2)]) / 2
    passed = {name for name in targets if known.get(name) is not None and -math.inf < known[name] <= targets[name]}
    if len(targets) == 0:
        raise ValueError
    return [passed == set(targets), [name for name in targets if name not in passed]]


@pytest.mark.parametrize("function", [right, also_right, gated])
def test_a_right_function_passes(function):
    assert go.check(function)


def changed(missed, value=None):
    """`right`, but what is missed is decided by `missed`, or the figure of a name is found by `value`."""

    def function(figures, targets):
        if not targets:
            raise ValueError
        found = {name: (value or figure)(figures, name) for name in targets}
        reasons = [name for name, most in targets.items() if missed(found[name], most)]
        return not reasons, reasons

    return function


def figure(figures, name):
    counted = figures.get("seconds", [])[2:]
    return (statistics.median(counted) if counted else None) if name == "seconds_per_step" else figures.get(name)


def misses(value, most):
    return value is None or not math.isfinite(value) or value > most


def seconds_by(function):
    def found(figures, name):
        held = figures.get("seconds")
        return function(held) if name == "seconds_per_step" and held else figures.get(name)

    return changed(misses, found)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (changed(lambda value, most: value is None or value > most), "You let NaN pass"),
        (changed(lambda value, most: value is not None and misses(value, most)), "You judge only what was measured"),
        (changed(lambda value, most: value is not None and value > most), "`>` only where there is a number"),
        (changed(lambda value, most: misses(value, most) or value == most), "equal passes"),
        (lambda figures, targets: (right(figures, targets)[0], right(figures, targets)[1][:1]), "stop at the first"),
        (
            lambda figures, targets: (len(right(figures, targets)[1]) < len(targets), right(figures, targets)[1]),
            "content with one",
        ),
        (seconds_by(lambda held: statistics.mean(held[2:]) if held[2:] else None), "You take the mean"),
        (seconds_by(statistics.median), "You count the steps that warm up"),
        (lambda figures, targets: right(figures, targets)[0], "should give (True, []); yours gives True"),
        (lambda figures, targets: (True, []), "above what the target allows"),
        (lambda figures, targets: right(figures, targets) if targets else (True, []), "could only say yes"),
        (changed(lambda value, most: value > most), "does not pass"),
        (lambda figures, targets: None, "Not begun"),
    ],
)
def test_a_wrong_one_is_told_what_is_behind_it(wrong, said, capsys):
    assert not go.check(wrong)
    assert said in capsys.readouterr().out


def test_what_is_expected_is_what_the_gate_of_the_engine_says():
    for case in go.cases:
        if not isinstance(case.expected, type):
            assert gated(*case.arguments) == case.expected, case.arguments
        else:
            with pytest.raises(case.expected):
                gated(*case.arguments)


def test_ten_runs_have_a_spread_and_the_loads_are_four(ran):
    assert "Measured: " in ran("09").text("spread")
    assert ran("09").text("loads").count("ms a step, measured") == 4


def test_the_gate_says_no_for_the_disk_and_yes_to_scratch_files(ran):
    first, second = ran("09").text("gate"), ran("09").text("second")
    assert "FAIL  disk_bytes" in first and "pass  loss" in first
    assert "pass  disk_bytes" in second
    log = ran("09").text("log")
    assert log.index("— failed") < log.index("A. accepts that")


def test_one_slow_step_wakes_nobody_and_a_shift_does(ran):
    (line,) = ran("09").text("shift").splitlines()
    assert line.startswith("step 108: step_time")


def test_a_spike_is_seen_and_a_creeping_loss_only_by_a_target(ran):
    steady, broken, creeping = re.split(r"\n(?=\S)", ran("09").text("drift").strip())
    assert "no alarm" in steady and "no alarm" in creeping and "step 201: loss" in broken
    told = ran("09").text("drift-targets").splitlines()
    assert told[-1].startswith("step 500: FAIL")


def test_an_alarm_rolls_a_broken_batch_back(ran):
    assert "-> rollback" in ran("09").text("rollback") and "bit for bit: True" in ran("09").text("rollback")


def test_every_incident_ends_whole(ran):
    lines = ran("09").text("drilled").splitlines()
    assert len(lines) == 5 and all(line.endswith("intact: True") for line in lines)
    assert "Measured: 3.00" in ran("09").text("killed")


def test_the_state_is_its_owners_and_what_lies_beside_it_follows_the_umask(ran):
    usual, strict = ran("09").text("modes").split("umask 077")
    assert usual.count("-rw------- state/offload.state") == 1 and "-rw-r--r-- save.pt" in usual
    assert "r--" not in strict.replace("-rw-------", "")


def test_a_copy_of_the_folder_is_the_model(ran):
    assert "bit for bit: True" in ran("09").text("stranger")


def test_the_bill_follows_the_mean(ran):
    mean = (47 * 8.0 + 3 * 40.0) / 50
    assert f"Calculated: ${mean * 200_000 / 3600 * 2.5:.2f}" in ran("09").text("bill")
    assert "it is a no-go" in ran("09").text("bill")
