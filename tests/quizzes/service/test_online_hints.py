"""Hints, how sure one is, and calibration of the graded quiz, in cells and widgets, against the service in this process."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from quizzes import calibration
from quizzes.online import quiz as online
from quizzes.online import sending
from quizzes.online.board import OnlineBoard
from quizzes.online.quiz import OnlineQuiz
from quizzes.online.sheet import MIME, from_json
from quizzes.receipts import check, tally
from quizzes.service import client as client_module
from quizzes.service.app import create_app
from quizzes.service.client import Client
from tests.quizzes.service.running import PATIENCE
from tests.quizzes.service.small import ADA, DID

URL = "http://127.0.0.1:9"


class Line:
    """To the service: `down` connects nobody, `lost` replies are not heard, nothing goes through while `open` is not set."""

    def __init__(self, app):
        self.app, self.down, self.lost, self.sent = app, False, 0, []
        self.open = threading.Event()
        self.open.set()
        self.change = lambda path, content: content

    def once(self, client, method, path, body):
        if self.down:
            raise client_module._NoConnection("Nobody is there")
        assert self.open.wait(PATIENCE)
        self.sent.append((path, body and json.loads(body)))
        headers = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}
        reply = self.app.request(method, path, content=body, headers=headers)
        if self.lost:
            self.lost -= 1
            raise OSError("The line was cut")
        return reply.status_code, 0.0, self.change(path, reply.json())


@pytest.fixture
def line(client, monkeypatch):
    made = Line(client)
    monkeypatch.setattr(Client, "_once", lambda client, method, path, body: made.once(client, method, path, body))
    monkeypatch.setenv("OFFLOAD_QUIZ_TOKEN", ADA)
    monkeypatch.delenv("OFFLOAD_QUIZ_URL", raising=False)
    monkeypatch.setattr(sending, "PAUSES", (0.05,))
    monkeypatch.setattr(online, "SECONDS", PATIENCE)
    restart(monkeypatch)
    yield made
    made.open.set()
    restart(monkeypatch)


def restart(monkeypatch):
    for quiz in online._open.values():
        quiz._sender.end()
        if quiz._sender._thread is not None:
            quiz._sender._thread.join(PATIENCE)
    monkeypatch.setattr(online, "_open", {})


@pytest.fixture
def quiz(line):
    return opened()


def opened():
    quiz = OnlineQuiz("01", service=URL)
    assert quiz._desk.wait(PATIENCE)
    return quiz


def reopened(monkeypatch, quiz, path):
    """The notebook saved as a front end would, and opened in a new kernel."""
    data = {MIME: json.loads(json.dumps(quiz._desk.sheet.to_json()))}
    cell = {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": data}]}
    path.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    restart(monkeypatch)
    monkeypatch.setattr(online, "notebook_path", lambda: path)
    return opened()


def right(quiz):
    return f"{8 * json.loads(quiz.named('q3').variant)['n']} GB"


def paid(line):
    """What the service has recorded, whatever the notebook says."""
    questions = line.app.get("/lessons/01", headers={"Authorization": f"Bearer {ADA}"}).json()["questions"]
    (offer,) = [question["hint_offer"] for question in questions if "hint_offer" in question]
    return offer["paid"]


def test_a_hint_in_plain_cells(quiz, line, capsys):
    before = str(quiz)
    assert "Hints: 2; each costs 25% of the points." in before and 'To take hint 1: quiz.hint("q3", 1)' in before
    assert "CANARY" not in before and paid(line) == 0
    said = quiz.hint("q3")
    assert "Hint 1: CANARY-H1" in said and "Taken: 1, for 25% of the points." in said and 'quiz.hint("q3", 2)' in said
    assert quiz.hint("q3") == said and quiz.hint("q3", 1) == said and paid(line) == 0.25, "a cell may run again"
    assert "Hint 1: CANARY-H1" in str(quiz)
    quiz.answers["q3"] = right(quiz)
    told = capsys.readouterr().out
    assert "✔ Right, 75% of the points after 1 hint." in told and "CANARY-3" in told and "Read again" not in told
    assert quiz.score == (0.75, 5.0) and quiz.named("q3").settled
    found = tally(quiz.receipts(), {DID}, "ada", {"g01-bytes": 1.0})
    assert found.score == 0.75 and not found.refused and found.best["g01-bytes"].hints == 1
    assert "settled" in quiz.hint("q3", 2) and "Hint 1" in quiz.hint("q3")


@pytest.mark.parametrize("number", [0, 3, -1, True, "1", 1.0, None])
def test_no_such_hint(quiz, line, number):
    assert "no such hint" in quiz.hint("q3", number) and quiz.hint("q1", number) == "There is no hint to q1."
    assert "next is number 1" in quiz.hint("q3", 2) and paid(line) == 0


def test_a_wrong_answer_keeps_the_hint_and_its_new_numbers(quiz, line):
    quiz.hint("q3")
    quiz.answers["q3"] = "1 GB"
    n = json.loads(quiz.named("q3").variant)["n"]
    assert f"Hint 1: CANARY-H1 bytes of one of the {n} billion" in str(quiz) and "0 of 1 points. 1 hint" in str(quiz)
    quiz.hint("q3", 2)
    quiz.answers["q3"] = right(quiz)
    assert quiz.score[0] == 0.5 and paid(line) == 0.5


def test_a_lost_reply_is_said_and_the_hint_is_there_for_nothing(quiz, line):
    line.lost = client_module.TRIES
    said = quiz.hint("q3")
    assert "No hint came. The service cannot be reached (The line was cut)." in said and paid(line) == 0.25
    assert "CANARY-H1" in quiz.hint("q3") and paid(line) == 0.25
    assert "No hint came" not in str(quiz)


def test_a_hint_of_a_service_that_is_away_is_not_taken_later(quiz, line):
    line.down = True
    assert "No hint came. The service cannot be reached" in quiz.hint("q3")
    quiz.answers["q3"] = right(quiz)
    assert "Not sent yet" in str(quiz) and "answer to this question is on its way" in quiz.hint("q3")
    line.down = False
    quiz.send(PATIENCE)
    assert quiz.score[0] == 1.0 and paid(line) == 0


def test_a_hint_and_an_answer_do_not_overtake_each_other(quiz, line):
    line.open.clear()
    assert quiz.ask_hint("q3", 1) == ""
    assert "hint to this question is on its way" in quiz.answer("q3", "1 GB")
    assert "paid for once" in quiz.ask_hint("q3", 1) and quiz.answer("q1", "a") == ""
    line.open.set()
    assert quiz._desk.wait(PATIENCE) and paid(line) == 0.25 and not quiz._desk.sheet.refused
    assert [path for path, _body in line.sent].count("/lessons/01/hints") == 1


def test_what_the_learner_was_not_told_is_not_taken(quiz, line, bank, settings):
    path = bank / "01_small.yaml"
    path.write_text(path.read_text().replace("hints: [", "hint_cost: 0.5, hints: ["))
    with TestClient(create_app(replace(settings))) as changed:
        line.app = changed
        said = quiz.hint("q3")
        assert "costs 50% of the points now" in said and "Nothing was taken" in said and paid(line) == 0
        quiz.send(PATIENCE)
        assert "each costs 50% of the points" in str(quiz) and "CANARY-H1" in quiz.hint("q3") and paid(line) == 0.5


def test_hints_and_confidence_survive_save_and_reopen(quiz, line, monkeypatch, tmp_path):
    quiz.hint("q3")
    quiz.sure("q1", 75)
    line.down = True
    again = reopened(monkeypatch, quiz, tmp_path / "lesson.ipynb")
    assert again._desk.trouble and "Hint 1: CANARY-H1" in str(again) and again._desk.sure_of("q1") == 75
    again.answers["q1"] = "c"
    last = reopened(monkeypatch, again, tmp_path / "lesson.ipynb")
    line.down = False
    last.send(PATIENCE)
    (reply,) = last._desk.sheet.of("q1")
    assert reply["confidence"] == 75 and "right" in last.calibration()


def test_how_sure_one_was_is_shown_as_the_practice_quiz_shows_it(quiz, line, monkeypatch, tmp_path):
    assert "No answer has a confidence yet" in quiz.calibration()
    said = [("q1", 90, "a"), ("q1", 30, "c"), ("q2", 60.5, "a"), ("q3", 100, right(quiz))]
    quiz.hint("q3")
    for name, percent, answer in said:
        assert f"Noted: {percent:g} % sure of {name}." in quiz.sure(name, percent)
        quiz.answers[name] = answer
    oracle = [{"confidence": c, "share": s} for c, s in ((90, 0.0), (30, 1.0), (60.5, 0.5), (100, 1.0))]
    shown = quiz.calibration()
    assert shown == calibration.table(oracle), "what was known counts, not what hints left of it"
    assert "<svg" in shown._repr_html_() and quiz.calibration(whole_course=True) == shown
    for wrong in (-1, 101, True, "90", None, float("nan")):
        assert "Not noted" in quiz.sure("q4", wrong)
    assert all(claims.learner == "ada" for claims in (check(one, {DID}) for one in quiz.receipts()))
    content = json.loads(json.dumps(quiz._desk.sheet.to_json()))
    for reply in content["replies"]:
        reply["confidence"], reply["earned"] = "sure", ["x"]
    held = from_json(content, notes := [])
    assert not notes and "No answer has" in online.calibration_plot.shown(online.sureness.entries([held]))
    again = reopened(monkeypatch, quiz, tmp_path / "lesson.ipynb")
    assert again.calibration() == shown


def test_what_the_service_says_stands_before_what_a_progress_file_holds(quiz, line, monkeypatch, tmp_path):
    quiz.sure("q1", 90)
    quiz.answers["q1"] = "c"
    assert quiz._desk.wait(PATIENCE)
    shown, sheet = quiz.calibration(), json.loads(json.dumps(quiz._desk.sheet.kept()))
    quiz._sender.end()
    quiz._sender._thread.join(PATIENCE)
    sheet["replies"][0]["confidence"] = "sure"
    quiz._desk.progress.judged(sheet["run"], lambda held: sheet)
    again = reopened(monkeypatch, quiz, tmp_path / "lesson.ipynb")
    assert "90" in shown and again.calibration() == shown


def test_a_record_that_forgets_its_hints_is_said(quiz, line, monkeypatch, tmp_path):
    quiz.hint("q3")
    quiz.answers["q3"] = right(quiz)
    content = json.loads(json.dumps(quiz._desk.sheet.to_json()))
    assert from_json(content, notes := []).receipts() == quiz.receipts() and not notes
    content["replies"][0]["hints"] = 0
    assert from_json(content, notes := []).receipts() == [] and "was edited" in notes[0]


def test_a_confidence_stays_with_the_next_answer_that_counts(quiz, line):
    quiz.sure("q3", 90)
    quiz.answers["q3"] = "1,2,3"
    assert "no attempt used" in str(quiz) and quiz._desk.sure_of("q3") == 90
    quiz.answers["q3"] = "1 GB"
    assert quiz._desk.sure_of("q3") is None
    quiz.answers["q3"] = right(quiz)
    assert [reply.get("confidence") for reply in quiz._desk.sheet.of("q3")] == [90, None]


def test_widgets(quiz, line):
    quiz._board = board = OnlineBoard(quiz)
    card, first = board.cards["q3"], board.cards["q3"].help.buttons[0]
    second = card.help.buttons[1]
    assert second.disabled and not first.disabled and card.sure.description == "How sure are you of q3?"
    line.open.clear()
    first.click()
    assert "on its way" in card.help.told.value and 'role="note"' in card.help.told.value
    first.click()
    line.open.set()
    assert quiz._desk.wait(PATIENCE)
    heard = []
    card.help.told.observe(lambda change: heard.append(change["new"]), "value")
    first.click()
    assert paid(line) == 0.25, "a double click is one hint"
    assert "CANARY-H1" in heard[-1], "pressed again it is read out again"
    assert "Hint 1: CANARY-H1" in card.help.told.value and 'role="alert"' in card.help.told.value
    assert "Taken: 1, for 25% of the points." in card.help.told.value
    assert first.description == "Hint 1 to q3" and not second.disabled
    assert second.description == "Hint 2 to q3 (costs 25%)"
    assert quiz.sure("q3", 75) and card.sure.value == 75
    card.sure.value = 90
    assert quiz._desk.sure_of("q3") == 90
    card.controls[0].value = "1 GB"
    card.button.click()
    assert quiz._desk.wait(PATIENCE) and card.sure.value == 0, "said of one answer"
    card.sure.value = 60
    card.sure.value = 0
    assert quiz._desk.sure_of("q3") is None
    card.controls[0].value = right(quiz)
    card.button.click()
    assert quiz._desk.wait(PATIENCE) and second.disabled and "75% of the points after 1 hint" in card.verdict.value
    assert [reply.get("confidence") for reply in quiz._desk.sheet.of("q3")] == [90, None]
    assert "Hint 1" in OnlineBoard(quiz).cards["q3"].help.told.value


def test_a_service_that_knows_neither(line):
    def older(path, content):
        for question in content.get("questions", ()):
            question.pop("confidence", None)
            question.pop("hint_offer", None)
        return content

    line.change = older
    quiz = opened()
    assert "does not ask" in quiz.sure("q1", 90) and "no hint to q3" in quiz.hint("q3") and "Hints:" not in str(quiz)
    quiz._desk.be_sure("q1", 90)  # of a notebook that met a newer one
    quiz.answers["q1"] = "a"
    assert all("confidence" not in (body or {}) for _path, body in line.sent) and len(quiz.receipts()) == 1
    assert OnlineBoard(quiz).cards["q1"].sure not in OnlineBoard(quiz).cards["q1"].box.children


@pytest.mark.parametrize("wrong", [{"text": 5}, {"text": None}, {"hint": 7}, {"paid": "x"}, {"paid": 7}, {"attempt": 2}, {}])
def test_a_hint_that_is_none_is_fetched_again(quiz, line, wrong):
    line.change = lambda path, content: (content | wrong if wrong else {}) if path.endswith("/hints") else content
    assert "Hint 1: CANARY-H1" in quiz.hint("q3")
    quiz.send(PATIENCE)
    assert paid(line) == 0.25 and quiz.named("q3").offer.paid == 0.25
