"""The client of a notebook against a service that comes and goes: nothing is lost, nothing counts twice."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from quizzes.service import connection as connections
from quizzes.service.client import Away, Client, Kept, Refused
from quizzes.service.connection import Connection
from quizzes.service.unsent import Unsent, UnsentError
from tests.quizzes.service.running import PATIENCE, Running, prepare


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    tokens = prepare(folder, [f"learner{number}" for number in range(20)])
    running = Running(folder)
    running.tokens = iter(tokens.values())
    yield running
    running.stop()


@pytest.fixture
def client(service, tmp_path):
    return Client(service.url, next(service.tokens), Unsent(tmp_path / "unsent.json"), sleep=lambda _seconds: None)


class Broken:
    """A server that lets each of `plans` happen to one connection: "close", "drop" (pass on, lose the reply), "garbage"."""

    def __init__(self, url, plans):
        self.target = url.rsplit("/", 1)[1].split(":")
        self.plans, self.seen = list(plans), []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.listening.settimeout(PATIENCE)
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                connection, _address = self.listening.accept()
            except OSError:
                return
            plan = self.plans.pop(0) if self.plans else "pass"
            self.seen.append(plan)
            with connection:
                connection.settimeout(PATIENCE)
                if plan == "close":
                    continue
                request = self._request(connection)
                if plan.startswith("say "):
                    connection.sendall(plan[4:].encode())
                    continue
                with socket.create_connection(self.target, timeout=PATIENCE) as onward:
                    onward.sendall(request.replace(b"Accept:", b"Connection: close\r\nAccept:", 1))
                    reply = b""
                    while part := onward.recv(65536):
                        reply += part
                if plan == "pass":
                    connection.sendall(reply)
                elif plan == "half":
                    connection.sendall(reply[: len(reply) // 2])

    @staticmethod
    def _request(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head = data.split(b"\r\n\r\n")[0].lower()
        length = int(head.split(b"content-length:")[1].split()[0]) if b"content-length:" in head else 0
        while len(data) < len(head) + 4 + length:
            data += connection.recv(65536)
        return data


def said(status, content, more=""):
    body = content if isinstance(content, str) else json.dumps(content)
    return f"say HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n{more}\r\n{body}"


def test_an_answer_comes_back_judged_and_nothing_is_kept(client):
    assert client.answer("01", "q1", 1, "c")["share"] == 1.0
    assert client.unsent.all() == []
    assert [reply["question"] for reply in client.lesson("01")["answers"]] == ["q1"]


@pytest.mark.parametrize("plans", [["close"], ["drop"], ["half", "drop"], [said(502, "<html>")], [said(200, "[1]")]])
def test_a_connection_that_breaks_is_tried_again_and_counted_once(client, plans):
    client.url = Broken(client.url, plans).url
    assert client.answer("01", "q1", 1, "a")["attempts_left"] == 1
    assert len(client.lesson("01")["answers"]) == 1 and client.unsent.all() == []


def test_a_service_that_is_away_loses_nothing(client):
    url = client.url
    client.url = Broken(url, ["drop"] * 3).url  # recorded, and no reply arrives
    kept = client.answer("01", "q1", 1, "a")
    assert isinstance(kept, Kept) and "kept on this computer" in str(kept)
    client.url = "http://127.0.0.1:1"
    assert isinstance(client.answer("01", "q2", 1, ["a", "c"]), Kept)
    with pytest.raises(Away):
        client.send_again()
    assert len(client.unsent.all()) == 2
    again = Client(url, client.token, Unsent(client.unsent.path))  # another kernel
    done = again.send_again()
    assert [(entry["question"], reply["share"]) for entry, reply in done] == [("q1", 0.0), ("q2", 1.0)]
    assert again.unsent.all() == [] and again.send_again() == []
    assert len(again.lesson("01")["answers"]) == 2


def test_what_was_kept_and_is_too_late_is_told(client):
    url, client.url = client.url, "http://127.0.0.1:1"
    client.answer("01", "q1", 1, "a")
    client.url = url
    client.answer("01", "q1", 1, "b")
    ((entry, refused),) = client.send_again()
    assert entry["answer"] == "a" and isinstance(refused, Refused) and refused.code == "stale"
    assert client.unsent.all() == []


@pytest.mark.parametrize("answer", [{1, 2}, float("nan"), object(), {"a": {1}}, b"c"])
def test_what_is_no_answer_is_refused_here(client, answer):
    with pytest.raises(Refused):
        client.answer("01", "q1", 1, answer)
    assert client.unsent.all() == []


def test_a_refusal_is_told_and_not_sent_again(client):
    with pytest.raises(Refused, match="no question") as told:
        client.answer("01", "q9", 1, "a")
    assert told.value.status == 404 and client.unsent.all() == []


def test_a_token_that_is_not_known_keeps_the_answer(client):
    client.token = "another-token-of-enough-length"
    assert isinstance(client.answer("01", "q1", 1, "a"), Kept)
    assert len(client.unsent.all()) == 1


def test_too_many_waits_and_then_is_away(client):
    waited = []
    client.sleep = waited.append
    short = said(429, {"error": "too-many", "message": "Wait."}, "Retry-After: 2\r\n")
    client.url = Broken(client.url, [short, short]).url
    assert client.answer("01", "q1", 1, "a")["attempt"] == 1
    assert len(waited) == 2 and all(2 <= seconds <= 3 for seconds in waited)
    client.url = Broken(client.url, [said(429, {"message": "Wait."}, "Retry-After: 60\r\n")]).url
    assert "Wait." in str(client.answer("01", "q2", 1, "a"))


def test_a_damaged_file_is_left_and_told(client):
    client.unsent.path.write_text("[{", encoding="utf-8")
    assert client.answer("01", "q1", 1, "a")["attempt"] == 1  # judged all the same
    with pytest.raises(UnsentError, match=r"unsent\.json"):
        client.send_again()
    client.url = "http://127.0.0.1:1"
    with pytest.raises(UnsentError):
        client.answer("01", "q1", 2, "b")
    assert client.unsent.path.read_text(encoding="utf-8") == "[{"


def test_the_service_is_found_by_environment_or_file(tmp_path):
    place = tmp_path / "connection.json"
    with pytest.raises(Away, match="Practice questions"):
        Client.found({connections.VARIABLE: str(place)})
    connections.write(place, Connection("http://127.0.0.1:5", "t" * 20))
    assert place.stat().st_mode & 0o777 == 0o600
    assert Client.found({connections.VARIABLE: str(place)}).url == "http://127.0.0.1:5"
    found = Client.found({"OFFLOAD_QUIZ_URL": "https://hub/services/quiz/", "JUPYTERHUB_API_TOKEN": "of-the-hub"})
    assert (found.url, found.token) == ("https://hub/services/quiz", "of-the-hub")
    for damaged in ("", "[]", "{}", '{"url": 5, "token": "x"}', '{"url": "file:///etc/passwd", "token": "x"}', "[" * 100_000):
        place.write_text(damaged)
        assert connections.read(place) is None
