"""Verdicts of all kinds, by their stated rules; variants."""

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from quizzes.grading import judge
from quizzes.question import Question
from quizzes.say import language
from quizzes.variants import VariantError, draw, redraw

IDEA = {"explanation": "why", "misconception": "gib-for-gb"}


def make(kind, **fields):
    return Question.model_validate({"id": "t", "name": "q1", "kind": kind, "prompt": "?"} | fields)


def choice(name, correct, **more):
    return {"id": name, "text": name, "correct": correct} | IDEA | more


def several(right, of, **last):
    names = "abcdefgh"[:of]
    return make("several", choices=[choice(n, i < right, **(last if i == of - 1 else {})) for i, n in enumerate(names)])


NUMBER = {"unit": "count", "explanation": "so"}
ORDER = make("order", explanation="so", steps=[{"id": n, "text": n} for n in ("read", "update", "copy", "write")],
             mistakes=[{"order": ["write", "update"]} | IDEA])  # fmt: skip
MATCH = make("match", pairs=[{"id": n, "left": n, "right": r} | IDEA for n, r in (("x", "one"), ("y", "two"), ("z", "three"))],
             extra=[{"id": "w", "text": "four"}])  # fmt: skip
TEXT = make("text", accepted=["ZeRO-3", "café"], wrong=[{"text": "ddp"} | IDEA], explanation="so")


def test_select_all_earns_nothing():
    assert judge(several(2, 6), "a b c d e f").share == 0 and judge(several(5, 6), "a b c d e f").share == 0
    assert judge(several(3, 3), "a b c").share == 1 and judge(several(2, 6), "a c b").share == 0.5


def test_an_exclusive_choice_stands_alone():
    question = several(2, 4, exclusive=True)
    assert not judge(question, "a, d").understood and judge(question, "d").understood


@pytest.mark.parametrize("right", [0, 2])
def test_one_choice_with_none_or_two_right_is_the_authors_error(right):
    choices = [choice(n, i < right) for i, n in enumerate("abc")]
    with pytest.raises(ValidationError, match=rf"choices: {right} are right"):
        make("one", choices=choices)
    if right == 2:
        question = make("one", choices=choices, several_right=True)
        assert judge(question, "a").correct and judge(question, "b").correct and judge(question, "c").share == 0


def test_a_wrong_choice_may_earn_a_part():
    assert judge(make("one", choices=[choice("a", True), choice("b", False, credit=0.5)]), "b").share == 0.5


def test_tolerance_counts_its_ends_and_every_answer_has_its_own():
    question = make("number", value=45.8, tolerance=0, answers=[{"value": 45.8, "absolute": 0.2}], **NUMBER)
    assert judge(question, "46.0").correct and judge(question, "45.6").correct and not judge(question, "46.0001").correct
    question = make(
        "number", answers=[{"value": 3.14, "absolute": 0.01}, {"value": {"formula": "22/7"}, "absolute": 0.001}], **NUMBER
    )
    assert judge(question, "3.15").correct and judge(question, "3.13").correct and not judge(question, "3.151").correct
    epsilon = make("number", value="1e-8", tolerance=0.01, **NUMBER)
    assert judge(epsilon, "1e-8").correct and not judge(epsilon, "0").correct and not judge(epsilon, "2e-8").correct


@pytest.mark.parametrize("typed", ["ＺｅＲＯ‐３\u200b", "zero−3", "ZeRO – 3", "cafe\u0301", "CAFÉ\u00a0", "“ZeRO-3”."])
def test_text_that_looks_the_same_is_the_same(typed):
    assert judge(TEXT, typed).correct and not judge(TEXT, "ZeRO-2").correct and judge(TEXT, "DDP").misconceptions


def test_order_and_match_by_their_rules():
    assert judge(ORDER, "read, update, copy, write").share == 1
    assert judge(ORDER, "write, read, update, copy").share == pytest.approx(2 / 3)
    assert judge(ORDER, ["write", "copy", "update", "read"]).share == 0
    assert judge(ORDER, "write, copy, update, read").misconceptions == ("gib-for-gb",)
    assert not judge(ORDER, "read, update").understood
    right = {pair.id: pair.option for pair in MATCH.pairs}
    assert judge(MATCH, right).share == 1 and judge(MATCH, {"x": right["x"]}).share == pytest.approx(1 / 3)
    assert judge(MATCH, right | {"x": right["y"]}).share == pytest.approx(1 / 3)
    assert judge(MATCH, ", ".join(f"{a}: {b}" for a, b in right.items())).correct and not judge(MATCH, {"x": "9"}).understood


def test_hints_cost_their_share():
    question = make("one", choices=[choice("a", True), choice("b", False)], hints=["h1", "h2"])
    assert [judge(question, "a", hints=n).share for n in (0, 1, 2, 9)] == [1, 0.75, 0.5, 0.5]
    assert judge(question, "b", hints=2).share == 0


@given(st.one_of(st.text(max_size=20), st.floats(), st.none(), st.binary(), st.lists(st.text(max_size=3)),
                 st.dictionaries(st.sampled_from("xyz"), st.one_of(st.integers(), st.text(max_size=2)))))  # fmt: skip
def test_no_answer_breaks_the_judge_and_shares_are_shares(answer):
    for question in (ORDER, MATCH, TEXT, several(2, 4), make("number", value=3, **NUMBER)):
        share = judge(question, answer, hints=1).share
        assert math.isfinite(share) and 0 <= share <= 1


VARIED = make("number", prompt="{n} bytes, {{x}}, {=n*2}, \\begin{array}", value={"formula": "n * 10"},
              variants={"n": [1000, 2000, 3000, 4000, 5000]}, **NUMBER)  # fmt: skip


def test_numbers_never_come_twice_in_a_row_and_are_the_same_again():
    for learner in ("ann", "bob", "민준"):
        editions = [draw(VARIED, learner, attempt) for attempt in range(12)]
        values = [edition.value.number() for edition in editions]
        assert all(a != b for a, b in itertools.pairwise(values)) and set(values) == {n * 10 for n in range(1000, 6000, 1000)}
        assert redraw(VARIED, editions[3].variant) == editions[3]
        assert judge(editions[0], str(values[0])).correct
    with pytest.raises(ValueError, match=r"variants\.draw"):
        judge(VARIED, "10000")


def test_texts_are_in_the_learners_locale_and_other_braces_stay():
    edition = redraw(VARIED, '{"n":2000,"#":"00000000"}', "fr")
    assert edition.prompt == "2\u202f000 bytes, {{x}}, 4\u202f000, \\begin{array}"


@pytest.mark.parametrize(
    "variant", ["", "x", "[]", '{"n":7,"#":"00000000"}', '{"n":1000}', '{"#":"00000000"}', '{"n":true,"#":"00000000"}']
)
def test_a_forged_variant_is_refused(variant):
    with pytest.raises(VariantError):
        redraw(VARIED, variant)


def test_the_order_is_the_learners_own_and_what_stays_last_stays():
    question = several(2, 5, stays_last=True)
    orders = {draw(question, f"learner{n}").shown for n in range(20)}
    assert len(orders) > 5 and all(order[-1] == "e" for order in orders)
    # SHA-256 is the same everywhere, so this order is too: sorted by the digest of the seed and the id.
    assert draw(question, "ann", 0).shown == draw(question, "ann", 3).shown
    assert all(draw(ORDER, f"l{n}").shown != ("read", "update", "copy", "write") for n in range(50))


def test_the_public_form_has_nothing_of_the_key():
    for question in (ORDER, MATCH, TEXT, several(2, 4), make("number", value=31337, **NUMBER)):
        text = json.dumps(question.public())
        assert not any(word in text for word in ("correct", "why", "gib-for-gb", "31337", "explanation", "accepted"))


def test_every_word_of_a_verdict_goes_through_gettext():
    with language("xx"):
        for question in (ORDER, MATCH, TEXT, several(2, 4), make("number", value=3, **NUMBER)):
            assert judge(question, "~~").message.startswith("⟦")
