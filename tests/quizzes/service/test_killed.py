"""The service is killed at moments that nobody chose, under load. What it acknowledged is there; nothing counts twice."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time

import pytest

from quizzes.receipts import check, tally
from tests.quizzes.service.running import PATIENCE, Running, ask, prepare
from tests.quizzes.service.small import DID

LEARNERS = [f"learner{number:02}" for number in range(12)]
NAMES = {"q1": "a", "q2": "a", "q3": "1 GB", "q4": {"u": "1", "v": "1"}}
IDS = {"q1": "g01-secret-c", "q2": "g01-many", "q3": "g01-bytes", "q4": "g01-pairs"}
ATTEMPTS = 10


class Answering(threading.Thread):
    """Sends every attempt at every question, each with its nonce until it has been acknowledged."""

    def __init__(self, learner, token, address, chance):
        super().__init__(daemon=True)
        self.learner, self.token, self.address, self.chance = learner, token, address, chance
        self.acknowledged: dict[tuple[str, int], bytes] = {}
        self.failures: list[str] = []

    def run(self):
        until = time.monotonic() + PATIENCE
        for attempt in range(1, ATTEMPTS + 1):
            for name, answer in NAMES.items():
                nonce = f"{name}-{attempt}-{self.chance.getrandbits(64):x}"
                content = {"question": name, "attempt": attempt, "answer": answer, "nonce": nonce}
                while time.monotonic() < until:
                    try:
                        status, body = ask(self.address[0], "POST", "/lessons/01/answers", self.token, content)
                    except OSError:
                        time.sleep(0.02)
                        continue
                    if status == 200:
                        self.acknowledged[name, attempt] = body
                        if self.chance.random() < 0.2 and ask_again(self.address[0], self.token, content) not in (body, None):
                            self.failures.append(f"{name} {attempt}: the repeat has another reply")
                        break
                    if status != 503:
                        self.failures.append(f"{name} {attempt}: {status} {body[:200]!r}")
                        break


def ask_again(url, token, content):
    try:
        return ask(url, "POST", "/lessons/01/answers", token, content)[1]
    except OSError:
        return None


@pytest.mark.timeout(300)
def test_no_acknowledged_answer_is_lost_and_none_counts_twice(tmp_path):
    tokens = prepare(tmp_path, LEARNERS)
    chance = random.Random(7)
    service = Running(tmp_path, 0, "--attempts", str(ATTEMPTS))
    address = [service.url]
    threads = [Answering(learner, token, address, random.Random(learner)) for learner, token in tokens.items()]
    for thread in threads:
        thread.start()
    kills = 0
    while any(thread.is_alive() for thread in threads):
        # By what has been acknowledged, not by the clock: a kill falls among answers on any machine.
        goal = sum(len(thread.acknowledged) for thread in threads) + chance.randint(1, 60)
        while any(thread.is_alive() for thread in threads) and sum(len(thread.acknowledged) for thread in threads) < goal:
            time.sleep(0.001)
        if kills < 4 and any(thread.is_alive() for thread in threads):
            time.sleep(chance.random() * 0.01)
            service.kill()
            kills += 1
            service = Running(tmp_path, service.port, "--attempts", str(ATTEMPTS))
    for thread in threads:
        thread.join(PATIENCE)
    assert kills
    assert [failure for thread in threads for failure in thread.failures] == []
    try:
        for thread in threads:
            assert len(thread.acknowledged) == len(NAMES) * ATTEMPTS, thread.learner
            held = json.loads(ask(service.url, "GET", "/lessons/01", thread.token)[1])["answers"]
            sent = {key: json.loads(body) for key, body in thread.acknowledged.items()}
            assert {(reply["question"], reply["attempt"]): reply for reply in held} == sent
            assert len(held) == len(sent), "an answer stands there twice"
            receipts = [reply["receipt"] for reply in held]
            assert {check(receipt, {DID}).learner for receipt in receipts} == {thread.learner}
            points = {IDS["q1"]: 2.0, IDS["q2"]: 1.0, IDS["q3"]: 1.0, IDS["q4"]: 1.0}
            assert not tally(receipts, {DID}, thread.learner, points, attempts=ATTEMPTS).refused
    finally:
        service.stop()
    rows = sqlite3.connect(tmp_path / "answers.db").execute("select count(*), count(distinct run||nonce) from answers")
    assert rows.fetchone() == (len(LEARNERS) * len(NAMES) * ATTEMPTS,) * 2


def test_a_reply_waits_for_the_disk(settings, monkeypatch):
    """While a commit cannot end, no answer goes out; when it fails, the answer is not recorded and may be sent again."""
    from fastapi.testclient import TestClient
    from sqlalchemy import event
    from sqlalchemy.exc import OperationalError

    from quizzes.service.app import create_app
    from tests.quizzes.service.small import Learner

    app = create_app(settings)
    entered, free = threading.Event(), threading.Event()
    fail = [True]

    def commit(_connection):
        entered.set()
        assert free.wait(PATIENCE)
        if fail:
            raise OperationalError("COMMIT", {}, Exception("disk I/O error"))

    event.listen(app.state.service.store.engine, "commit", commit)
    with TestClient(app) as client:
        ada, replies = Learner(client), []
        sending = threading.Thread(target=lambda: replies.append(ada.send("q1", "c", nonce="nonce-0001")))
        sending.start()
        assert entered.wait(PATIENCE) and not replies
        free.set()
        sending.join(PATIENCE)
        assert replies[0].status_code == 503 and "retry-after" in replies[0].headers and "receipt" not in replies[0].text
        fail.clear()
        assert ada.lesson().json()["answers"] == []
        assert ada.send("q1", "c", nonce="nonce-0001").json()["share"] == 1.0
