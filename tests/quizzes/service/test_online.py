"""The graded quiz in a notebook, against the real service: which answers, is slow, is killed, comes back with another bank."""

from __future__ import annotations

import json
import os
import signal
import sqlite3

import pytest
import yaml

from quizzes.nbgrader.judged import Trust, judged
from quizzes.online import quiz as online
from quizzes.online import sending
from quizzes.online.quiz import OnlineQuiz
from quizzes.online.sheet import MIME
from quizzes.progress import Progress
from quizzes.question import Bank, version
from quizzes.receipts import check, tally
from tests.quizzes.service.running import PATIENCE, Running, prepare
from tests.quizzes.service.small import BANK, DID

POINTS = {"g01-secret-c": 2.0, "g01-many": 1.0, "g01-bytes": 1.0, "g01-pairs": 1.0}
VERSIONS = {question.id: version(question) for question in Bank.model_validate(yaml.safe_load(BANK)).questions}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A service that nobody kills, in a folder with a blank and an accent."""
    folder = tmp_path_factory.mktemp("service") / "à juger"
    folder.mkdir()
    tokens = prepare(folder, [f"learner{number}" for number in range(20)])
    with Running(folder) as service:
        service.people = iter(tokens.items())
        yield service


@pytest.fixture(autouse=True)
def kernel(monkeypatch):
    """Without any quiz, and with short pauses; how long a cell waits decides nothing here."""
    monkeypatch.delenv("OFFLOAD_QUIZ_URL", raising=False)
    monkeypatch.setattr(sending, "PAUSES", (0.05,))
    monkeypatch.setattr(online, "SECONDS", PATIENCE)
    restart(monkeypatch)
    yield
    restart(monkeypatch)


@pytest.fixture
def learner(running, monkeypatch):
    """Somebody whom the service has not met yet; the token is in the environment."""
    name, token = next(running.people)
    monkeypatch.setenv("OFFLOAD_QUIZ_TOKEN", token)
    return name


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of a service of the test's own, and Ada's token in the environment."""
    tokens = prepare(tmp_path, ["ada"])
    monkeypatch.setenv("OFFLOAD_QUIZ_TOKEN", tokens["ada"])
    return tmp_path


@pytest.fixture
def service(place):
    with Running(place) as own:
        yield own


def restart(monkeypatch):
    """As a kernel that is restarted: nothing is held in memory."""
    for quiz in online._open.values():
        quiz._sender.end()
    monkeypatch.setattr(online, "_open", {})


def opened(service, **more):
    quiz = OnlineQuiz("01", service=service.url, **more)
    assert quiz._desk.wait(PATIENCE)
    return quiz


def save(monkeypatch, quiz, path):
    """What a front end would save, and the kernel of that notebook started anew."""
    data = {MIME: json.loads(json.dumps(quiz._desk.sheet.to_json()))}
    cell = {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": data}]}
    path.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    restart(monkeypatch)
    monkeypatch.setattr(online, "notebook_path", lambda: path)


def recorded(place):
    with sqlite3.connect(place / "answers.db") as connection:
        return connection.execute("select question, attempt, count(*) from answers group by run, question, attempt").fetchall()


def test_answers_in_plain_cells(running, learner, capsys):
    quiz = opened(running)
    assert "q3. Bytes of" in str(quiz) and "CANARY" not in str(quiz) and "g01" not in str(quiz)
    quiz.answers["q1"] = "a"
    assert "✘ Not yet" in (said := capsys.readouterr().out) and "One attempt is left." in said and "Read again" in said
    quiz.answers["q3"] = "1,2,3"
    assert "? Not counted: no attempt used" in capsys.readouterr().out and quiz.named("q3").attempt == 1
    first = quiz.named("q3").prompt
    quiz.answers["q3"] = "1 GB"
    assert quiz.named("q3").attempt == 2 and quiz.named("q3").prompt != first
    assert "The numbers are new: this is attempt 2." in capsys.readouterr().out
    assert quiz.answers["q3"] is None, "an answer to other numbers says nothing of these"
    quiz.answers["q1"] = "c"
    assert "CANARY-C" in capsys.readouterr().out and quiz.named("q1").settled
    quiz.answers["q1"] = "a"
    assert "settled" in capsys.readouterr().out
    for nothing in ("", [], set(), object(), True, None, {"a": {1}}, "x" * 9000):
        quiz.answers["q2"] = nothing
        assert "Nothing was sent" in capsys.readouterr().out
    quiz.answers["q9"] = "a"
    assert "There is no question 'q9'" in capsys.readouterr().out
    assert quiz.score == (2.0, 5.0) and len(quiz.receipts()) == 3
    found = tally(quiz.receipts(), {DID}, learner, POINTS, attempts=2)
    assert not found.refused and {name: claims.score for name, claims in found.best.items()} == {
        "g01-secret-c": 2,
        "g01-bytes": 0,
    }


def test_a_click_does_not_wait_and_a_kill_in_the_midst_loses_nothing(service, place):
    quiz = opened(service)
    os.kill(service.process.pid, signal.SIGSTOP)  # it takes the connection, and does not answer
    assert quiz.answer("q1", "a") == ""
    assert "Sending" in str(quiz._desk.told(quiz.named("q1")))
    held = next(iter(Progress().read()["judged"].values()))
    assert [entry["answer"] for entry in held["unsent"]] == ["a"], "written down before it is sent"
    service.kill()
    assert quiz._desk.wait(PATIENCE) and quiz._desk.trouble
    assert "Not sent yet, kept here" in str(quiz)
    assert quiz.answer("q2", ["a", "c"]) == ""
    with Running(place, service.port) as again:
        assert quiz._desk.wait(PATIENCE, "q1")
        quiz.send(PATIENCE)
        assert again.url == service.url and not quiz._desk.sheet.unsent
        assert recorded(place) == [("g01-many", 1, 1), ("g01-secret-c", 1, 1)]
        assert quiz.score == (1.0, 5.0)


def test_a_reply_that_is_lost_is_found_again_after_the_kill(service, place, monkeypatch):
    """The service recorded the answer, and died before its reply was heard."""
    quiz = opened(service)
    send = sending.Client.send
    lost = []

    def deaf(client, lesson, content):
        reply = send(client, lesson, content)
        if not lost:
            lost.append(reply)
            service.kill()
            raise sending.Away("The line is cut.")
        return reply

    monkeypatch.setattr(sending.Client, "send", deaf)
    quiz.answer("q1", "a")
    quiz._desk.wait(PATIENCE, "q1")
    assert lost and quiz._desk.sheet.replies == {}
    assert "may have reached" in quiz.answer("q1", "c"), "what may be recorded is not replaced"
    with Running(place, service.port):
        quiz.send(PATIENCE)
        assert quiz.receipts() == [lost[0]["receipt"]] and recorded(place) == [("g01-secret-c", 1, 1)]


@pytest.mark.parametrize("kept_in", ["notebook", "progress"])
def test_an_unsent_answer_survives_save_and_reopen(service, place, monkeypatch, tmp_path, kept_in):
    quiz = opened(service)
    quiz.answers["q2"] = "a"
    service.kill()
    quiz.answers["q1"] = "b"
    quiz.answers["q1"] = "c"  # not sent yet, so it may be changed
    quiz._desk.draft("q3", "half a thou")
    save(monkeypatch, quiz, tmp_path / "lesson.ipynb")
    if kept_in == "notebook":
        Progress().path.unlink()
    if kept_in == "progress":
        monkeypatch.setattr(online, "notebook_path", lambda: None)
    again = OnlineQuiz("01", service=service.url)  # the service is still away
    assert again._desk.wait(PATIENCE) and again._desk.trouble
    assert len(again.receipts()) == 1 and [e["answer"] for e in again._desk.sheet.unsent.values()] == ["c"]
    if kept_in != "progress":  # that has no texts of questions, and no drafts
        assert "Not sent yet" in str(again) and again.answers["q3"] == "half a thou" and again.answers["q1"] == "c"
    with Running(place, service.port):
        again.send(PATIENCE)
        assert again.score[0] == 2.5 and len(again.receipts()) == 2
        assert recorded(place) == [("g01-many", 1, 1), ("g01-secret-c", 1, 1)]


def test_what_is_handed_in_is_what_the_grader_counts(running, learner, monkeypatch, tmp_path):
    """Both ways: the file beside the notebook, and the notebook alone, whose record has the same receipts."""
    quiz = opened(running)
    for name, answer in {"q1": "c", "q2": "a", "q4": {"u": "1", "v": "2"}}.items():
        quiz.answers[name] = answer
    assert "holds 3 receipts" in quiz.hand_in(tmp_path)
    save(monkeypatch, quiz, tmp_path / "lesson.ipynb")
    for notebook in (None, tmp_path / "lesson.ipynb"):
        found = judged(tmp_path, notebook, Trust({DID: None}), learner, POINTS, VERSIONS)
        assert {name: claims.score for name, claims in found.best.items()} == {
            "g01-secret-c": 2,
            "g01-many": 0.5,
            "g01-pairs": 1,
        }
        assert found.notes == ()
        (tmp_path / "receipts.json").unlink(missing_ok=True)
        if notebook is None:
            assert judged(tmp_path, None, Trust({DID: None}), learner, POINTS, VERSIONS).best == {}


def test_an_edited_record_is_said_and_the_services_counts(running, learner, monkeypatch, tmp_path):
    quiz = opened(running)
    quiz.answers["q1"] = "a"
    path = tmp_path / "lesson.ipynb"
    save(monkeypatch, quiz, path)
    Progress().path.unlink()
    path.write_text(path.read_text().replace('"score": 0.0', '"score": 2.0'))
    again = opened(running)
    assert "does not count, because it was edited" in str(again)
    assert again.score == (0.0, 5.0) and len(again.receipts()) == 1


def test_the_notebook_of_another_learner(running, learner, monkeypatch, tmp_path):
    quiz = opened(running)
    quiz.answers["q1"] = "c"
    receipts = quiz.receipts()
    save(monkeypatch, quiz, tmp_path / "lesson.ipynb")
    name, token = next(running.people)
    monkeypatch.setenv("OFFLOAD_QUIZ_TOKEN", token)
    bob = opened(running)
    assert f"holds answers of {learner}" in str(bob) and bob.score == (0.0, 5.0) and bob.receipts() == []
    bob.answers["q1"] = "a"
    assert {check(receipt, {DID}).learner for receipt in bob.receipts()} == {name}
    (other,) = bob._desk.sheet.to_json()["others"]
    assert [reply["receipt"] for reply in other["replies"]] == receipts, "nothing is thrown away"


def test_a_question_that_changed_meanwhile_is_not_judged(service, place, capsys):
    quiz = opened(service)
    bank = place / "keys" / "01_small.yaml"
    for text in ("Which one?", "Which of the three?"):
        service.kill()
        if text == "Which of the three?":
            quiz.answers["q1"] = "c"  # given while the service is away
        bank.write_text(BANK.replace("Which?", text), encoding="utf-8")
        with Running(place, service.port):
            if text == "Which one?":
                quiz.answers["q1"] = "c"  # given to the text of before; the service itself finds that out
            else:
                quiz.send(PATIENCE)
            said = str(quiz)
            assert "has changed since you" in said and text in said and quiz.named("q1").attempt == 1
    assert recorded(place) == []
    assert quiz.answers["q1"] is None, "the answer to the old text is not put into the new one"
    assert [entry["answer"] for entry in quiz._desk.sheet.refused.values()] == ["c", "c"], "and is kept"


def test_a_token_that_is_wrong_keeps_the_answer_and_is_never_shown(running, learner, monkeypatch, capsys):
    quiz = opened(running)
    secret = "a-secret-that-nobody-should-see"
    for wrong in (secret, f"{secret}\n{secret}", f"{secret} é", ""):
        monkeypatch.setenv("OFFLOAD_QUIZ_TOKEN", wrong)
        quiz._desk.hurry()
        quiz.answers["q1"] = "c"
        said = str(quiz) + capsys.readouterr().out
        assert "Not sent yet, kept here" in said and "quiz.log_in()" in said
    monkeypatch.setattr("getpass.getpass", lambda prompt: print(prompt) or f"token-of-{learner}-long-enough")
    assert "Receipts kept in this notebook: 1" in quiz.log_in()
    quiz._desk.wait(PATIENCE)
    kept = json.dumps(quiz._desk.sheet.to_json()) + Progress().path.read_text() + capsys.readouterr().out
    for told in (kept, str(quiz), repr(quiz._desk.access), repr(quiz._desk.access.client()), repr(vars(quiz))):
        assert secret not in told and "token-of-" not in told


def test_two_notebooks_at_once(running, learner, monkeypatch):
    one = opened(running)
    monkeypatch.setattr(online, "_open", {})
    two = opened(running)
    assert one is not two
    one.answers["q1"] = "a"
    two.answers["q1"] = "b"  # to the attempt that is used
    assert "Another answer to this question is recorded" in str(two) and two.named("q1").attempt == 2
    two.answers["q1"] = "c"
    one.answers["q1"] = "c"
    assert "answered right already" in str(one)
    assert one.receipts() == two.receipts() and len(one.receipts()) == 2
    (held,) = Progress().read()["judged"].values()
    assert len(held["replies"]) == 2 and held["unsent"] == []
    one._sender.end()


def test_the_progress_file_cannot_be_written(running, learner, monkeypatch, tmp_path):
    monkeypatch.setenv("OFFLOAD_LAB_PROGRESS", str(tmp_path / "a file" / "progress.json"))
    (tmp_path / "a file").write_text("")
    quiz = opened(running)
    quiz.answers["q1"] = "c"
    assert "was not written" in str(quiz) and quiz.score[0] == 2.0
