"""Answers: judged, recorded, counted once, and no more of the key told than was earned."""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from quizzes.canary import flags, private, search
from quizzes.question import BANK, KEYS, every
from quizzes.receipts import answer_hash, check, tally
from quizzes.service.app import create_app
from quizzes.service.limits import Limits
from tests.quizzes.service.small import DID, Learner


def bytes_of(question):
    """The right answer to q3 of small.py, from its text alone."""
    return f"{8 * int(question['prompt'].split()[2])} GB"


def test_a_right_answer_earns_its_points_and_a_receipt(ada):
    reply = ada.send("q1", "c", nonce="nonce-of-ada").json()
    assert (reply["share"], reply["score"], reply["max_score"], reply["settled"]) == (1.0, 2.0, 2.0, True)
    assert "CANARY-C" in reply["message"]
    claims = check(reply["receipt"], {DID})
    assert (claims.learner, claims.question, claims.score, claims.attempt) == ("ada", "g01-secret-c", 2.0, 1)
    assert claims.answer_hash == answer_hash("c") and claims.nonce == "nonce-of-ada"
    assert claims.run == reply["run"] == ada.lesson().json()["run"]


def test_receipts_add_up_to_the_grade_without_a_key(ada):
    first = [ada.send("q1", "a"), ada.send("q1", "c", attempt=2), ada.send("q2", "a"), ada.send("q2", "b", attempt=2)]
    receipts = [reply.json()["receipt"] for reply in first]
    held = tally(receipts, {DID}, "ada", {"g01-secret-c": 2.0, "g01-many": 1.0}, attempts=2)
    assert held.score == 2.5 and not held.refused


def test_questions_show_nothing_of_the_key(ada):
    shown = ada.lesson().text
    for word in ("correct", "CANARY", "secret", "explanation", "misconception", "g01", "value", "formula", "accepted"):
        assert word not in shown, word
    assert [question["name"] for question in ada.lesson().json()["questions"]] == ["q1", "q2", "q3", "q4"]


@pytest.mark.parametrize(("name", "wrong"), [("q1", "a"), ("q2", "a, b"), ("q3", "1 GB"), ("q4", {"u": "2", "v": "1"})])
def test_a_wrong_answer_never_tells_the_key(ada, name, wrong):
    first, last = ada.send(name, wrong).json(), ada.send(name, wrong, attempt=2).json()
    assert first["share"] < 1 and first["attempts_left"] == 1 and not first["settled"]
    assert "CANARY" not in first["message"]
    assert last["attempts_left"] == 0 and last["settled"]
    # Why the learner's own choices are wrong may be said now; why others are right, never.
    for secret in ("CANARY-C", "CANARY-2A", "CANARY-2C", "CANARY-3", "CANARY-4"):
        assert secret not in str(last), secret
    assert ("CANARY-A" in last["message"]) == (name == "q1")


def test_ideas_of_several_are_not_told_while_attempts_are_left(ada):
    assert ada.send("q1", "a").json()["misconceptions"][0]["id"] == "weights-are-all"
    assert ada.send("q2", "a, b").json()["misconceptions"] == []


def test_a_pair_is_not_named_by_its_own_id(ada):
    reply = ada.send("q4", {"u": "u", "v": "v"})
    assert reply.status_code == 200 and reply.json()["understood"] is False


def test_each_attempt_has_other_numbers_and_is_judged_by_them(ada, bob):
    first = ada.question("q3")
    ada.send("q3", "1 GB")
    second = ada.question("q3")
    assert (second["attempt"], first["attempt"]) == (2, 1) and second["prompt"] != first["prompt"]
    assert ada.send("q3", bytes_of(first), attempt=2).json()["share"] == 0.0
    assert bob.send("q3", bytes_of(bob.question("q3"))).json()["share"] == 1.0


def test_the_same_edition_is_shown_at_each_look(ada):
    assert ada.lesson().json()["questions"] == ada.lesson().json()["questions"]


def test_a_repeat_gets_the_same_bytes_and_counts_once(ada):
    first = ada.send("q1", "a", nonce="the-same-nonce")
    again = ada.send("q1", "a", nonce="the-same-nonce")
    assert again.content == first.content
    ada.send("q1", "b", attempt=2)
    assert ada.send("q1", "a", nonce="the-same-nonce").content == first.content
    assert len(ada.lesson().json()["answers"]) == 2


@pytest.mark.parametrize("other", [{"answer": "b"}, {"attempt": 2}, {"question": "q2"}, {"locale": "fr"}])
def test_a_nonce_stands_for_one_answer(ada, other):
    ada.send("q1", "a", nonce="the-same-nonce")
    reply = ada.send(**({"question": "q1", "answer": "a", "nonce": "the-same-nonce"} | other))
    assert (reply.status_code, reply.json()["error"]) == (409, "nonce-used")
    assert len(ada.lesson().json()["answers"]) == 1


def test_two_learners_may_choose_the_same_nonce(ada, bob):
    assert ada.send("q1", "a", nonce="the-same-nonce").json()["share"] == 0.0
    assert bob.send("q1", "c", nonce="the-same-nonce").json()["share"] == 1.0
    assert len(bob.lesson().json()["answers"]) == 1


def test_attempts_are_limited_and_an_old_edition_is_refused(ada):
    assert ada.send("q1", "a", attempt=2).json()["error"] == "stale"
    ada.send("q1", "a")
    assert ada.send("q1", "c").json()["error"] == "stale"
    ada.send("q1", "b", attempt=2)
    assert ada.send("q1", "c", attempt=3).json()["error"] == "no-attempts"
    assert ada.question("q1")["settled"] and ada.question("q1")["attempts_left"] == 0


def test_full_marks_settle_a_question(ada):
    ada.send("q1", "c")
    assert ada.send("q1", "a", attempt=2).json()["error"] == "settled"


@pytest.mark.parametrize(("name", "unread"), [("q3", "1,234 GB"), ("q3", "many"), ("q1", "z"), ("q1", ""), ("q2", [])])
def test_what_cannot_be_read_costs_no_attempt(ada, name, unread):
    reply = ada.send(name, unread, nonce="nonce-free-again", locale="fr")
    assert reply.status_code == 200 and reply.json()["understood"] is False and "receipt" not in reply.json()
    assert ada.question(name)["attempt"] == 1 and not ada.lesson().json()["answers"]
    assert ada.send(name, {"q3": "1 GB"}.get(name, "a"), nonce="nonce-free-again").json()["attempt"] == 1


def test_a_reopened_notebook_gets_its_answers_back(settings, ada):
    sent = [ada.send("q1", "a").json(), ada.send("q2", ["a", "c"]).json()]
    assert ada.lesson().json()["answers"] == sent
    with TestClient(create_app(settings)) as other:
        assert Learner(other).lesson().json()["answers"] == sent


def test_nobody_sees_the_answers_of_another(ada, bob):
    ada.send("q1", "a")
    assert bob.lesson().json()["answers"] == [] and bob.lesson().json()["run"] != ada.lesson().json()["run"]


def test_another_database_is_another_run(settings, ada, tmp_path):
    with TestClient(create_app(replace(settings, db_url=f"sqlite:///{tmp_path / 'other.db'}"))) as other:
        assert Learner(other).lesson().json()["run"] != ada.lesson().json()["run"]


def test_many_at_once_take_one_attempt_each(client):
    """Threads that send the same attempt under different nonces: one is counted, the others are told so."""
    replies = []
    start = threading.Barrier(8)

    def send(number):
        learner = Learner(client)
        start.wait(60)
        replies.append(learner.send("q1", "a", nonce=f"nonce-of-{number}"))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
    assert len(Learner(client).lesson().json()["answers"]) == 1


def test_too_many_answers_are_told_when_to_come_back(settings):
    with TestClient(create_app(replace(settings, burst=2, rate=1))) as client:
        ada = Learner(client)
        assert [ada.send("q1", "z").status_code for _ in range(2)] == [200, 200]
        refused = ada.send("q1", "c")
        assert refused.status_code == 429 and 1 <= int(refused.headers["retry-after"]) <= 60
        assert ada.question("q1")["attempt"] == 1
        assert Learner(client, "bob-token-of-enough-length").send("q1", "c").status_code == 200


def test_a_bucket_fills_with_time():
    now = [0.0]
    limits = Limits(60, 2, lambda: now[0])
    taken = []
    for moment in (0, 0, 0, 0.5, 1.0, 1.5, 100, 100, 100):
        now[0] = moment
        try:
            limits.take("ada")
            taken.append(True)
        except Exception as error:
            taken.append(getattr(error, "retry_after", None))
    assert taken == [True, True, 1.0, 0.5, True, 0.5, True, True, 1.0]


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", "Basic YTpi", "Bearer " + "x" * 5000, "Bearer \xff\xfe"]
)
def test_a_stranger_learns_nothing(client, header):
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for reply in (client.get("/lessons/01", headers=headers), client.post("/lessons/01/answers", headers=headers, json={})):
        assert reply.status_code == 401 and set(reply.json()) == {"error", "message"}


@pytest.mark.parametrize("lesson", ["02", "1", "..%2f..%2fetc%2fpasswd", "*", "01%00", "%ff"])
def test_lessons_that_are_not_there(ada, lesson):
    for reply in (
        ada.client.get(f"/lessons/{lesson}", headers=ada.headers),
        ada.client.post(f"/lessons/{lesson}/answers", headers=ada.headers, json={}),
    ):
        assert reply.status_code == 404 and set(reply.json()) == {"error", "message"}


def test_every_answer_says_that_it_stands_in_no_frame_and_is_not_kept(ada):
    for reply in (ada.lesson(), ada.client.get("/health"), ada.client.get("/nothing"), ada.send("q1", "z")):
        assert reply.headers["content-security-policy"] == "frame-ancestors 'none'"
        assert reply.headers["cache-control"] == "no-store" and reply.headers["x-content-type-options"] == "nosniff"


def test_receipts_name_a_question_only_after_its_answer(ada):
    reply = ada.send("q1", "a").json()
    payload = base64.urlsafe_b64decode(reply["receipt"].split(".")[1] + "==")
    assert b"g01-secret-c" in payload and "g01-secret-c" not in ada.send("q2", "a").text


@pytest.mark.skipif(not any(KEYS.glob("*.yaml")), reason="needs the graded questions")
def test_nothing_of_the_real_keys_is_given_out(settings):
    """Every public text of the service about the real questions, searched as the release is searched."""
    banks = every(KEYS)
    questions = [question for bank in banks.values() for question in bank.questions]
    texts = private(questions, " ".join(path.read_text(encoding="utf-8") for path in sorted(BANK.glob("*.yaml")))) | flags()
    with TestClient(create_app(replace(settings, keys=KEYS))) as client:
        ada, looked = Learner(client), 0
        for lesson in client.get("/health").json()["lessons"]:
            for locale in ("en", "fr", "ko"):
                shown = client.get(f"/lessons/{lesson}", headers=ada.headers, params={"locale": locale})
                looked += len(shown.json()["questions"])
                assert search(lesson, shown.content, texts) == []
        # What a wrong answer is told may be in no text of the key either, while attempts are left.
        for bank in banks.values():
            for question in bank.questions:
                for wrong in [choice.id for choice in question.choices if not choice.correct][:1] or ["1 GB"]:
                    content = {"question": question.name, "attempt": 1, "answer": wrong, "nonce": f"nonce-{question.name}"}
                    reply = client.post(f"/lessons/{bank.lesson}/answers", headers=ada.headers, json=content)
                    if reply.status_code == 200 and not reply.json().get("share"):
                        told = {name: value for name, value in reply.json().items() if name != "receipt"}
                        assert search(question.id, json.dumps(told).encode(), texts) == []
    assert looked == 3 * len(questions)
