"""The edition that a class is handed: whole in print, the same for whoever builds or grades it."""

from pathlib import Path

import pytest

from quizzes.lint import check
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.judge import questions_of
from quizzes.nbgrader.notebook import build
from quizzes.question import graded
from quizzes.values import PLACE

LESSONS = [f"{number:02}" for number in range(13)]


def printed(question, lesson):
    (cell,) = (cell for cell in build(handed_out(lesson)).cells if cell.id == f"{question.name}-text")
    return cell.source


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_part_is_printed_and_no_place_is_left_open(lesson):
    for question in handed_out(lesson).questions:
        text = printed(question, lesson)
        assert not PLACE.search(text) and "{=" not in text, text
        assert question.prompt.rstrip() in text
        for part in (*question.choices, *question.steps):
            assert f"- **{part.id})** {part.text}" in text
        for pair in question.pairs:
            assert f"- **{pair.id})** {pair.left}" in text
        for option, right in question.options().items() if question.pairs else ():
            assert f"- **{option})** {right}" in text
        assert question.steps == () or [step.id for step in question.shown_steps()] != [step.id for step in question.steps]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_grader_judges_what_was_printed(lesson):
    """The right answer is computed from the numbers in the printed prompt's edition, for builder and grader alike."""
    questions_of.cache_clear()  # as in another process, a week later
    for question in handed_out(lesson).questions:
        judged = questions_of(lesson)[question.id]
        assert judged.prompt in printed(question, lesson)
        assert judged == question


def test_some_edition_has_steps_and_some_has_pairs_and_some_has_variants():
    """What the tests above look at is there: without it they would hold of nothing."""
    questions = [question for lesson in LESSONS for question in graded(lesson).questions]
    assert any(question.steps for question in questions)
    assert any(question.variants for question in questions)
    assert any(PLACE.search(question.prompt) for question in questions)


def test_a_match_question_is_printed_with_both_sides():
    from quizzes.question import Bank, Question
    from quizzes.variants import draw

    pairs = [
        {"left": f"tier {name}", "right": f"use {name}", "misconception": "gib-for-gb", "explanation": "No."} for name in "pqr"
    ]
    data = {
        "id": "g99-1", "name": "q1", "kind": "match", "prompt": "Which use has each tier?", "reread": "Tiers",
        "explanation": "As they are named.",
        "pairs": [{"id": name, **pair} for name, pair in zip("abc", pairs, strict=True)],
    }  # fmt: skip
    question = draw(Question.model_validate(data), "quiz-99")
    notebook = build(Bank(lesson="99", title="Tiers", questions=(question,)))
    (cell,) = (cell for cell in notebook.cells if cell.id == "q1-text")
    lines = cell.source.splitlines()
    for pair in question.pairs:
        assert f"- **{pair.id})** {pair.left}" in lines
    options = [line for line in lines if "** use " in line]
    assert options == [f"- **{option})** {right}" for option, right in question.options().items()]
    assert sorted(line.split("** ")[1] for line in options) == ["use p", "use q", "use r"]


def test_lessons_have_editions_of_their_own_and_each_is_always_the_same():
    first, again = handed_out("05"), handed_out("05")
    assert first == again
    assert {question.variant for question in first.questions if question.variants}.isdisjoint(
        {question.variant for question in handed_out("08").questions}
    )


def test_lint_says_it_of_a_graded_id_that_tells():
    bank = graded("01")
    telling = bank.questions[0].model_copy(update={"id": "g01-sixteen"})
    named = bank.model_copy(update={"questions": (telling, *bank.questions[1:])})
    said = [line for line in check({Path("keys/01_x.yaml"): named}) if "graded id" in line]
    assert len(said) == 1 and "question g01-sixteen" in said[0]
    assert not [line for line in check({Path("bank/01_x.yaml"): named}) if "graded id" in line]
