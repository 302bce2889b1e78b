"""Hints and confidence at the service: what it costs is told, it is recorded before it is sent, and paid for once."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from quizzes.grading import Verdict, paid
from quizzes.nbgrader.judged import Trust, judged
from quizzes.receipts import check, tally
from quizzes.service.app import Service, create_app
from quizzes.service.hints import Paid
from quizzes.service.store import Store
from tests.quizzes.service.running import PATIENCE, Running, ask, prepare
from tests.quizzes.service.small import BOB, DID, Learner

POINTS = {"g01-secret-c": 2.0, "g01-many": 1.0, "g01-bytes": 1.0, "g01-pairs": 1.0}


def right(learner):
    """The right answer to q3 with the numbers that are asked now."""
    (drawn,) = [question for question in learner.lesson().json()["questions"] if question["name"] == "q3"]
    return f"{8 * json.loads(drawn['variant'])['n']} GB"


def claims(reply):
    return check(reply.json()["receipt"], {DID})


def test_the_cost_is_told_before_and_the_hint_only_when_asked_for(ada, bob):
    before = ada.lesson()
    assert "CANARY" not in before.text
    assert ada.question("q3")["hint_offer"] == {"count": 2, "cost": 0.25, "texts": [], "paid": 0}
    assert all("hint_offer" not in question for question in before.json()["questions"] if question["name"] != "q3")
    given_ = ada.hint("q3").json()
    n = json.loads(ada.question("q3")["variant"])["n"]
    assert given_["text"] == f"CANARY-H1 bytes of one of the {n} billion"
    assert (given_["cost"], given_["paid"], given_["taken"], given_["count"]) == (0.25, 0.25, 1, 2)
    assert ada.question("q3")["hint_offer"] == {"count": 2, "cost": 0.25, "texts": [given_["text"]], "paid": 0.25}
    assert "CANARY" not in bob.lesson().text, "what one learner paid for is not shown to another"


def test_a_hint_is_in_the_signed_score_however_often_it_is_asked_for(ada, bob):
    assert bob.send("q3", right(bob)).json()["receipt"].startswith("olr1.")
    first = ada.hint("q3")
    assert [ada.hint("q3").content for _ in range(3)] == [first.content] * 3
    reply = ada.send("q3", right(ada))
    told = reply.json()
    assert (told["share"], told["earned"], told["hints"], told["score"]) == (0.75, 1.0, 1, 0.75)
    assert (claims(reply).score, claims(reply).hints) == (0.75, 1) and told["receipt"].startswith("olr2.")
    assert "0.75 of 1 points. 1 hint was taken" in told["message"] and "CANARY-3" in told["message"]
    assert told["settled"] and told["attempts_left"] == 0, "hints stay paid for: nothing can be added"
    assert ada.send("q3", right(ada), attempt=2).json()["error"] == "settled"
    assert ada.hint("q3", 2).json()["error"] == "settled" and ada.hint("q3").status_code == 200
    found = tally([told["receipt"]], {DID}, "ada", POINTS)
    assert found.score == 0.75 and not found.refused


def test_a_second_attempt_does_not_give_hints_back_and_the_first_keeps_its_score(ada):
    wrong = ada.send("q3", "1 GB")
    assert (claims(wrong).score, claims(wrong).hints) == (0, 0)
    assert ada.hint("q3", attempt=1).json()["error"] == "stale"
    texts = [ada.hint("q3", number, attempt=2).json()["text"] for number in (1, 2)]
    assert ada.question("q3")["hint_offer"]["texts"] == texts
    # Asked for once more it has the numbers of the attempt that is meant, and of none that is still to come.
    again = {attempt: ada.hint("q3", attempt=attempt).json() for attempt in (1, 2, 5)}
    assert [again[attempt]["attempt"] for attempt in (1, 2, 5)] == [1, 2, 2]
    assert again[5]["text"] == again[2]["text"] == texts[0] != again[1]["text"]
    reply = ada.send("q3", right(ada), attempt=2)
    assert (claims(reply).score, claims(reply).hints) == (0.5, 2)
    held = ada.lesson().json()["answers"]
    assert [one["score"] for one in held] == [0, 0.5]
    assert tally([one["receipt"] for one in held], {DID}, "ada", POINTS, attempts=2).score == 0.5


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"hint": 2}, 409, "hint-order"),
        ({"hint": 3}, 404, "no-hint"),
        ({"hint": 0}, 422, "no-answer"),
        ({"hint": 10**6}, 422, "no-answer"),
        ({"hint": True}, 422, "no-answer"),
        ({"cost": 0}, 409, "changed"),
        ({"cost": 0.2499}, 409, "changed"),
        ({"cost": "0.25"}, 422, "no-answer"),
        ({"cost": None}, 422, "no-answer"),
        ({"attempt": 2}, 409, "stale"),
        ({"question": "q1"}, 404, "no-hint"),
        ({"question": "q9"}, 404, "no-question"),
        ({"edition": "0123456789abcdef"}, 409, "changed"),
        ({"edition": 5}, 422, "no-answer"),
        ({"locale": ["en"]}, 422, "no-answer"),
        ({"nonce": "nonce-0001"}, 422, "no-answer"),
    ],
)
def test_what_is_refused_takes_nothing_and_tells_nothing(ada, change, status, code):
    reply = ada.hint(**{"question": "q3", **change})
    assert (reply.status_code, reply.json()["error"]) == (status, code)
    assert "CANARY" not in reply.text and reply.json()["message"].endswith(".")
    assert ada.question("q3")["hint_offer"]["paid"] == 0
    assert ada.client.post("/lessons/01/hints", json={}).status_code == 401


def test_the_edition_and_the_language_that_the_learner_sees(ada):
    seen = ada.question("q3", locale="fr")
    assert ada.hint("q3", edition=seen["edition"], locale="fr").status_code == 200
    assert ada.question("q3", locale="fr")["edition"] == seen["edition"], "a hint taken is no other question"


def test_hints_count_against_the_rate(settings):
    with TestClient(create_app(replace(settings, burst=2))) as client:
        assert [Learner(client).hint("q3").status_code for _ in range(3)] == [200, 200, 429]
        assert Learner(client).send("q3", "1 GB").status_code == 429 and Learner(client, BOB).hint("q3").status_code == 200


def test_a_hint_is_sent_after_it_is_on_the_disk_and_a_lost_reply_costs_nothing(settings, monkeypatch):
    """The first service records and falls silent; another over the same database has the hint, for nothing."""
    with monkeypatch.context() as silent:
        silent.setattr(Service, "_deliver", lambda service, outcomes: None)
        with TestClient(create_app(replace(settings, patience=0.3))) as client:
            lost = Learner(client).hint("q3")
            assert lost.status_code == 503 and "CANARY" not in lost.text
    with TestClient(create_app(settings)) as client:
        ada = Learner(client)
        assert ada.question("q3")["hint_offer"]["paid"] == 0.25
        assert ada.hint("q3").json()["paid"] == 0.25
        assert claims(ada.send("q3", right(ada))).score == 0.75


def test_a_hint_that_cannot_be_recorded_is_not_sent(settings):
    from sqlalchemy import event
    from sqlalchemy.exc import OperationalError

    app = create_app(settings)
    full = [True]

    def commit(_connection):
        if full:
            raise OperationalError("COMMIT", {}, Exception("database or disk is full"))

    event.listen(app.state.service.store.engine, "commit", commit)
    with TestClient(app) as client:
        ada = Learner(client)
        reply = ada.hint("q3")
        assert reply.status_code == 503 and "CANARY" not in reply.text
        full.clear()
        assert ada.question("q3")["hint_offer"]["paid"] == 0 and ada.hint("q3").json()["paid"] == 0.25


@pytest.mark.timeout(300)
def test_killed_while_hints_are_asked_for_each_costs_once(tmp_path, request):
    learners = [f"learner{number}" for number in range(4)]
    tokens = prepare(tmp_path, learners)
    service = Running(tmp_path)
    request.addfinalizer(lambda: service.__exit__())
    texts = {name: set() for name in learners}
    content = {"question": "q3", "attempt": 1, "cost": 0.25}

    def asking(name):
        for number in (1, 2):
            while len({text for found, text in texts[name] if found == number}) < 1:
                try:
                    status, body = ask(service.url, "POST", "/lessons/01/hints", tokens[name], content | {"hint": number})
                except OSError:
                    time.sleep(0.05)
                    continue
                if status not in (200, 503):
                    return  # the texts that are missing say so
                if status == 200:
                    texts[name].add((number, json.loads(body)["text"]))

    threads = [threading.Thread(target=asking, args=(name,), daemon=True) for name in learners]
    for thread in threads:
        thread.start()
    while not any(texts.values()) and any(thread.is_alive() for thread in threads):
        time.sleep(0.001)
    service.kill()  # in the midst of the others
    service = Running(tmp_path, service.port)
    for thread in threads:
        thread.join(PATIENCE)
    for name in learners:
        for number in (1, 2):  # once more for each
            ask(service.url, "POST", "/lessons/01/hints", tokens[name], content | {"hint": number})
        questions = json.loads(ask(service.url, "GET", "/lessons/01", tokens[name])[1])["questions"]
        (offer,) = [question["hint_offer"] for question in questions if "hint_offer" in question]
        assert offer["paid"] == 0.5 and {text for _number, text in texts[name]} == set(offer["texts"])
    service.stop()
    with closing(sqlite3.connect(tmp_path / "answers.db")) as connection:
        assert connection.execute("select count(*) from hints").fetchone() == (len(learners) * 2,)


def test_a_database_from_before_hints_keeps_its_answers(settings):
    with TestClient(create_app(settings)) as client:
        before = Learner(client).send("q1", "a").json()
    store = Store(settings.db_url)
    with store.writing() as connection:
        connection.exec_driver_sql("drop table hints")
        connection.exec_driver_sql("update about set value = '1' where name = 'version'")
    store.close()
    with TestClient(create_app(settings)) as client:
        ada = Learner(client)
        assert ada.lesson().json()["answers"] == [before] and ada.hint("q3").status_code == 200
        assert ada.lesson().json()["run"] == before["run"]


def test_a_hint_that_is_added_makes_no_receipt_of_before_worthless(settings, bank):
    path = bank / "01_small.yaml"
    text = path.read_text()
    with TestClient(create_app(settings)) as client:
        before = claims(Learner(client).send("q3", "1 GB"))
    path.write_text(text.replace("CANARY-H1", "CANARY-H9").replace("tolerance: 0.01", "tolerance: 0.01, hint_cost: 0.5"))
    with TestClient(create_app(settings)) as client:
        assert claims(Learner(client, BOB).send("q3", "1 GB")).bank == before.bank
    path.write_text(text.replace("8 * n", "9 * n"))
    with TestClient(create_app(replace(settings, db_url=settings.db_url + "2"))) as client:
        assert claims(Learner(client).send("q3", "1 GB")).bank != before.bank


def test_a_hint_that_left_the_bank_stays_paid_for(settings, bank):
    with TestClient(create_app(settings)) as client:
        Learner(client).hint("q3")
    path = bank / "01_small.yaml"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "CANARY-H1" not in line))
    with TestClient(create_app(settings)) as client:
        ada = Learner(client)
        assert claims(ada.send("q3", right(ada))).score == 0.75 and ada.hint("q3").status_code == 404


@given(st.lists(st.floats(0, 1), max_size=6), st.floats(0, 1))
def test_no_score_is_below_nothing(costs, share):
    bought = Paid(tuple(costs))
    verdict = paid(Verdict(share, ""), len(costs), bought.cost)
    assert 0 <= verdict.share <= share and verdict.correct == (share == 1.0)


def test_how_sure_somebody_was_is_kept_beside_the_receipt(ada, bob):
    plain = bob.send("q1", "a").json()
    reply = ada.send("q1", "a", confidence=62.5).json()
    assert set(reply) - set(plain) == {"confidence"} and reply["confidence"] == 62.5
    assert check(reply["receipt"], {DID}).score == check(plain["receipt"], {DID}).score and "62.5" not in reply["receipt"]
    assert [one.get("confidence") for one in ada.lesson().json()["answers"]] == [62.5]
    assert ada.question("q1")["confidence"] is True
    asked = ada.send("q3", "1,2,3", confidence=90)
    assert asked.json()["understood"] is False and len(ada.lesson().json()["answers"]) == 1


@pytest.mark.parametrize("wrong", [-1, 100.5, True, "90", None, [], 1e300])
def test_no_other_confidence_is_taken(ada, wrong):
    reply = ada.send("q1", "a", confidence=wrong)
    assert reply.status_code == 422 and "confidence" in reply.json()["message"]
    assert ada.lesson().json()["answers"] == []


def test_the_grader_finds_both_forms_of_receipts(ada, tmp_path):
    ada.hint("q3")
    receipts = [ada.send("q1", "c").json()["receipt"], ada.send("q3", right(ada)).json()["receipt"]]
    (tmp_path / "receipts.txt").write_text("\n".join(receipts))
    versions = {name: check(receipts[0], {DID}).bank for name in POINTS} | {"g01-bytes": check(receipts[1], {DID}).bank}
    found = judged(tmp_path, None, Trust({DID: None}), "ada", POINTS, versions)
    assert {name: (one.score, one.hints) for name, one in found.best.items()} == {
        "g01-secret-c": (2, 0),
        "g01-bytes": (0.75, 1),
    }
    assert found.notes == ()
