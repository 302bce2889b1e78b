"""Questions, numbers and verdicts."""

import shutil
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload_lab.state_bytes import training_bytes
from quizzes import question as questions
from quizzes.grading import judge
from quizzes.numbers import Ambiguous, NotANumber, parse_bytes

PRACTICE, GRADED = questions.practice("01"), questions.graded("01")
EVERY = [*PRACTICE.questions, *GRADED.questions]


def right(question):
    """An answer that the key says is right, as a learner writes it."""
    if question.kind == "number":
        return f"{question.value.number() / 1e9} GB"
    return ", ".join(choice.id for choice in question.choices if choice.correct)


@pytest.mark.parametrize("question", EVERY, ids=lambda q: q.id)
def test_the_right_answer_earns_all_and_every_other_one_says_why(question):
    assert judge(question, right(question)).correct
    wrong = [choice.id for choice in question.choices if not choice.correct]
    explanations = set()
    for choice in wrong:
        verdict = judge(question, choice)
        assert verdict.share == 0 and verdict.misconceptions
        explanations.add(verdict.message)
    for trap in question.traps:
        verdict = judge(question, f"{trap.value.number()} bytes")
        assert verdict.share == 0 and verdict.misconceptions == (trap.misconception,)
        assert trap.explanation in verdict.message
    assert len(explanations) == len(wrong)


def test_three_kinds_each_and_ids_that_are_nobody_elses():
    for bank in (PRACTICE, GRADED):
        assert [q.kind for q in bank.questions] == ["one", "several", "number"]
    assert len({q.id for q in EVERY}) == 6


@pytest.mark.parametrize("bank", [PRACTICE, GRADED], ids=["practice", "graded"])
def test_numbers_are_those_of_the_arithmetic(bank):
    for question in bank.questions:
        for value in [question.value, *(trap.value for trap in question.traps)]:
            if value is None:
                continue
            state = training_bytes(value.parameters, value.dtype, "ram").ram
            kept = {name: nbytes for name, nbytes in state.items() if name not in ("weights", "gradients")}
            expected = {
                "weights": state["weights"],
                "moments": state["exp_avg"] + state["exp_avg_sq"],
                "state": sum(kept.values()),
                "training": training_bytes(value.parameters, value.dtype, "adamw").steady_bytes,
            }[value.source]
            assert value.number() == expected


def test_several_choices_earn_their_stated_share():
    question = PRACTICE["q2"]
    shares = {"a, b, c": 1, "a b": 2 / 3, "a": 1 / 3, "a, d": 0, "a, b, c, d": 2 / 3, "a, b, c, d, e": 0, "d, e": 0}
    for answer, share in shares.items():
        assert judge(question, answer).share == pytest.approx(share), answer


@pytest.mark.parametrize("answer", [None, "", "   ", "z", 7, 1.5, True, [], ["z"], {"a": 1}, [["a"]], "a z", object()])
def test_what_is_no_answer_costs_nothing(answer):
    for question in PRACTICE.questions[:2]:
        verdict = judge(question, answer)
        assert verdict.share == 0 and not verdict.understood and verdict.message


def test_two_answers_to_a_question_with_one():
    assert not judge(PRACTICE["q1"], "c, d").understood


@given(st.text(max_size=30))
def test_no_text_breaks_the_judge(text):
    for question in EVERY:
        verdict = judge(question, text)
        assert 0 <= verdict.share <= 1


@pytest.mark.parametrize(
    "text, nbytes",
    [
        ("30 GB", 30 * 10**9),
        ("30e9", 30 * 10**9),
        ("30000000000", 30 * 10**9),
        ("30,000,000,000 B", 30 * 10**9),
        ("30 000 000 000", 30 * 10**9),
        ("30\u202f000 MB", 30 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("1,5 GB", 15 * 10**8),
        ("1.234,5 kB", 1_234_500),
        ("1,234.5 kB", 1_234_500),
        ("\uff13\uff10 GB", 30 * 10**9),
        ("\u22121", -1),
        ("1/2 GB", 5 * 10**8),
        (".5 TB", 5 * 10**11),
        ("2 Go", 2 * 10**9),
        ("3 Mio", 3 * 2**20),
        ("16 bytes", 16),
        ("1'000 KiB", 1_024_000),
    ],
)
def test_numbers_as_people_type_them(text, nbytes):
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize("text", ["1,234", "-12,345 MB", "999,000 GB"])
def test_a_number_that_reads_in_two_ways_is_asked_back(text):
    with pytest.raises(Ambiguous, match="two ways"):
        parse_bytes(text, "fr")
    assert parse_bytes(text).denominator == 1


@pytest.mark.parametrize(
    "text", ["", "GB", "12 GQ", "12 Gb", "1.2.3 GB", "1/0 GB", "1..5", "twelve", "12 GB GB", "nan", "inf", "1,23,456"]
)
def test_what_is_no_number_is_refused(text):
    with pytest.raises(NotANumber):
        parse_bytes(text)


@given(st.integers(0, 10**15), st.sampled_from(["", "B", "kB", "MB", "GiB"]))
def test_whole_numbers_are_read_exactly(number, unit):
    factor = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GiB": 2**30}[unit]
    assert parse_bytes(f"{number} {unit}") == Fraction(number * factor)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("kind: number", "kind: essay", r"question l01-gigabytes, kind: Input should be"),
        ("correct: true,\n", "correct: false,\n", r"question l01-sixteen, .*one of them right"),
        (
            'misconception: weights-are-all,\n         explanation: "Two',
            'explanation: "Two',
            r"l01-sixteen, choices\.a\.misconception",
        ),
        ("misconception: one-moment", "misconception: unheard-of", r"question l01-sixteen: misconception 'unheard-of'"),
        ("dtype: bfloat16}\n    tolerance", "dtype: int3}\n    tolerance", r"l01-gigabytes, value: dtype"),
        ("name: q2", "name: q1", r"same name"),
        ("questions:", "questions: [", r"cannot be read"),
    ],
)
def test_a_broken_file_is_named_with_question_and_field(tmp_path, old, new, message):
    source = questions.BANK / "01_where_did_the_memory_go.yaml"
    target = tmp_path / source.name
    shutil.copy(source, target)
    text = target.read_text()
    assert old in text
    target.write_text(text.replace(old, new, 1))
    with pytest.raises(questions.BankError, match=rf"01_where.*{message}"):
        questions.load(target)


def test_a_lesson_without_questions_is_named():
    with pytest.raises(questions.BankError, match="lesson '77'"):
        questions.practice("77")
