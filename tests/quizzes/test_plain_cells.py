"""The quiz as plain cells: every kind answered at once, and nothing that is typed loses an answer."""

import sys
import types

import pytest

from quizzes import Quiz, front_ends, quiz
from quizzes.grading import judge
from quizzes.names import find
from quizzes.question import every, practice
from quizzes.variants import draw

ODD = [None, True, 3, 3.5, float("nan"), b"a", object(), [], [[]], ["zz", 3], {}, {1: 2}, {"a": {}}, "", " ", "zz",
       "\u202e", "\ud800", "a" * 20_000, ("a", None), range(3), lambda: 0]  # fmt: skip
BANKS = [bank for path, bank in every().items() if path.parent.name == "bank"]
KINDS = {question.kind: (bank.lesson, question.name) for bank in BANKS for question in bank.questions}


def right(question):
    if question.kind == "several":
        return [choice.id for choice in question.choices if choice.correct]
    if question.kind in ("one", "plot"):
        return next(choice.id for choice in question.choices if choice.correct)
    if question.kind == "order":
        return [step.id for step in question.steps]
    if question.kind == "match":
        return {pair.id: pair.option for pair in question.pairs}
    if question.kind == "text":
        return question.accepted[0]
    return NUMBERS.get(question.unit, "{}").format(float(question.right[0].value.number()))


NUMBERS = {"bytes": "{} B", "seconds": "{} s", "bytes_per_second": "{} B/s", "percent": "{} %"}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(quiz, "_open", {})
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


def test_there_are_all_seven_kinds():
    assert set(KINDS) == {"one", "several", "number", "text", "order", "match", "plot"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_answered_at_once_and_odd_values_cost_nothing(kind, capsys):
    lesson, name = KINDS[kind]
    practice = Quiz(lesson)
    question = practice.bank[name]
    answer = right(question)
    practice.answers[name] = answer
    assert f"{name}: ✔ Right.\n" in capsys.readouterr().out
    held = dict(practice.record.answers[question.id])
    for odd in ODD:
        verdict = judge(question, odd)
        if verdict.understood:
            assert kind in ("number", "text"), (odd, verdict)  # words and bare numbers are answers there
            continue
        practice.answers[name] = odd
        said = capsys.readouterr().out
        assert "Not counted: no attempt used" in said and len(said.strip()) > 40, (odd, said)
        assert practice.record.answers[question.id] == held
    assert practice.answers[name] == held["answer"]


def test_a_name_that_is_none_says_what_was_meant_and_changes_nothing(capsys):
    answers = Quiz("01").answers
    answers["q33"] = "b"
    assert "There is no question 'q33'" in (said := capsys.readouterr().out) and "Did you mean q3?" in said
    for odd in (None, 3.5, "", ["q1"], b"q1", "../../etc/passwd", 99):
        answers[odd] = "b"
        assert "There is no question" in capsys.readouterr().out
    assert dict(answers) == {} and not Quiz("01").record.answers


@pytest.mark.parametrize("typed", ["q3", "Q3", " q3 ", "ｑ３", "q３", 3, "l01-sixteen"])
def test_a_name_is_taken_as_people_type_it(typed):
    bank = practice("01")
    wanted = next((question for question in bank.questions if question.id == typed), bank["q3"])
    assert find(bank, typed) is wanted


@pytest.mark.parametrize("bank", BANKS, ids=lambda bank: bank.lesson)
def test_partial_credit_is_stated_where_an_answer_can_be_partly_right(bank):
    practice = Quiz(bank.lesson)
    for question in practice.bank.questions:
        stated = quiz.rule(question) in practice._asked(question) and quiz.rule(question)
        assert bool(stated) == (question.kind in ("several", "order", "match") or any(c.credit for c in question.choices))


def test_hints_are_paid_once_and_said(capsys):
    bank = next(bank for bank in BANKS for question in bank.questions if question.hints)
    practice = Quiz(bank.lesson)
    question = next(question for question in practice.bank.questions if question.hints)
    practice.hint(question.name)
    practice.answers[question.name] = right(draw(question, "x") if question.variants and not question.variant else question)
    said = capsys.readouterr().out
    paid = 1 - question.hint_cost
    assert f"✔ Right, {paid:.0%} of the points after 1 hint" in said
    assert practice.record.answers[question.id]["share"] == paid and practice.score[0] == pytest.approx(paid * question.points)
    assert practice.record.answers[question.id]["earned"] == 1.0, "calibration looks at what was known, not at what was paid"


def test_colab_says_where_answers_are_kept_and_vs_code_finds_its_notebook(tmp_path, monkeypatch, capsys):
    shell = types.SimpleNamespace(kernel=object(), user_ns={})
    monkeypatch.setattr(front_ends, "shell", lambda: shell)
    monkeypatch.setattr("quizzes.answers.shell", lambda: shell)
    path = tmp_path / "progress.json"
    assert front_ends.front_end() == "kernel" and str(path) in front_ends.keeping(path)
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert front_ends.front_end() == "colab" and "mount Drive" in front_ends.keeping(path)
    monkeypatch.delitem(sys.modules, "google.colab")
    shell.user_ns["__vsc_ipynb_file__"] = str(tmp_path / "n.ipynb")
    (tmp_path / "n.ipynb").write_text("{}")
    assert front_ends.front_end() == "vscode" and front_ends.keeping(path) == ""
    monkeypatch.setattr(front_ends, "shell", lambda: None)
    assert front_ends.keeping(path) == ""
