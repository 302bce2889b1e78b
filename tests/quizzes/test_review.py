"""What was missed comes back, at the time of a clock that is passed in; confidence and its figure."""

import time
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quizzes import Quiz, quiz
from quizzes.calibration import ENOUGH, bins, brier, table
from quizzes.calibration_plot import _EDGE, _SIDE, shown
from quizzes.progress import Progress
from quizzes.question import every, practice

SEOUL = timezone(timedelta(hours=9))


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(quiz, "_open", {})
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


def test_what_was_missed_anywhere_comes_back_and_is_asked(monkeypatch):
    missed, other = practice("01").questions[0], practice("05").questions[0]
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    Progress().note("01", missed.id, {"answer": "a", "share": 0.0, "at": now.isoformat()}, now)
    Progress().note("05", other.id, {"answer": "a", "share": 0.0, "at": now.isoformat()}, now)
    Progress().note("01", "no-longer-asked", {"answer": "a", "share": 0.0, "at": now.isoformat()}, now)
    mine = Quiz("01")
    early = mine.review(now)
    assert "Nothing of this lesson is due" in early and "Next is" in early
    later = mine.review(now + timedelta(days=1))
    assert f"{missed.name}. " in later and "answers[" in later
    assert f"Lesson 05: {other.name} due. Ask them with Quiz('05').review()." in later and "Next is" not in later


@pytest.mark.parametrize("zone", ["UTC", "Asia/Seoul", "America/St_Johns"])
def test_the_zone_of_the_computer_moves_no_date(monkeypatch, zone):
    missed = practice("01").questions[0]
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        now = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # clocks change in Europe
        Progress().note("01", missed.id, {"answer": "a", "share": 0.0, "at": now.isoformat()}, now.astimezone())
        due = datetime.fromisoformat(Progress().read()["cards"][missed.id]["due"])
        mine = Quiz("01")
        for moment in (due, due.astimezone(SEOUL), due.astimezone()):
            assert mine.due(moment) == [missed.id] and mine.due(moment - timedelta(seconds=1)) == []
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_question_with_variants_comes_back_with_other_numbers():
    banks = [bank for path, bank in every().items() if path.parent.name == "bank"]
    lesson = next(bank.lesson for bank in banks for q in bank.questions if q.variants and q.kind == "number")
    mine = Quiz(lesson)
    question = next(q for q in mine.bank.questions if q.variants and q.kind == "number")
    mine.answer(question.name, "987654 B" if question.unit == "bytes" else "987654")  # right in no draw
    now = datetime.now(UTC) + timedelta(days=30)
    if question.id in mine.due(now):
        asked = mine.review(now)
        assert mine.bank[question.name].variant != question.variant and mine.bank[question.name].prompt in asked
        assert mine.review(now) == asked, "looked at twice it is the same question"
    else:
        pytest.fail(f"{question.id} was missed and does not come back")


entries = st.lists(
    st.fixed_dictionaries({"share": st.sampled_from([0.0, 0.5, 1.0]), "confidence": st.integers(0, 100)}), max_size=60
)


@given(entries)
def test_the_figure_has_what_the_table_has(held):
    text = shown(held)
    assert str(text) == table(held) and sum(one.count for one in bins(held)) == len(held)
    if not held:
        assert text.figure == "" and "No answer has a confidence yet" in text
        return
    assert ("can be chance" in text) == (len(held) < ENOUGH)
    # Brier by its definition, over the answers and not over the bins
    assert brier(held) == pytest.approx(sum((e["confidence"] / 100 - e["share"]) ** 2 for e in held) / len(held))
    figure = ET.fromstring(text.figure)
    label = figure.attrib["aria-label"]
    assert figure.attrib["role"] == "img" and all(line in label for line in text.split("\n"))
    circles = figure.findall("{http://www.w3.org/2000/svg}circle")
    drawn = [((float(c.attrib["cx"]) - _EDGE) / _SIDE, 1 - (float(c.attrib["cy"]) - _EDGE) / _SIDE) for c in circles]
    assert drawn == [(pytest.approx(one.said, abs=1e-3), pytest.approx(one.right, abs=1e-3)) for one in bins(held)]


def test_hints_do_not_make_a_right_answer_look_unknown():
    assert brier([{"confidence": 100, "share": 0.5, "earned": 1.0}]) == 0.0
