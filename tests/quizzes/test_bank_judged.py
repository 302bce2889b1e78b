"""Every question of the bank through the judge, as drawn for learners: what is right earns all, what is wrong is named."""

from fractions import Fraction

import pytest

from quizzes.grading import judge
from quizzes.question import every
from quizzes.variants import draw

QUESTIONS = [question for bank in every().values() for question in bank.questions]
UNITS = {"bytes": "bytes", "seconds": "s", "percent": "%", "dollars": "dollars"}


def editions(question):
    """As many attempts as bring every value of every variant."""
    return [draw(question, "ada", attempt) for attempt in range(max(map(len, question.variants.values()), default=1))]


def of_kind(*kinds):
    found = [question for question in QUESTIONS if question.kind in kinds]
    return pytest.mark.parametrize("question", found, ids=lambda question: question.id)


def typed(number, unit):
    return f"{float(Fraction(number)):.12g} {UNITS.get(unit, '')}".strip()


@of_kind("number")
def test_numbers(question):
    for edition in editions(question):
        assert judge(edition, typed(edition.right[0].value.number(), edition.unit)).share == 1, edition.prompt
        for trap in edition.traps:
            verdict = judge(edition, typed(trap.value.number(), edition.unit))
            assert verdict.understood and verdict.share == 0
            assert verdict.misconceptions == (trap.misconception,) and trap.explanation in verdict.message


@of_kind("one", "plot", "several")
def test_choices(question):
    for edition in editions(question):
        right = [choice.id for choice in edition.choices if choice.correct]
        assert judge(edition, right if question.kind == "several" else right[0]).share == 1
        for choice in edition.choices:
            verdict = judge(edition, choice.id)
            assert choice.explanation in verdict.message
            if not choice.correct:
                assert verdict.share == 0 and verdict.misconceptions == (choice.misconception,)


@of_kind("text")
def test_words(question):
    for word in question.accepted:
        assert judge(question, word).share == 1, word
    for wrong in question.wrong:
        verdict = judge(question, wrong.text)
        assert verdict.share == 0 and verdict.misconceptions == (wrong.misconception,)
        assert wrong.explanation in verdict.message


@of_kind("order")
def test_orders(question):
    edition = draw(question, "ada")
    assert judge(edition, [step.id for step in edition.steps]).share == 1
    for mistake in edition.mistakes:
        verdict = judge(edition, list(mistake.order))
        assert verdict.understood and verdict.share < 1
        assert verdict.misconceptions == (mistake.misconception,) and mistake.explanation in verdict.message


@of_kind("match")
def test_pairs(question):
    edition = draw(question, "ada")
    right = {pair.id: pair.option for pair in edition.pairs}
    assert judge(edition, right).share == 1
    spare = edition.extra[0].option
    for pair in edition.pairs:
        verdict = judge(edition, right | {pair.id: spare})
        assert verdict.share < 1 and pair.misconception in verdict.misconceptions and pair.explanation in verdict.message


def test_no_place_is_left_in_what_a_learner_sees():
    for question in QUESTIONS:
        for edition in editions(question):
            public = edition.public()
            seen = [public["prompt"], *(choice["text"] for choice in public["choices"])]
            assert not any("{" in text for text in seen), question.id
