"""Who passed, by the file that the grader printed."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quizzes.certificates.results import ResultsError, outcome_of


def results(*entries, assignment="lesson-01"):
    return json.dumps({"assignment": assignment, "results": list(entries)}).encode()


def entry(student="ada", score=3.0, max_score=3.0, **more):
    return {"student": student, "score": score, "max_score": max_score, "notes": [], **more}


def test_the_entry_of_the_student_is_found():
    outcome = outcome_of(results(entry("bob", 1.0), entry("ada", 2.5, notes=["late"])), "ada")
    assert (outcome.assignment, outcome.score, outcome.max_score, outcome.notes) == ("lesson-01", Decimal("2.5"), 3, ("late",))


@pytest.mark.parametrize(
    ("score", "max_score", "mark", "passed"),
    [
        (2.4, 3.0, "0.8", True),  # 2.4 / 3.0 is less than 0.8 in binary
        (0.1 + 0.7, 1, "0.8", True),  # 0.7999999999999999
        (2.39, 3.0, "0.8", False),
        (3, 3, "1", True),
        (2.99, 3, "1", False),
        (0, 3, "0.0001", False),
        (-0.0, 3, "0.8", False),
        (7, 10, "0.7", True),
    ],
)
def test_the_pass_mark_is_exact(score, max_score, mark, passed):
    outcome = outcome_of(results(entry(score=score, max_score=max_score)), "ada")
    assert outcome.passed(Decimal(mark)) is passed


@given(st.integers(1, 1000), st.integers(0, 1000), st.integers(1, 100))
def test_passing_agrees_with_whole_numbers(max_score, score, percent):
    outcome = outcome_of(results(entry(score=min(score, max_score), max_score=max_score)), "ada")
    assert outcome.passed(Decimal(percent) / 100) == (100 * min(score, max_score) >= percent * max_score)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "malformed"),
        (b"[]", "malformed"),
        (b"{}", "malformed"),
        (b'{"assignment":"a","results":{}}', "malformed"),
        (b'{"results":[]}', "assignment"),
        (results(assignment=""), "assignment"),
        (results(assignment=None), "assignment"),
        (results(), "no student"),
        (results(entry("bob")), "no student"),
        (results(entry("Ada")), "no student"),
        (results(entry("ada "), entry("bob")), "no student"),
        (results(3), "entry 1"),
        (results({"score": 3}), "entry 1"),
        (results(entry(), entry()), "2 times"),
        (results(entry(score=float("nan"))), "NaN"),
        (results(entry("bob", score=float("nan")), entry()), "NaN"),
        (results(entry(score=float("inf"))), "Infinity"),
        (results(entry(score="3")), "not a number"),
        (results(entry(score=None)), "not a number"),
        (results(entry(score=True)), "not a number"),
        (results(entry(max_score=True)), "not a number"),
        (results(entry(score=[3])), "not a number"),
        (results(entry(score=3.5)), "3.5"),
        (results(entry(score=-1)), "not between"),
        (results(entry(score=10**400, max_score=10**400)), "not between"),
        (results(entry(score=0, max_score=0)), "no points"),
        (results(entry(score=0, max_score=-1)), "not between"),
        (results(entry(notes="late")), "notes"),
        (results(entry(notes=[1])), "notes"),
        (results(entry(notes=None)), "notes"),
        (b'{"assignment":"a","results":[{"student":"ada","score":1,"score":3,"max_score":3}]}', "twice"),
        (b'{"assignment":"a","results":[{"student":"ada","score":1e999,"max_score":1e999}]}', "not between"),
        (b'{"assignment":"a","results":[{"student":"ada","score":3}]}', "not a number"),
        (b"\xff", "UTF-8"),
    ],
)
def test_what_cannot_be_a_result_is_refused_in_words(data, says):
    with pytest.raises(ResultsError, match=says):
        outcome_of(data, "ada")


def test_one_broken_entry_does_not_keep_the_others_waiting():
    outcome = outcome_of(results(entry("bob", score=None, notes=None), entry("ada")), "ada")
    assert outcome.score == 3
