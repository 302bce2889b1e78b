"""A figure that travelled from the service is shown as the one that was drawn there."""

import json

import pytest

from quizzes.figures import picture
from quizzes.online.asked import read
from quizzes.question import KEYS, every
from quizzes.quiz import Quiz
from quizzes.variants import draw

PLACE = {"attempt": 1, "attempts_left": 2, "settled": False}
PLOTS = [question for bank in every(KEYS).values() for question in bank.questions if question.figure is not None]


def sent(question, locale="en"):
    return json.loads(json.dumps(question.public(locale) | PLACE | {"hints": []}))


@pytest.mark.parametrize("question", PLOTS, ids=lambda question: question.id)
def test_it_is_shown_as_it_was_drawn(question):
    drawn = draw(question, "ada", locale="fr")
    notes = []
    (asked,) = read([sent(drawn, "fr")], notes)
    assert notes == []
    here, there = picture(drawn, "fr"), picture(asked, "fr")
    assert there.svg() == here.svg() and there.alternative() == here.alternative()
    assert there.html() == here.html()
    assert [table.text() for table in there.tables()] == [table.text() for table in here.tables()]
    assert all(table.text() in there.text() for table in here.tables() if table.rows)
    assert here.title in Quiz._asked(asked, "fr")


@pytest.mark.parametrize(
    "spoilt", [{"tables": [{"headers": ["a"], "rows": [["1", "2"]]}]}, {"svg": "<" * 2_000_000}, {"svg": None}]
)
def test_what_is_no_figure_is_said_and_the_rest_is_kept(spoilt):
    whole = sent(draw(PLOTS[0], "ada"))
    notes = []
    assert len(read([whole | {"figure": whole["figure"] | spoilt}, whole | {"name": "q9"}], notes)) == 1
    assert len(notes) == 1 and whole["name"] in notes[0]
