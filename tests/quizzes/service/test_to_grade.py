"""From the service to the gradebook: what was judged online is what the class's grading finds, without a word typed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from quizzes.nbgrader.course import build_assignment, grade
from quizzes.nbgrader.judged import Trust
from quizzes.question import KEYS
from quizzes.receipts_file import append
from quizzes.service.app import create_app
from quizzes.service.client import Client, Refused
from quizzes.service.unsent import Unsent
from tests.quizzes.service.small import DID, Learner


def test_answers_judged_online_are_graded_by_their_receipts(settings, tmp_path):
    course = tmp_path / "a course"
    released = build_assignment(course, "01")
    folder = course / "submitted" / "ada" / "quiz-01"
    folder.mkdir(parents=True)
    (folder / released.name).write_bytes(released.read_bytes())
    with TestClient(create_app(replace(settings, keys=KEYS))) as service:
        ada = Learner(service)
        replies = [ada.send("q1", "a"), ada.send("q1", "c", attempt=2), ada.send("q2", "a, c, e")]
        append(folder / "receipts.txt", [reply.json()["receipt"] for reply in replies])
        assert [reply.json()["score"] for reply in replies] == [0, 1, 1]
        (result,) = grade(course, "01", trust=Trust({DID: None})).results
        assert result.score == 2 and result.notes == ["neither a receipt that counts nor an answer for q3"]
        # The same learner takes a hint to what is left; its cost is in the receipt, and the feedback says so.
        cost = ada.question("q3")["hint_offer"]["cost"]
        assert ada.hint("q3", cost=cost).json()["paid"] == cost == 0.25
        append(folder / "receipts.txt", [ada.send("q3", "48 GB").json()["receipt"]])
    (result,) = grade(course, "01", trust=Trust({DID: None})).results
    assert result.score == 2.75 and result.notes == []
    graded = (course / "autograded" / "ada" / "quiz-01" / released.name).read_text(encoding="utf-8")
    assert "0.75 of 1 points. 1 hint was taken, and its cost is in the points." in graded


def test_a_client_writes_each_receipt_once_and_fetches_those_it_lost(tmp_path, monkeypatch):
    held = ["olr1.A.B", "olr1.C.D"]
    client = Client("http://service", "token", Unsent(tmp_path / "unsent.json"), receipts=tmp_path / "receipts.txt")
    monkeypatch.setattr(client, "_ask", lambda method, *_more: {"receipt": held[0], "answers": [{"receipt": r} for r in held]})
    (tmp_path / "receipts.txt").write_text("of an editor without a last line end")
    assert client.answer("01", "q1", 1, "c") == client.answer("01", "q1", 1, "c")
    assert (tmp_path / "receipts.txt").read_text().split("\n")[1:] == [held[0], ""]
    assert client.collect("01") == 1 and client.collect("01") == 0
    assert (tmp_path / "receipts.txt").read_text().split()[-2:] == held
    with pytest.raises(Refused, match="no file"):
        replace(client, receipts=None).collect("01")


def test_a_receipt_that_cannot_be_written_is_said_and_the_verdict_shown(tmp_path, monkeypatch):
    client = Client("http://service", "token", Unsent(tmp_path / "unsent.json"), receipts=tmp_path / "missing" / "receipts.txt")
    monkeypatch.setattr(client, "_ask", lambda *_all: {"receipt": "olr1.A.B", "lesson": "01", "message": "Right."})
    reply = client.answer("01", "q1", 1, "c")
    assert reply["message"] == "Right." and "service.collect('01')" in reply["receipt_note"]
