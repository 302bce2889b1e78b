"""The tornado shows what it is given, and refuses what it cannot; the replay compares a real step with its prediction."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.replayed import SCHEDULES, Replay, furthest, replayed
from course.tornado import Tornado
from offload_lab.hardware import Figure, Hardware

time = st.floats(0, 1e6)
ROWS = [("memory", 3.0, 1.0), ("link", 2.2, 1.995), ("disk", 2.0, 2.0)]


@given(time, st.lists(st.tuples(st.text(max_size=30), time, time), max_size=8))
def test_any_rows_make_a_picture_without_a_hole(base, rows):
    figure = Tornado("title", base, rows)
    drawn = figure.svg()
    assert drawn.startswith("<svg") and not re.search(r'="(nan|-?inf)"', drawn)
    widths = [float(width) for width in re.findall(r'<rect x="[^"]+" y="[^"]+" width="([^"]+)"', drawn)]
    assert all(0 <= width <= 760 for width in widths)
    assert "predicted" in figure.text()


def test_it_says_what_helps_most_and_what_does_not_help():
    said = Tornado("t", 2.0, ROWS).text()
    assert "Doubled alone, memory helps most: 1 s (-50.0 %)." in said
    assert "less than half a per cent: link, disk." in said
    assert re.search(r"memory +3 s +\+50.0 % +1 s +-50.0 %", said)
    assert Tornado("t", 2.0, [("disk", 3.0, 2.0)]).summary()[1] == "Doubling any one of them alone changes nothing."
    assert Tornado("t", 2.0, []).summary() == ["The step as it is, predicted: 2 s."]


def test_a_bar_goes_from_the_base_to_each_side():
    drawn = Tornado("t", 2.0, ROWS).svg()
    assert drawn.count('height="22.0"') == 4, "two bars, one that is thin on both sides, and none where nothing changes"
    bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="22.0"', drawn)
    (half, wide), (twice, long) = ((float(x), float(width)) for x, width in bars[:2])
    assert twice + long == pytest.approx(half, abs=0.2) and wide == pytest.approx(long, abs=0.2), "to the right and to the left"
    assert "no change" in drawn and "as it is: 2 s" in drawn


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(ValueError, match=r"base: .* is no time"):
        Tornado("t", value, [])
    with pytest.raises(ValueError, match=r"disk: .* is no time"):
        Tornado("t", 1.0, [("disk", 1.0, value)])
    with pytest.raises(ValueError, match="dreamt"):
        Tornado("t", 1.0, [], source="dreamt")


def flat(value, **others):
    rate = Figure(value, "assumed")
    return Hardware("flat", ram=rate, dram_bandwidth=rate, disk_read=rate, disk_write=rate, **others)


def test_a_replay_predicts_from_the_tasks_that_the_engine_ran(tmp_path):
    n = 16 * 16_384  # records of whole blocks: no padding
    found = replayed(flat(1e9, disk_duplex="full"), parameters=n, steps=1, directory=str(tmp_path))
    assert list(tmp_path.iterdir()) == [] and [one.name for one in found] == list(SCHEDULES)
    moved = 10 * n / 1e9
    alone, ahead, behind = (one.predicted for one in found)
    assert alone == pytest.approx(2 * moved + sum(e.nbytes for e in found[0].predicted_events if e.lane == "cpu") / 1e9)
    assert alone > ahead > behind >= moved
    assert all(one.measured > 0 and {e.lane for e in one.measured_events} >= {"disk-read", "disk-write"} for one in found)


def test_the_error_bar_counts_both_directions():
    assert furthest([Replay("a", 1.0, 2.0, [], []), Replay("b", 1.5, 1.0, [], [])]) == 2.0
    assert furthest([]) == 1.0
    with pytest.raises(ValueError, match="at least one step"):
        replayed(flat(1e9), steps=0)
