"""The figure of lines shows what it is given, and refuses what it cannot."""

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.curves import Curves, _apart, smoothed

number = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.dictionaries(st.text(max_size=20), st.lists(st.tuples(st.floats(0, 1e9), number), max_size=30), max_size=4))
def test_any_lines_make_a_picture_without_a_hole(lines):
    figure = Curves("title", lines, "step", "loss")
    drawn = figure.svg()
    assert "nan" not in drawn and "inf" not in drawn.replace("infinite", "") and drawn.startswith("<svg")
    assert "measured" in figure.text()


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 200), max_size=4))
def test_names_at_the_ends_do_not_cover_each_other(wanted):
    placed = sorted(_apart(wanted, 200.0).values())
    assert len(placed) == len(wanted) and all(b - a >= 15 - 1e-6 for a, b in itertools.pairwise(placed))
    assert not placed or placed[-1] <= 200


def test_what_it_says_is_where_the_line_begins_and_ends():
    figure = Curves("t", {"a": [(1, 2.0), (2, 1.5)]}, "step", "loss", source="predicted")
    assert "a: from 2 to 1.5." in figure.text() and "predicted" in figure.text()
    assert len(re.findall(r"<rect", figure.svg())) >= 2


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_point_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="'a' has a point"):
        Curves("t", {"a": [(0, value)]}, "step", "loss")


def test_five_lines_and_unknown_sources_are_refused():
    with pytest.raises(ValueError, match="5 lines"):
        Curves("t", {name: [(0, 1)] for name in "abcde"}, "step", "loss")
    with pytest.raises(ValueError, match="dreamt"):
        Curves("t", {}, "step", "loss", source="dreamt")


def test_smoothing_is_the_mean_of_full_windows():
    assert smoothed([1, 2, 3, 4], 2) == [(2.0, 1.5), (3.0, 2.5), (4.0, 3.5)]
    assert smoothed([1, 3], 10) == [(2.0, 2.0)] and smoothed([], 3) == []
