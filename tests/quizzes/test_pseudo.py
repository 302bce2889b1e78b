"""Everything that is shown is translated: with a catalogue in which no plain letter is left, none may be seen.

What may stay in plain letters is allowed by name, with the reason beside it.
"""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quizzes import quiz as quizzes_quiz
from quizzes.languages import forget
from quizzes.question import BANK, every
from quizzes.quiz import Quiz
from quizzes.say import language

pseudo = pytest.importorskip("tests.pseudo", reason="Babel comes with the extra test")
ROOT = Path(__file__).parents[2]
LESSONS = [bank.lesson for bank in every(BANK).values()]
# typer and click say these themselves, in English whatever the language is; they know no catalogue of ours.
SAID_BY_TYPER = (
    "Usage python -m quizzes.cli quizzes cli OPTIONS COMMAND ARGS Options Commands Arguments help Show this message and exit "
    "default required env var TEXT FILE DIRECTORY PATH INTEGER FLOAT RANGE min max bool text path integer float Error "
    "Missing Invalid value for option argument No such command Try Aborted str int"
)
TYPER = set(SAID_BY_TYPER.split())


@pytest.fixture(autouse=True)
def accented(monkeypatch, tmp_path):
    monkeypatch.setenv("OFFLOAD_LAB_LOCALES", str(pseudo.make(tmp_path / "locale")))
    monkeypatch.setattr(quizzes_quiz, "_open", {})
    forget()
    with language(pseudo.LANGUAGE):
        yield


def ids(quiz):
    """Names and ids, by which questions and answers are typed: the same in every language."""
    parts = [part for q in quiz.bank.questions for part in (q, *q.choices, *q.steps, *q.pairs)]
    whole = {name for part in parts for name in (part.id, getattr(part, "name", ""))}
    return whole | {word for name in whole for word in re.split(r"[^A-Za-z]", name)}


def answers(question):
    """One that is not understood, a wrong one, and the right one."""
    yield "~~~"
    yield from (choice.id for choice in question.choices)
    if question.kind == "several":
        yield [choice.id for choice in question.choices if choice.correct]
    if question.kind == "number":
        yield from ("-7", str(float(question.right[0].value.number())), "12 parsecs")
    if question.kind == "text":
        yield from ("~ no word of the bank", question.accepted[0], *(word.text for word in question.wrong))
    if question.kind == "order":
        right = [step.id for step in question.steps]
        yield from (right, right[::-1])
    if question.kind == "match":
        yield {pair.id: pair.option for pair in question.pairs}
        yield {pair.id: pair.option for pair in question.pairs[:1]}


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_quiz_as_text(lesson, capsys):
    quiz = Quiz(lesson, locale="en")
    mine = ids(quiz) | {"parsecs"}
    assert pseudo.plain(str(quiz), mine) == []
    for question in quiz.bank.questions:
        quiz.sure(question.name, 60)
        for answer in answers(question):
            quiz.answers[question.name] = answer
            assert pseudo.plain(capsys.readouterr().out, mine) == [], (question.name, answer)
        for _hint in question.hints:
            assert pseudo.plain(quiz.hint(question.name), mine) == []
    said = [quiz.hint(quiz.bank.questions[0].name), quiz.again(quiz.bank.questions[0].name), str(quiz.calibration())]
    said += [quiz.sure("q1", 300), quiz.choose("q1", 1), quiz.review(datetime.now(UTC) + timedelta(days=400)), str(quiz)]
    quiz.answers["nothing of that name"] = 1
    said.append(capsys.readouterr().out)
    assert [pseudo.plain(text, mine | {"nothing", "of", "that", "name"}) for text in said] == [[]] * len(said)


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_widgets(lesson):
    import ipywidgets

    from quizzes.widgets import Board

    quiz = Quiz(lesson, locale="en")
    board, mine = Board(quiz), ids(quiz)
    for card in board.cards.values():
        card.button.click()
    waiting, told = [board.box], []
    while waiting:
        widget = waiting.pop()
        waiting += getattr(widget, "children", ())
        for name in ("description", "tooltip", "placeholder"):
            told.append(str(getattr(widget, name, "") or ""))
        if isinstance(widget, ipywidgets.HTML):
            told.append(pseudo.seen(widget.value))
        if hasattr(widget, "options"):
            told += [str(option[0] if isinstance(option, tuple) else option) for option in widget.options]
    assert len(told) > 50
    assert [(text, left) for text in told if (left := pseudo.plain(text, mine))] == []


def test_the_answers_that_are_kept_in_a_notebook():
    from quizzes.answers import Record, as_html

    assert pseudo.plain(pseudo.seen(as_html(Record("01"), []))) == []
    assert pseudo.plain(pseudo.seen(as_html(Record("01"), [("q1", "⟦⟧", "a", "⟦⟧")]))) == []


def test_the_exercises_and_their_feedback(tmp_path):
    from quizzes.exercises import grade, notebook
    from quizzes.exercises.compare import difference
    from quizzes.exercises.exercise import exercises
    from quizzes.exercises.sandbox import LEVELS, Outcome, Reply

    held = exercises()
    built = notebook.build(held)
    assert [pseudo.plain(re.sub(r"```.*?```", "", c.source, flags=re.S)) for c in built.cells if c.cell_type == "markdown"] == [
        [] for _ in range(len(held) + 1)
    ]
    whole = held[0].model_copy(update={"hidden": []})
    mark = grade.mark(whole, Outcome("none", [Reply(7.5), Reply("x")], LEVELS["none"]))
    # The learner's own values, and the ids of exercises and walls (which `isolation` translates where it names them).
    page = grade.feedback(grade.Result("ada", 0.0, 2.0, [], [mark]))
    walls = set(re.findall(r"[A-Za-z]+", " ".join(LEVELS.values()))) | {"ada", held[0].id}
    assert pseudo.plain(pseudo.seen(page), walls) == []
    pairs = [(1, "x"), (1.0, 2.0), (float("nan"), 1.0), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 2}), (None, [1])]
    assert [pseudo.plain(difference(one, other)) for one, other in pairs] == [[]] * len(pairs)


def command(*arguments, **environment):
    here = os.environ | {"OFFLOAD_LAB_LANG": pseudo.LANGUAGE, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"} | environment
    done = subprocess.run(
        [sys.executable, "-m", "quizzes.cli", *map(str, arguments)],
        cwd=ROOT,
        env=here,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr


def test_the_help_of_every_command():
    from typer.main import get_command

    from quizzes.cli import app

    def paths(node, before):
        yield node, before
        for name, part in sorted(getattr(node, "commands", {}).items()):
            yield from paths(part, [*before, name])

    tree = list(paths(get_command(app), []))
    names = {word for _node, path in tree for name in path for word in [name, *name.split("-")]}
    # Arguments, by the names that usage lines give them.
    names |= {parameter.name for node, _path in tree for parameter in node.params if parameter.param_type_name == "argument"}
    assert len(tree) > 15
    for _node, path in tree:
        said = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}).stdout
        # Options and the values that they take by name are typed, so they are the same in every language.
        said = re.sub(r"--?[a-z][a-z-]*|\[(?:default|env var)[^\]]*\]|<[^>]*>|\[[a-z|-]+\]|\b[A-Z][A-Z|_]+\b", " ", said)
        assert pseudo.plain(said, TYPER | names | {"root", "pytest"}) == [], path


def test_what_commands_say(tmp_path):
    # The questions that count are in no catalogue of a learner's: what is quoted of them is as it stands in the file.
    said = re.sub(r"'[^']*'|\"[^\"]*\"|\b[\w-]+\.yaml|\bg\d\d-\d+", "", command("lint"))
    assert pseudo.plain(said, {pseudo.LANGUAGE}) == []

    def left(*arguments, allowed=(), **more):
        return pseudo.plain(command(*arguments, **more).replace(str(tmp_path), ""), {"progress", "json", *allowed})

    there = {"OFFLOAD_LAB_PROGRESS": str(tmp_path / "progress.json")}
    assert left("progress", "show", **there) == []
    assert left("progress", "export", tmp_path / "e.json", **there) == []
    assert left("exercises", "grade", "--course", tmp_path, allowed={"submitted/", "student", "exercises/"}) == []
    rows = [{"learner": f"l{n}", "question": "q1", "share": n % 2} for n in range(20)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert left("analyse", tmp_path / "rows.json") == []
    assert left("serve", allowed={"key"}) == []


# Python's own words for what is wrong with JSON; it has no catalogue.
JSONS = set("Unterminated string starting at Expecting value delimiter Extra data".split())  # noqa: SIM905


@pytest.fixture
def certificate():
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from tests.certificates.issuing_place import signed

    return signed(Ed25519PrivateKey.from_private_bytes(bytes(range(32))), 7, datetime(2026, 3, 1, tzinfo=UTC))


# What stands in the signed credential under names of its own: it stays as it was signed, and so do picture and PDF, which are
# drawn from it alone and compared with that drawing byte for byte.
SAID_IN_IT = "Ada One Where did the memory go Optimizer state offloading School key of points needed example org"
SIGNED = set(SAID_IN_IT.split())


def test_the_page_and_the_verdicts_of_a_certificate(certificate):
    from quizzes.certificates import credential, judge, page, verdicts, verify

    read = credential.read(certificate)
    now = datetime(2026, 4, 1, tzinfo=UTC)
    names = {word for value in (read.name, read.points, read.learner, read.id, read.identifier, read.issuer.id, read.validFrom)
             for word in re.findall(r"[A-Za-z][\w/-]*", value)} | SIGNED  # fmt: skip
    html = page.render(judge.Judgement("valid", "⟦⟧", read, "")).decode()
    assert pseudo.plain(pseudo.seen(html), names | {"LinkedIn"}) == []
    data = verify.file_bytes(certificate)
    for content, moment in ((data, now), (data[:-9], now), (data, now - timedelta(days=99)), (b"<svg/>", now), (b"[]", now)):
        said = verify.verify(content, issuer=None, now=moment).message
        assert pseudo.plain(said, names | {"JSON", "SVG", "T00", *JSONS}) == []
    said = judge.judge(data, now=now, issuer=None, published=None, test_keys=True)
    assert pseudo.plain(f"{said.heading} {said.meaning} {said.message}", names) == []
    assert [pseudo.plain(f"{verdicts.heading(name)} {verdicts.sentences(name)}") for name in verdicts.ORDER] == [[]] * 7


def test_what_was_signed_is_signed_in_english(certificate):
    """The same bytes whatever is spoken where it is issued: a picture drawn elsewhere has to be the same picture."""
    from quizzes.certificates import badge

    drawn = badge.render(certificate)
    with language("en"):
        assert badge.render(certificate) == drawn
    assert all(letter not in json.dumps(certificate, ensure_ascii=False) for letter in "⟦⟧å")
    assert Decimal("0.8") and "⟦" not in drawn.decode()
