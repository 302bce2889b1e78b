"""Widgets of every kind: answered, recorded, shown again; every control has words."""

import pytest

from quizzes import Quiz, quiz
from quizzes.question import Bank
from quizzes.widgets import Board

BANK = Bank.model_validate(
    {
        "lesson": "01",
        "title": "t",
        "questions": [
            {"id": "o", "name": "q1", "level": 1, "kind": "order", "prompt": "p", "explanation": "e", "reread": "r",
             "steps": [{"id": "c", "text": "first"}, {"id": "a", "text": "then"}, {"id": "b", "text": "last"}]},
            {"id": "m", "name": "q2", "level": 1, "kind": "match", "prompt": "p", "explanation": "e", "reread": "r",
             "pairs": [{"id": x, "left": x, "right": f"r{x}", "explanation": "e",
                      "misconception": "one-moment"} for x in "ab"]},
            {"id": "t", "name": "q3", "level": 1, "kind": "text", "prompt": "p", "accepted": ["moment"],
             "explanation": "e", "reread": "r"},
            {"id": "v", "name": "q4", "level": 1, "kind": "text", "prompt": "{n}?", "accepted": ["{n}"], "explanation": "e",
             "reread": "r", "variants": {"n": ["red", "green", "blue"]}},
        ],
    }
)  # fmt: skip


@pytest.fixture
def shown(monkeypatch):
    monkeypatch.setattr(quiz, "_open", {})
    monkeypatch.setattr(quiz, "practice", lambda lesson: BANK)
    return Quiz("01")


def test_order_match_and_text_are_answered_and_shown_again(shown):
    board = Board(shown)
    order, match, text, _ = board.cards.values()
    order.button.click()
    assert "Not counted" in order.verdict.value and shown.answers["q1"] is None
    for step, control in zip(BANK["q1"].shown_steps(), order.controls, strict=True):
        control.value = ["c", "a", "b"].index(step.id) + 1
    right = BANK["q2"].options()
    for pair, control in zip(BANK["q2"].pairs, match.controls, strict=True):
        control.value = next(name for name, said in right.items() if said == f"r{pair.id}")
    text.controls[0].value = "Moment"
    for card in (order, match, text):
        card.button.click()
        assert "✔ Right" in card.verdict.value
    assert shown.answers["q1"] == ["c", "a", "b"]
    again = Board(shown).cards
    for name, card in board.cards.items():
        assert [control.value for control in again[name].controls] == [control.value for control in card.controls]


def test_every_control_is_named(shown):
    for card in Board(shown).cards.values():
        assert all(control.description for control in [*card.controls, card.sure, card.button])


def test_a_variant_is_the_same_when_built_again_and_other_when_asked_again(shown, monkeypatch):
    first = shown.bank["q4"]
    assert first.variant and "{" not in first.prompt
    assert shown.answer("q4", first.prompt[:-1]).correct
    record = shown.record
    shown.again("q4")
    assert shown.bank["q4"].prompt != first.prompt and shown.answers["q4"] is None
    monkeypatch.setattr(quiz, "_open", {})
    monkeypatch.setattr(quiz, "merge", lambda lesson, records: (record, []))
    assert Quiz("01").bank["q4"].prompt == shown.bank["q4"].prompt
