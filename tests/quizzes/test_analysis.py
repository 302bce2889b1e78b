"""Item analysis against values worked out by hand."""

import math

import pytest

from quizzes.analysis import analyse, correlation, language_gap, rows
from quizzes.analysis_plots import drawn_figure, items_figure, misconceptions_figure


def _class(table, languages=None):
    """`table` is learner -> shares of q1, q2, …"""
    return rows(
        {"learner": who, "question": f"q{n}", "share": share, "language": (languages or {}).get(who, "")}
        for who, shares in table.items()
        for n, share in enumerate(shares, start=1)
    )


def test_facility_and_corrected_discrimination_by_hand():
    items = analyse(_class({"a": (1, 1, 1), "b": (1, 1, 0), "c": (0, 0, 0), "d": (0, 1, 0)}))
    # q1 is (1, 1, 0, 0) against the rest (2, 1, 0, 1): covariance 1, spreads 1 and 2.
    assert items[0].facility == 0.5 and items[0].discrimination == pytest.approx(1 / math.sqrt(2))
    assert items[1].facility == 0.75 and items[2].facility == 0.25


def test_without_spread_there_is_no_discrimination():
    assert analyse(_class({"a": (1,), "b": (0,)}))[0].discrimination is None
    assert analyse(_class({"a": (1, 0), "b": (1, 1)}))[0].discrimination is None
    assert correlation([0, 1], [1, 0]) == -1.0


def test_fisher_by_hand():
    # The lady who tastes tea: 3 of 4 and 1 of 4 give (16 + 1 + 1 + 16) / 70; 4 and 0 give 2 / 70.
    assert language_gap(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert language_gap(4, 4, 0, 4) == pytest.approx(2 / 70)
    assert language_gap(2, 4, 2, 4) == 1.0


def test_a_gap_between_languages_is_flagged_and_alike_ones_are_not():
    languages = {f"e{n}": "en" for n in range(10)} | {f"k{n}": "ko" for n in range(10)}
    items = analyse(_class({who: (float(who[0] == "e"), 1.0) for who in languages}, languages))
    assert [gap.flagged for gap in items[0].gaps] == [True] and items[0].gaps[0].facilities == (1.0, 0.0)
    assert [gap.flagged for gap in items[1].gaps] == [False]


def test_what_was_drawn_is_counted_per_class_and_language():
    record = {"question": "q", "share": "0", "picked": "a; b", "misconceptions": ["gib-for-gb"]}
    (item,) = analyse(rows([{**record, "learner": "x", "language": "ko"}, {**record, "learner": "y", "picked": "b"}]))
    assert item.drew == {"a": 1, "b": 2} and item.misconceptions == {"gib-for-gb": 2}
    assert item.by_language == {"": {"gib-for-gb": 1}, "ko": {"gib-for-gb": 1}}


@pytest.mark.parametrize("share", ["nan", "2", -1, None, "half"])
def test_a_bad_share_is_named(share):
    with pytest.raises(ValueError, match="row 1"):
        rows([{"learner": "x", "question": "q", "share": share}])


def test_an_answer_counts_once():
    with pytest.raises(ValueError, match="row 2: x has answered q before"):
        rows([{"learner": "x", "question": "q", "share": 1}] * 2)


def test_the_figures_show_what_was_counted():
    record = {"question": "q", "share": 0, "picked": "a;b", "misconceptions": "gib-for-gb", "language": "en"}
    items = analyse(rows([{**record, "learner": "x"}, {**record, "learner": "y", "picked": "b", "language": "ko"}]))
    drawn = drawn_figure(items[0]).data[0]
    assert (list(drawn.x), list(drawn.y)) == (["a", "b"], [1, 2])
    assert {bar.name: list(bar.x) for bar in misconceptions_figure(items).data} == {"en": [1], "ko": [1]}
    assert len(items_figure(items).data[0].x or ()) == 0
    spread = analyse(_class({"a": (1, 1, 1), "b": (1, 1, 0), "c": (0, 0, 0), "d": (0, 1, 0)}))
    assert list(items_figure(spread).data[0].x) == [0.5, 0.75, 0.25]
