"""Detectors: steady noise raises nothing, a shift is raised once and cleared once, a slow drift is seen."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload_lab.health.detectors import Count, Level, NotFinite, Shift, robust
from offload_lab.health.thresholds import Thresholds

NOISES = {
    "normal": lambda chance: chance.gauss(0, 1),
    "uniform": lambda chance: chance.uniform(-1.7, 1.7),
    "long tail": lambda chance: chance.expovariate(1) - 1,
    "two humps": lambda chance: chance.choice((-1, 1)) + chance.gauss(0, 0.1),
    "an outlier in ten": lambda chance: chance.gauss(0, 1) + 30 * (chance.random() < 0.1),
    "none": lambda chance: 0.0,
}


def signals(detector, values):
    return [(number, signal) for number, value in enumerate(values) if (signal := detector.observe(value)) is not None]


def test_median_and_deviation_by_hand():
    # The median of 1, 2, 3, 4, 100 is 3; the distances are 2, 1, 0, 1, 97, and their median 1.
    assert robust([1, 2, 3, 4, 100]) == (3, 1.4826)
    assert robust([1, 2, 3, 4]) == (2.5, 1.4826)


@given(
    st.sampled_from(sorted(NOISES)),
    st.integers(0, 2**32),
    st.floats(1e-3, 1e3),
    st.floats(0, 0.3),
    st.sampled_from(["step_time", "read_bandwidth", "stall_share"]),
)
@settings(max_examples=200)
def test_steady_noise_raises_nothing(noise, seed, level, width, kind):
    """80,000 steps of any noise, at most 5.2e-7 alarms a step expected (a window and the first one): 0.04 in all."""
    chance = random.Random(seed)
    detector = Thresholds().detectors()[kind]
    values = [level * (1 + width * NOISES[noise](chance)) for _ in range(400)]
    assert signals(detector, [max(value, 0.0) for value in values]) == []


def test_the_rate_of_false_alarms_is_that_of_any_order():
    """With a window of 4, one step and k = 1, a new one is the farthest of five in one of five cases, whatever the noise.

    The bound on sigmas and shares is taken away, and each order of five numbers tried."""
    for numbers in ((1, 2, 3, 4, 5), (1, 10, 100, 1000, 10_000), (-5, -4, 0, 1, 50)):
        raised = 0
        for order in itertools.permutations(numbers):
            detector = Shift("up", least=0, scale="difference", sigmas=1e-9, window=4, hold=1, anchored=False)
            raised += bool(signals(detector, order))
        assert raised == 120 / 5 == 120 * math.comb(1, 1) / math.comb(5, 1)


@given(st.integers(0, 2**32), st.floats(0.01, 10), st.floats(0, 0.3), st.floats(0, 0.01))
def test_a_noisy_loss_that_falls_raises_nothing(seed, level, width, fall):
    chance = random.Random(seed)
    losses = [level * ((1 - fall) ** step + width * NOISES["normal"](chance)) for step in range(400)]
    assert signals(Thresholds().detectors()["loss"], losses) == []


@given(st.integers(0, 2**32), st.sampled_from([1, 3, 5, 9]), st.floats(0, 0.05), st.floats(2, 50))
def test_a_shift_is_raised_once_and_cleared_once(seed, hold, width, factor):
    chance = random.Random(seed)

    def noisy(level, count):
        return [level * (1 + width * chance.uniform(-1, 1)) for _ in range(count)]

    detector = Shift("up", least=0.3, scale="ratio", sigmas=4, window=20, hold=hold)
    found = signals(detector, noisy(1, 60) + noisy(factor, 500) + noisy(1, 60))
    assert [signal.kind for _, signal in found] == ["raised", "cleared"]
    # Raised when all of the recent ones are beyond, cleared when more than half of them are back.
    assert [number for number, _ in found] == [60 + hold - 1, 560 + hold // 2]


@pytest.mark.parametrize(("anchored", "seen"), [(True, True), (False, False)])
def test_a_slow_drift_is_seen_against_the_first_window_only(anchored, seen):
    drift = [1.002**step for step in range(400)]
    detector = Shift("up", least=0.3, scale="ratio", sigmas=4, window=50, anchored=anchored)
    found = signals(detector, drift)
    assert bool(found) == seen
    if seen:  # 1.3 × the median of the first 50 (1.002^24.5), for eight steps: ln(1.3) / ln(1.002) = 131.3
        assert [number for number, _ in found] == [pytest.approx(24.5 + 131.3 + 7, abs=1)]


@given(st.integers(0, 2**32))
def test_batches_of_two_kinds_are_no_spikes_and_a_spike_among_them_is_one(seed):
    chance = random.Random(seed)
    losses = [chance.choice((2.0, 2.0, 2.0, 4.0)) + chance.uniform(-0.05, 0.05) for _ in range(300)]
    detector = Thresholds().detectors()["loss"]
    assert signals(detector, losses) == []
    assert [signal.kind for _, signal in signals(detector, [8.0, 2.0])] == ["raised", "cleared"]


def test_a_fall_to_a_tenth_is_seen_in_noise_that_is_as_wide_as_the_level():
    chance = random.Random(0)
    noisy = [math.exp(0.5 * chance.gauss(0, 1)) for _ in range(300)]
    detector = Thresholds().detectors()["read_bandwidth"]
    assert signals(detector, noisy) == []
    # 4 σ in logarithms is a fall to exp(-2), 0.135; a hundredth is exp(-4.6).
    ((_, signal),) = signals(detector, [value / 100 for value in noisy[:20]])
    assert signal.kind == "raised" and signal.bound == pytest.approx(math.exp(-2), rel=0.5)


def test_a_short_event_is_no_shift_and_what_lasts_can_be_made_normal():
    detector = Shift("down", least=0.3, scale="ratio", sigmas=4, window=10, hold=5)
    values = [10.0] * 30
    values[20:22] = [0.1, 0.1]
    assert signals(detector, values) == []
    assert len(signals(detector, [5.0] * 50)) == 1
    rolling = Shift("down", least=0.3, scale="ratio", sigmas=4, window=10, hold=5, anchored=False)
    assert len(signals(rolling, [10.0] * 20 + [5.0] * 50)) == 1 and rolling.active, (
        "what lasts does not become normal by itself"
    )
    detector.rebase()
    assert not detector.active and signals(detector, [5.0] * 50) == []


def test_a_bound_has_a_distance_to_come_back():
    free = Level("down", 100, 110)
    found = signals(free, [120, 100, 99, 105, 109, 110, 111, 101, 100])
    assert [(number, signal.kind) for number, signal in found] == [(1, "raised"), (6, "cleared"), (8, "raised")]


def test_events_are_counted_over_a_window_and_clear_when_it_is_empty():
    skipped = Count(2, window=3)
    found = signals(skipped, [1, 0, 0, 1, 1, 1, 0, 0, 0, 2])
    assert [(number, signal.kind) for number, signal in found] == [(4, "raised"), (8, "cleared"), (9, "raised")]


def test_what_is_not_finite_is_raised_at_once():
    found = signals(NotFinite(), [1.0, float("nan"), float("inf"), 2.0, float("-inf")])
    assert [(number, signal.kind) for number, signal in found] == [(1, "raised"), (3, "cleared"), (4, "raised")]
