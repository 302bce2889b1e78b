"""Behind JupyterHub: a Hub made of a small HTTP server says who a token belongs to, and logs a browser in."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient

from quizzes.service.app import create_app
from quizzes.service.errors import StartError
from quizzes.service.hub import Hub, from_environment
from quizzes.service.pages import SESSION, STATE, Sessions

SCOPE = "access:services!service=quiz"
USERS = {
    "token-of-ada": {"kind": "user", "name": "ada", "scopes": [SCOPE, "read:users!user=ada"]},
    "token-of-boss": {"kind": "user", "name": "boss", "scopes": ["access:services"]},
    "token-for-another-service": {"kind": "user", "name": "ada", "scopes": ["access:services!service=wiki"]},
    "token-without-scopes": {"kind": "user", "name": "ada"},
    "token-of-a-service": {"kind": "service", "name": "wiki", "scopes": [SCOPE]},
    "token-of-a-path": {"kind": "user", "name": "../../etc", "scopes": [SCOPE]},
    "token-of-nonsense": ["ada"],
    "token-given-for-a-code": {"kind": "user", "name": "<b>ada", "scopes": [SCOPE]},
}


class FakeHub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked, self.status, self.users = [], 200, dict(USERS)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def environment(self):
        return {
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{self.server_port}/hub/api",
            "JUPYTERHUB_API_TOKEN": "secret-of-the-service",
            "JUPYTERHUB_SERVICE_NAME": "quiz",
            "JUPYTERHUB_SERVICE_PREFIX": "/services/quiz/",
            "JUPYTERHUB_SERVICE_URL": "http://127.0.0.1:10101",
            "JUPYTERHUB_BASE_URL": "/",
            "JUPYTERHUB_CLIENT_ID": "service-quiz",
        }


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        kind, _blank, token = self.headers["Authorization"].partition(" ")
        known = self.server.users.get(token)
        if self.path != "/hub/api/user" or kind != "token" or known is None:
            return self._say(403, {"status": 403, "message": "Forbidden"})
        self._say(self.server.status, known)

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append((self.path, form))
        right = {
            "client_id": ["service-quiz"],
            "client_secret": ["secret-of-the-service"],
            "grant_type": ["authorization_code"],
            "code": ["the-code"],
            "redirect_uri": ["/services/quiz/oauth_callback"],
        }
        if self.path != "/hub/api/oauth2/token" or form != right:
            return self._say(400, {"error": "invalid_grant"})
        self._say(200, {"access_token": "token-of-ada", "token_type": "Bearer"})

    def _say(self, status, content):
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def hub():
    server = FakeHub()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def behind(settings, hub):
    people = Hub(from_environment(hub.environment))
    app = create_app(replace(settings, people=people, prefix=people.settings.prefix))
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as client:
        yield client


def lesson(client, token, kind="token"):
    return client.get("/services/quiz/lessons/01", headers={"Authorization": f"{kind} {token}"})


@pytest.mark.parametrize("kind", ["token", "Bearer"])
def test_the_hub_says_who_asks(behind, kind):
    assert lesson(behind, "token-of-ada", kind).json()["learner"] == "ada"
    assert lesson(behind, "token-of-boss", kind).json()["learner"] == "boss"
    content = {"question": "q1", "attempt": 1, "answer": "c", "nonce": "nonce-0001"}
    sent = behind.post("/services/quiz/lessons/01/answers", json=content, headers={"Authorization": f"{kind} token-of-ada"})
    assert sent.json()["share"] == 1.0


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("token-of-nobody", 401),
        ("token-for-another-service", 403),
        ("token-without-scopes", 403),
        ("token-of-a-service", 403),
        ("token-of-a-path", 403),
        ("token-of-nonsense", 503),
        ("secret-of-the-service", 401),
        ("t\u00f6ken", 401),
        ("a b", 401),
    ],
)
def test_a_token_that_is_not_for_here_opens_nothing(behind, token, status):
    reply = behind.get("/services/quiz/lessons/01", headers={"Authorization": f"token {token}".encode("latin-1")})
    assert reply.status_code == status and set(reply.json()) == {"error", "message"}


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_hub_that_fails_is_not_the_learners_fault(behind, hub, status):
    hub.status = status
    assert lesson(behind, "token-of-ada").status_code == 503
    hub.status = 200
    assert lesson(behind, "token-of-ada").status_code == 200


def test_a_hub_that_is_gone(settings, hub):
    environment = hub.environment | {"JUPYTERHUB_API_URL": "http://127.0.0.1:1/hub/api"}
    people = Hub(from_environment(environment))
    with TestClient(create_app(replace(settings, people=people, prefix="/services/quiz"))) as client:
        assert lesson(client, "token-of-ada").status_code == 503


def test_a_token_is_believed_for_a_while_and_no_longer(settings, hub):
    now = [0.0]
    people = Hub(from_environment(hub.environment), seconds=60, clock=lambda: now[0])
    with TestClient(create_app(replace(settings, people=people, prefix="/services/quiz"))) as client:
        assert [lesson(client, "token-of-ada").status_code for _ in range(3)] == [200] * 3
        assert hub.asked == ["/hub/api/user"]
        del hub.users["token-of-ada"]
        now[0] = 59.0
        assert lesson(client, "token-of-ada").status_code == 200
        now[0] = 60.0
        assert lesson(client, "token-of-ada").status_code == 401


def logged_in(client):
    away = client.get("/services/quiz/")
    asked = urlsplit(away.headers["location"])
    query = {name: value for name, (value,) in parse_qs(asked.query).items()}
    assert (away.status_code, asked.path) == (302, "/hub/api/oauth2/authorize")
    assert query["client_id"] == "service-quiz" and query["redirect_uri"] == "/services/quiz/oauth_callback"
    return client.get("/services/quiz/oauth_callback", params={"code": "the-code", "state": query["state"]})


def test_a_browser_logs_in_and_sees_its_own_answers(behind):
    content = {"question": "q1", "attempt": 1, "answer": "c", "nonce": "nonce-0001"}
    for token in ("token-of-ada", "token-of-boss"):
        behind.post("/services/quiz/lessons/01/answers", json=content, headers={"Authorization": f"token {token}"})
    back = logged_in(behind)
    assert (back.status_code, back.headers["location"]) == (302, "/services/quiz/")
    assert "httponly" in back.headers["set-cookie"].lower() and "samesite=lax" in back.headers["set-cookie"].lower()
    shown = behind.get("/services/quiz/")
    assert shown.status_code == 200 and "ada" in shown.text and "2 / 2" in shown.text and "boss" not in shown.text
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]


def test_a_cookie_sends_no_answers(behind):
    logged_in(behind)
    assert behind.get("/services/quiz/").status_code == 200
    content = {"question": "q1", "attempt": 1, "answer": "c", "nonce": "nonce-0001"}
    assert behind.post("/services/quiz/lessons/01/answers", json=content).status_code == 401
    assert behind.get("/services/quiz/lessons/01").status_code == 401


@pytest.mark.parametrize("query", [{}, {"code": "the-code"}, {"code": "the-code", "state": "another"}, {"state": "x"}])
def test_a_login_that_was_not_begun_here_is_refused(behind, hub, query):
    behind.get("/services/quiz/")
    assert behind.get("/services/quiz/oauth_callback", params=query).status_code == 403
    behind.cookies.delete(STATE)
    assert behind.get("/services/quiz/oauth_callback", params=query).status_code == 403
    assert not any("oauth2" in str(asked) for asked in hub.asked)


def test_a_wrong_code_logs_nobody_in(behind):
    behind.get("/services/quiz/")
    state = behind.cookies[STATE]
    assert behind.get("/services/quiz/oauth_callback", params={"code": "no", "state": state}).status_code == 401
    assert SESSION not in behind.cookies


def test_a_session_that_was_altered_or_is_old_is_none():
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    cookie = sessions.seal("ada")
    assert sessions.learner(cookie) == "ada"
    for place in range(len(cookie)):
        assert sessions.learner(cookie[:place] + chr(ord(cookie[place]) ^ 1) + cookie[place + 1 :]) is None
    for other in ("", ".", cookie + "0", "\ud800", Sessions(lambda: 0.0).seal("ada")):
        assert sessions.learner(other) is None
    now[0] = 8 * 3600
    assert sessions.learner(cookie) is None


@pytest.mark.parametrize("missing", ["JUPYTERHUB_API_URL", "JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_PREFIX"])
def test_what_the_hub_did_not_say_is_named(hub, missing):
    with pytest.raises(StartError, match=missing):
        from_environment({name: value for name, value in hub.environment.items() if name != missing})


def test_the_scopes_that_the_hub_names_count(hub):
    told = hub.environment | {"JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:services!service=quiz-2"]'}
    assert from_environment(told).scopes == {"access:services!service=quiz-2"}
    with pytest.raises(StartError, match="SCOPES"):
        from_environment(told | {"JUPYTERHUB_OAUTH_ACCESS_SCOPES": "5"})
