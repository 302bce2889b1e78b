"""`offload-quiz serve`: what it needs, what it says when it cannot start, how it ends; and the lab that starts it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from quizzes.certificates import identifier, keys
from quizzes.cli import app
from quizzes.question import KEYS
from quizzes.service import connection as connections
from quizzes.service.app import create_app
from quizzes.service.certificates import router
from quizzes.service.errors import StartError
from quizzes.service.identity import Tokens, read_tokens
from quizzes.service.lab import start
from quizzes.service.server import bind, is_loopback
from quizzes.service.store import Store
from tests.quizzes.service.running import PATIENCE, ROOT, Running, ask, prepare


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "class"
    made.mkdir()
    prepare(made, ["ada"])
    return made


def serve(folder, *more, key="receipts.key"):
    """What the command says when it does not start."""
    arguments = ["serve", "--keys", str(folder / "keys"), "--db-url", f"sqlite:///{folder / 'answers.db'}"]
    arguments += ["--key", str(folder / key)] if key else []
    done = CliRunner().invoke(app, [*arguments, "--connection", str(folder / "connection.json"), *more])
    assert done.exit_code == 2 and "Traceback" not in done.output, done.output
    return " ".join(done.output.split())


def test_without_a_key_it_says_how_to_make_one(folder):
    assert "offload-quiz keygen" in serve(folder, key="")
    assert "there is no such file" in serve(folder, key="none")
    os.chmod(folder / "receipts.key", 0o644)
    assert "chmod 600" in serve(folder)


def test_the_published_test_key_is_refused_unless_it_is_asked_for(folder, settings):
    keys.generate(folder / "test.key", test=True)
    assert "--allow-test-keys" in serve(folder, key="test.key")
    public = Ed25519PrivateKey.from_private_bytes(keys.TEST_SEED)
    with pytest.raises(StartError):
        replace(settings, private_key=public)
    assert replace(settings, private_key=public, allow_test_keys=True)


@pytest.mark.parametrize(
    ("content", "said"), [(None, "no graded questions"), ("lesson: [", "01_small.yaml cannot be read"), ("{}", "01_small.yaml")]
)
def test_questions_that_cannot_be_used_are_named(folder, content, said):
    path = folder / "keys" / "01_small.yaml"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    assert said in serve(folder)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "--db-url"),
        ("sqlite://", "needs a file"),
        ("sqlite:////proc/none/answers.db", "cannot be made"),
        ("oracle+nothing://ada:secret@host/db", "cannot be used"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_without_its_password(folder, url, said):
    told = serve(folder, "--db-url", url)
    assert said in told and "secret" not in told


def test_a_file_that_is_no_database_is_left_as_it_is(folder):
    before = (folder / "receipts.key").read_bytes()
    assert "not a database" in serve(folder, "--db-url", f"sqlite:///{folder / 'receipts.key'}")
    assert (folder / "receipts.key").read_bytes() == before


def test_a_database_of_a_later_version_is_left_alone(tmp_path):
    url = f"sqlite:///{tmp_path / 'answers.db'}"
    store = Store(url)
    with store.writing() as connection:
        connection.exec_driver_sql("update about set value = '3' where name = 'version'")
    store.close()
    with pytest.raises(StartError, match="version 3"):
        Store(url)


def test_a_database_on_disk_keeps_its_promises(tmp_path):
    store = Store(f"sqlite:///{tmp_path / 'answers.db'}")
    with store.engine.connect() as connection:
        held = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")}
    assert held == {"journal_mode": "wal", "synchronous": 2}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    store.close()


def test_a_port_in_use_is_named(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert f"port {taken.getsockname()[1]} cannot be used" in serve(folder, "--port", str(taken.getsockname()[1]))
    assert "0 to 65535" in serve(folder, "--port", "70000")
    assert "--host" in serve(folder, "--host", "no such host")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--attempts", "0"], "attempts=0"),
        (["--rate", "nan"], "rate=nan"),
        (["--learner", "../../etc"], "no id of a learner"),
        (["--tokens", "none"], "cannot be read"),
        (["--registry", "none"], "no such folder"),
        (["--hub", "--tokens", "x"], "two ways"),
        (["--hub"], "JUPYTERHUB_API_URL"),
        (["--connection", "/proc/none/file"], "cannot be written"),
    ],
)
def test_options_that_make_no_sense(folder, monkeypatch, more, said):
    for name in list(os.environ):
        if name.startswith("JUPYTERHUB_"):
            monkeypatch.delenv(name)
    assert said in serve(folder, *more)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no token"),
        ("abcdefghijklmnopqrstuvwxyz", "line 1"),
        ("# who\nabcdefghijklmnopqrstuvwxyz ada\nabcdefghijklmnopqrstuvwxyz bob", "line 3"),
        ("short ada", "characters"),
        ("abcdefghijklmnopqrstuvwxyz ../ada", "no id"),
    ],
)
def test_a_bad_line_of_tokens_is_named(tmp_path, text, said):
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(StartError, match=said):
        read_tokens(path)
    path.chmod(0o644)
    with pytest.raises(StartError, match="chmod 600"):
        read_tokens(path)


def test_it_listens_on_loopback_by_default_and_passes_its_token_in_a_file_of_its_owner(folder):
    place = folder / "connection.json"
    running = Running(folder, 0, "--connection", str(place), "--learner", "ada")
    try:
        assert running.url.startswith("http://127.0.0.1:")
        found = connections.read(place)
        assert found.url == running.url and place.stat().st_mode & 0o777 == 0o600
        status, body = ask(running.url, "GET", "/lessons/01", found.token)
        assert status == 200 and json.loads(body)["learner"] == "ada"
        assert found.token not in " ".join(running.process.args)
    finally:
        said = running.stop(signal.SIGINT)
    assert running.process.returncode == 0 and "Traceback" not in said and found.token not in said
    assert not place.exists()


def test_what_is_loopback():
    assert all(map(is_loopback, ["127.0.0.1", "127.8.8.8", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.0.1", "example.org", ""]))
    with bind("127.0.0.1", 0) as listening:
        assert listening.getsockname()[1] > 0


def test_the_pages_of_certificates_are_mounted(settings, tmp_path):
    with TestClient(create_app(replace(settings, prefix="/quiz"), [router(tmp_path)])) as client:
        reply = client.get(f"/quiz/c/{identifier.new()}")
    assert reply.status_code == 404 and "There is no certificate of this id" in reply.json()["message"]
    assert reply.headers["content-security-policy"] == "frame-ancestors 'none'"


def test_a_lab_without_graded_questions_starts_nothing(tmp_path):
    assert start(tmp_path) is None


@pytest.mark.skipif(os.name != "posix" or not any(KEYS.glob("*.yaml")), reason="needs the graded questions, and fork")
@pytest.mark.parametrize("broken", [False, True])
def test_the_service_lives_as_long_as_the_lab_and_the_lab_without_it(tmp_path, broken):
    """The "lab" is a program that waits for its standard input to end, and then ends with a status of its own."""
    data = tmp_path / "data"
    if broken:
        data.write_text("a file where a folder is needed")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(data)}
    program = "import sys; print('lab', flush=True); sys.stdin.read(); sys.exit(7)"
    command = [sys.executable, "-m", "quizzes.service.lab", "-c", program]
    lab = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert lab.stdout.readline() == b"lab\n"
    place, url = data / "offload_lab" / "service" / "connection.json", ""
    until = time.monotonic() + PATIENCE
    while not broken and not url and time.monotonic() < until:
        found = connections.read(place)
        url = found.url if found is not None else ""
        time.sleep(0.05)
    if not broken:
        status, body = ask(url, "GET", "/lessons/01", found.token)
        assert status == 200 and json.loads(body)["learner"] == "me"
    said = lab.communicate(timeout=PATIENCE)[1].decode()
    assert lab.returncode == 7 and "Traceback" not in said
    if broken:
        assert "key for receipts" in said
    while url and place.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not place.exists()


def test_tokens_are_not_kept():
    token = "token-of-ada-long-enough"
    assert token not in repr(vars(Tokens({token: "ada"})))
