"""The checker of waits that a learner's is compared with, its lists, and the picture of what differs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.checks.ordering import differs, lists, pairs_of, shared, step, unordered
from course.pairs import Pairs
from course.recorded import recorded
from offload_lab.races import RACES

PLACES = ["a", "b", "c"]


@st.composite
def steps(draw):
    made = []
    for number in range(draw(st.integers(0, 7))):
        after = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        reads, writes = (" ".join(draw(st.sets(st.sampled_from(PLACES)))) for _ in range(2))
        made.append(step(f"step {number}", reads, writes, sorted(after)))
    return made


def reaches(listed, later, earlier):
    """Backwards along `after`, one path after the other."""
    return any(other == earlier or reaches(listed, other, earlier) for other in listed[later].after)


@given(steps())
def test_it_finds_what_a_walk_along_all_paths_finds(listed):
    expected = set()
    for later, two in enumerate(listed):
        for earlier, one in enumerate(listed[:later]):
            touched = [place for place in PLACES if place in one.reads | one.writes and place in two.reads | two.writes]
            written = [place for place in touched if place in one.writes | two.writes]
            if written and not reaches(listed, later, earlier):
                expected.add((earlier, later))
    assert unordered(listed) == expected


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_it_finds_every_listing_and_no_fix(race):
    assert unordered(recorded(race.broken).steps)
    assert not unordered(recorded(race.fixed).steps)


def test_two_that_only_read_do_not_disturb_each_other():
    both = [step("write", "buffer-0", "disk-0"), step("norm", "buffer-0")]
    assert shared(*both) == frozenset() and unordered(both) == set()
    assert unordered([both[1], step("read", "", "buffer-0")]) == {(0, 1)}


def test_lists_are_drawn_by_their_seed_and_both_kinds_are_there():
    assert lists(5) == lists(5) != lists(6)
    verdicts = [bool(unordered(listed)) for listed in lists(5)]
    assert 20 < sum(verdicts) < len(verdicts) - 20


@pytest.mark.parametrize(
    "answer, pairs",
    [
        ([(0, 1)], {(0, 1)}),
        ([[0, 1], (0, 1)], {(0, 1)}),
        ({(1, 2)}, {(1, 2)}),
        ((), set()),
        (None, None),
        (5, None),
        ([0, 1], None),
        ([(0, 1, 2)], None),
        ([("0", "1")], None),
        ([(0.0, True)], None),
        ("ab", None),
    ],
)
def test_what_counts_as_pairs(answer, pairs):
    assert pairs_of(answer) == pairs


CHAIN = [
    step("read", "disk-0", "buffer-0"),
    step("update", "buffer-0", "buffer-0", [0]),
    step("write", "buffer-0", "disk-0", [1]),
]
LOOSE = [step("write", "buffer-0", "disk-0"), step("read", "disk-1", "buffer-0"), step("write", "buffer-0", "disk-1", [0])]


@pytest.mark.parametrize(
    "listed, answer, said",
    [
        (CHAIN, [], ""),
        (CHAIN, None, "A list of pairs"),
        (CHAIN, [(0, 2)], "waits carry on"),
        (CHAIN, [(0, 1)], "It is there"),
        (CHAIN, [(2, 7)], "two numbers of this list"),
        (LOOSE, [(0, 1), (1, 2)], ""),
        (LOOSE, [(1, 0), (2, 1)], "the other way round"),
        (LOOSE, [(1, 2)], "The earlier step only reads, and still it races"),
        (LOOSE, [(0, 1)], "waits, but not for this one"),
        ([step("a", "", "x"), step("b", "x")], [], "does not wait for it"),
        ([step("a", "", "x"), step("b", "", "x")], [], "Both write one place"),
        ([step("a", "x"), step("b", "x")], [(0, 1)], "Readers do not disturb"),
        ([step("a", "x"), step("b", "y")], [(0, 1)], "share no place"),
    ],
)
def test_it_says_what_is_behind_a_difference(listed, answer, said):
    assert said in differs(answer, listed)
    assert bool(said) == bool(differs(answer, listed))


numbers = st.integers(-3, 9)


@given(steps(), st.sets(st.tuples(numbers, numbers), max_size=20))
def test_any_answer_is_told_and_drawn(listed, theirs):
    figure = Pairs("title", listed, unordered(listed), theirs)
    drawn = figure.svg()
    assert drawn.startswith("<svg") and not re.search(r'="(nan|-?inf)"', drawn)
    assert all(str(pair) in figure.text() for pair in theirs)
    assert bool(differs(theirs, listed)) == (theirs != unordered(listed))


def test_the_picture_says_what_is_missing_and_what_is_too_much():
    figure = Pairs("t", LOOSE, unordered(LOOSE), {(0, 1), (0, 2)})
    assert figure.summary() == ["1 pair is missing.", "1 pair is not expected."]
    assert figure.rows() == [((0, 1), True, True), ((0, 2), False, True), ((1, 2), True, False)]
    drawn = figure.svg()
    assert "expected, and missing" in drawn and drawn.count('height="16.0"') == 6
    assert "and missing" not in Pairs("t", LOOSE, unordered(LOOSE), unordered(LOOSE)).svg()
