"""Two services over one database, embedded and PostgreSQL: an attempt is taken once, a nonce stands for one answer."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from quizzes.service.app import create_app
from quizzes.service.hints import Paid, Wanted
from quizzes.service.store import Store, answers, metadata
from quizzes.service.writer import Entry, Writer
from tests.quizzes.service.small import ADA, BOB, Learner


@pytest.fixture(params=["sqlite", "postgresql"])
def db_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.db'}"
    url = request.getfixturevalue("postgresql")
    store = Store(url)
    with store.writing() as connection:
        connection.exec_driver_sql("delete from answers")
        connection.exec_driver_sql("delete from hints")
    store.close()
    return url


def test_two_services_take_each_attempt_once(settings, db_url):
    shared = replace(settings, db_url=db_url, attempts=5)
    with ExitStack() as stack:
        clients = [stack.enter_context(TestClient(create_app(shared))) for _ in range(2)]
        replies, start = [], threading.Barrier(8)

        def send(number):
            learner = Learner(clients[number % 2], (ADA, BOB)[number // 2 % 2])
            start.wait(60)
            for attempt in range(1, 6):
                for name in ("q1", "q2"):
                    reply = learner.send(name, "a", attempt=attempt, nonce=f"nonce-{number}-{name}-{attempt}")
                    replies.append((learner.headers["Authorization"], name, attempt, reply))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert {reply.status_code for *_, reply in replies} <= {200, 409}
        acknowledged = [key for *key, reply in replies if reply.status_code == 200]
        assert len(acknowledged) == len({tuple(key) for key in acknowledged}) == 2 * 2 * 5
        for token in (ADA, BOB):
            seen = [Learner(client, token).lesson().json() for client in clients]
            assert seen[0] == seen[1] and len(seen[0]["answers"]) == 10


def test_two_services_let_each_hint_be_paid_for_once(settings, db_url):
    """Eight ask for the same two hints over two services; then the service that was not asked last knows what they cost."""
    shared = replace(settings, db_url=db_url)
    with ExitStack() as stack:
        clients = [stack.enter_context(TestClient(create_app(shared))) for _ in range(2)]
        texts, start = [], threading.Barrier(8)

        def hint(number):
            start.wait(60)
            texts.extend((place, Learner(clients[number % 2]).hint("q3", place).json()["text"]) for place in (1, 2))

        threads = [threading.Thread(target=hint, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert len(texts) == 16 and len(set(texts)) == 2
        for client in clients:
            assert Learner(client).question("q3")["hint_offer"]["paid"] == 0.5
        n = json.loads(Learner(clients[0]).question("q3")["variant"])["n"]
        assert Learner(clients[1]).send("q3", f"{8 * n} GB").json()["score"] == 0.5
        assert Learner(clients[1], BOB).question("q3")["hint_offer"]["paid"] == 0


def test_an_answer_and_a_hint_in_one_batch_are_taken_in_their_order(db_url):
    """What was judged before a hint keeps its reply; what comes after it has another one."""
    store = Store(db_url)
    run, at = store.run("batch", "01"), "2026-12-02T22:38:41.123456Z"
    first = Entry(run, "batch", "01", "x", 1, "nonce-1", "f", 0.5, at, b"0", lambda paid: b"%d" % len(paid.costs))
    hints = [Wanted(run, "batch", "01", "x", number, 0.25, at, 2, 0.25) for number in (1, 2)]
    second = replace(first, attempt=2, nonce="nonce-2")
    outcomes = Writer(store, 5, lambda _outcomes: None).record([first, *hints, hints[0], second, first])
    assert outcomes == [b"0", Paid((0.25,), 1), Paid((0.25, 0.25), 1), Paid((0.25, 0.25), 1), b"2", b"0"]
    assert [reply for *_, reply in store.replies(run)] == [b"0", b"2"] and store.hints(run) == {"x": (0.25, 0.25)}
    store.close()


def test_a_repeat_over_the_other_service_gets_the_same_bytes(settings, db_url):
    shared = replace(settings, db_url=db_url)
    with TestClient(create_app(shared)) as one, TestClient(create_app(shared)) as other:
        first = Learner(one).send("q1", "a", nonce="nonce-0001")
        assert Learner(other).send("q1", "a", nonce="nonce-0001").content == first.content
        assert Learner(other).send("q1", "b", nonce="nonce-0001").status_code == 409


def test_of_a_batch_that_meets_another_writer_the_rest_is_recorded(db_url):
    """Between looking and writing, another process records one of the attempts; only that one is refused."""
    store = Store(db_url)
    run = store.run("ada", "01")
    base = Entry(run, "ada", "01", "x", 1, "nonce-x", "f", 0.0, "2026-12-02T22:38:41.123456Z", b"reply")
    mine = [replace(base, question=name, nonce=f"nonce-{name}", reply=name.encode()) for name in ("a", "b", "c")]

    class Blind(Writer):
        """Looks once before the other process has written."""

        blind = True

        def _taken(self, connection, entries):
            found = {} if self.blind else Writer._taken(connection, entries)
            self.blind = False
            return found

    other = Writer(store, 2, lambda _outcomes: None)
    assert other.record([replace(mine[1], nonce="nonce-of-the-other")]) == [b"b"]
    outcomes = Blind(store, 2, lambda _outcomes: None).record(mine)
    assert outcomes[0] == b"a" and outcomes[2] == b"c" and outcomes[1].code == "stale"
    assert sorted(question for question, *_ in store.replies(run)) == ["a", "b", "c"]
    store.close()


def test_a_deadlock_with_another_process_refuses_nothing_that_may_be_sent_again(postgresql):
    """The other holds b and then wants a; the writer holds a and wants b. PostgreSQL ends one of them."""
    store = Store(postgresql)
    run = store.run("deadlock", "01")
    base = Entry(run, "deadlock", "01", "x", 1, "nonce-x", "f", 0.0, "2026-12-02T22:38:41.123456Z", b"reply")
    mine = [replace(base, question=name, nonce=f"nonce-{name}") for name in ("b", "a")]
    theirs = {name: replace(base, question=name, nonce=f"their-nonce-{name}").row(base.reply) for name in ("a", "b")}
    outcomes = []
    with store.engine.connect() as other:
        other.execute(answers.insert(), theirs["b"])
        writing = threading.Thread(target=lambda: outcomes.extend(Writer(store, 2, lambda _outcomes: None).record(mine)))
        writing.start()
        waiting = "select count(*) from pg_locks where not granted"
        until = time.monotonic() + 60
        with store.engine.connect() as watching:
            while not watching.exec_driver_sql(waiting).scalar() and time.monotonic() < until:
                time.sleep(0.01)
        try:
            other.execute(answers.insert(), theirs["a"])
            other.commit()
        except OperationalError:
            other.rollback()  # PostgreSQL chose this one
        writing.join(60)
    assert [getattr(outcome, "code", "recorded") for outcome in outcomes] in (["stale", "stale"], ["recorded", "recorded"])
    assert len(store.replies(run)) == 2
    store.close()


def test_services_that_start_together_agree_on_the_run(postgresql):
    store = Store(postgresql)
    with store.writing() as connection:
        metadata.drop_all(connection)
    store.close()
    runs, start = [], threading.Barrier(4)

    def begin():
        start.wait(60)
        store = Store(postgresql)
        runs.append(store.run("ada", "01"))
        store.close()

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(runs) == 4 and len(set(runs)) == 1
