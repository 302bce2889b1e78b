"""The bank as a whole: how much there is, every number by a second route, and what a distractor has to be."""

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import pytest

from quizzes.lint import check
from quizzes.question import BANK, KEYS, UNNAMED, every, misconceptions
from tests.quizzes.second_route import ROUTES

BANKS = every()
QUESTIONS = [question for bank in BANKS.values() for question in bank.questions]
NUMBERS = [question for question in QUESTIONS if question.kind == "number"]
ROUGH = {
    "l02-collected": {"abs": 1},  # the formula says "about", and steps are whole
    "g02-1": {"rel": 1e-4},  # a tie is not reached, only the next float32 behind it
}
LESSONS = [f"{number:02}" for number in range(13)]


def by_id(questions):
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.id)


def combined(question):
    """Every set of values that a draw may put into the question."""
    return [dict(zip(question.variants, values, strict=True)) for values in product(*question.variants.values())]


def number(value, names):
    """A value of the bank once `names` are drawn."""
    return Fraction(value.model_copy(update={"names": {**value.names, **names}}).number())


def texts(question):
    """Every text that a learner may see."""
    parts = (*question.choices, *question.traps, *question.wrong, *question.mistakes, *question.pairs)
    found = [question.prompt, question.explanation, *question.hints, *(part.explanation for part in parts)]
    return found + [choice.text for choice in question.choices] + [step.text for step in question.steps]


def test_there_is_enough_of_everything():
    practice = [q for path, bank in BANKS.items() if path.parent == BANK for q in bank.questions]
    graded = [q for path, bank in BANKS.items() if path.parent == KEYS for q in bank.questions]
    assert len(practice) >= 60 and len(graded) >= 32 and len(QUESTIONS) > 90
    for folder in (BANK, KEYS):
        assert [bank.lesson for path, bank in BANKS.items() if path.parent == folder] == LESSONS
    kinds = Counter(question.kind for question in QUESTIONS)
    assert set(kinds) == {"one", "several", "number", "text", "order", "match", "plot"} and min(kinds.values()) >= 3
    assert {question.level for question in practice} == {question.level for question in graded} == {1, 2, 3}
    assert sum(bool(question.variants) for question in QUESTIONS) * 3 >= len(QUESTIONS)


def test_ids_prompts_and_names_are_each_there_once():
    for words in ([q.id for q in QUESTIONS], [q.prompt for q in QUESTIONS]):
        assert len(set(words)) == len(words)
    for path, bank in BANKS.items():
        assert path.stem.startswith(f"{bank.lesson}_")
        assert [q.name for q in bank.questions] == [f"q{place}" for place in range(1, len(bank.questions) + 1)]
        prefix = "l" if path.parent == BANK else "g"
        assert all(q.id.startswith(f"{prefix}{bank.lesson}-") for q in bank.questions)


def test_every_misconception_is_somebodys():
    known = misconceptions()
    used = {idea for question in QUESTIONS for idea in question.misconceptions}
    assert len(known) >= 28 and set(known) == used | {UNNAMED}
    assert all(entry["idea"].endswith(".") and entry["reread"] for entry in known.values())
    assert len({entry["idea"] for entry in known.values()}) == len(known)


def test_every_number_has_a_second_route():
    assert {question.id for question in NUMBERS} == set(ROUTES)


@by_id(NUMBERS)
def test_keys_are_those_of_a_second_route(question):
    for names in combined(question):
        expected = float(ROUTES[question.id](**names))
        off = ROUGH.get(question.id, {"rel": 1e-5})
        for right in question.right:
            assert float(number(right.value, names)) == pytest.approx(expected, **off), names


@by_id(NUMBERS)
def test_traps_are_told_from_the_key_and_from_each_other(question):
    for names in combined(question):
        (right,) = question.right
        key, traps = number(right.value, names), [number(trap.value, names) for trap in question.traps]
        within = Fraction(str(right.tolerance)) * abs(key)
        assert traps and all(abs(trap - key) > 2 * within for trap in traps), names
        assert all(abs(one - other) > within for one, other in combinations(traps, 2)), names


@by_id([question for question in QUESTIONS if question.variants])
def test_variants_fill_every_place_and_differ(question):
    placed = {name for text in texts(question) for name in re.findall(r"\{(\w+)\}", text)}
    assert placed <= set(question.variants) and set(re.findall(r"\{(\w+)\}", question.prompt)) == set(question.variants)
    assert len(combined(question)) >= 3
    if question.kind == "number":
        assert len({number(question.right[0].value, names) for names in combined(question)}) >= 3


@by_id([question for question in QUESTIONS if question.choices])
def test_the_right_choice_is_not_the_longest(question):
    right = [len(choice.text) for choice in question.choices if choice.correct]
    wrong = [len(choice.text) for choice in question.choices if not choice.correct]
    assert max(right) <= max(wrong)
    assert not any("of the above" in choice.text.lower() for choice in question.choices)
    assert len({choice.explanation for choice in question.choices}) == len(question.choices)


def test_the_right_choice_is_in_every_place():
    places = Counter(choice.id for q in QUESTIONS if q.kind in ("one", "plot") for choice in q.choices if choice.correct)
    assert set(places) == set("abcd") and max(places.values()) <= 0.4 * sum(places.values())


def test_no_explanation_or_prompt_is_left_empty():
    for question in QUESTIONS:
        assert all(text.strip() for text in texts(question) if text is not question.explanation), question.id
        if not question.choices and question.kind != "match":
            assert question.explanation
        assert question.reread


def test_lint_finds_nothing():
    assert check(BANKS) == []
