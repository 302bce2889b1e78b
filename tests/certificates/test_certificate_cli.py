"""`offload-quiz certificate keygen | issue | verify`, as a person runs it."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from typer.testing import CliRunner

from quizzes.certificates import badge, credential, keys, publish
from quizzes.certificates.cli import app
from quizzes.certificates.verify import LARGEST_FILE

ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="file modes are a POSIX matter")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def passphrase(monkeypatch):
    monkeypatch.setenv(keys.PASSPHRASE_VARIABLE, "correct horse")


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "issuer key é"
    keys.generate(path)
    return path


@pytest.fixture
def results_file(tmp_path):
    path = tmp_path / "results.json"
    entries = [
        {"student": "ada", "score": 2.4, "max_score": 3.0, "notes": []},
        {"student": "bob", "score": 2.0, "max_score": 3.0, "notes": []},
        {"student": "eve", "score": 3.0, "max_score": 3.0, "notes": ["copied \u001b[31mcell"]},
        {"student": "a\u202eb", "score": 3.0, "max_score": 3.0, "notes": []},
    ]
    path.write_text(json.dumps({"assignment": "lesson-01", "results": entries}))
    return path


@pytest.fixture
def issue(key, results_file, tmp_path):
    def issue(*more, **changed):
        options = {"key": key, "results": results_file, "student": "ada", "lesson": "01", "out": tmp_path / "out"} | changed
        return run("issue", *(part for name, value in options.items() for part in (f"--{name}", value)), *more)

    return issue


@pytest.fixture
def issued(issue):
    result = issue("--name", "Zoë <b>", "--title", "Where did the memory go?")
    assert result.exit_code == 0, result.output
    return [Path(line) for line in result.stdout.splitlines()]


# keygen --------------------------------------------------------------------------------------------------------------


def test_keygen_makes_a_key_for_its_owner_alone(tmp_path):
    out = tmp_path / "key"
    result = run("keygen", "--out", out)
    assert result.exit_code == 0
    did = (tmp_path / "key.pub").read_text().strip()
    assert did in result.stdout and did.startswith("did:key:z6Mk")
    assert keys.load_issuer(str(tmp_path / "key.pub")) == keys.load_issuer(did) == did
    assert "PRIVATE" not in result.output
    if os.name == "posix":
        assert stat.S_IMODE(out.stat().st_mode) == 0o600


@posix
def test_keygen_does_not_rely_on_the_umask(tmp_path):
    before = os.umask(0)
    try:
        keys.generate(tmp_path / "key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


@pytest.mark.parametrize("existing", ["key", "key.pub"])
def test_keygen_never_overwrites(tmp_path, existing):
    (tmp_path / existing).write_text("mine")
    result = run("keygen", "--out", tmp_path / "key")
    assert result.exit_code == 2 and "already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "mine"


def test_keygen_does_not_follow_a_link_and_names_a_missing_folder(tmp_path):
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    assert run("keygen", "--out", tmp_path / "key").exit_code == 2
    assert not (tmp_path / "elsewhere").exists()
    result = run("keygen", "--out", tmp_path / "none" / "key")
    assert result.exit_code == 2 and "none" in result.stderr


def test_a_key_that_could_not_be_written_whole_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("keygen", "--out", tmp_path / "key")
    assert result.exit_code == 2 and "No space left" in result.stderr
    assert list(tmp_path.iterdir()) == []


# issue ---------------------------------------------------------------------------------------------------------------


def test_issue_writes_both_files_under_a_random_id(issued, tmp_path):
    assert sorted(path.suffix for path in issued) == [".json", ".svg"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in issued}
    secured = json.loads(issued[0].read_bytes())
    assert secured["id"] == f"urn:uuid:{issued[0].stem}"
    assert issued[1].read_bytes() == badge.render(secured)
    assert credential.read(secured).learner == "Zoë <b>"


def test_a_display_name_keeps_the_login_out_of_the_files(issued):
    for path in issued:
        assert not re.search(rb"\bada\b", path.read_bytes())


def test_without_a_name_the_login_stands_there(issue):
    secured = json.loads(Path(issue().stdout.splitlines()[0]).read_bytes())
    identity = secured["credentialSubject"]["identifier"][0]
    assert (identity["identityHash"], identity["identityType"]) == ("ada", "userName")


def test_two_certificates_have_two_ids(issue, tmp_path):
    issue()
    issue()
    assert len(list((tmp_path / "out").iterdir())) == 4


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"student": "carol"}, "no student"),
        ({"student": "bob"}, r"2 of 3 points, 2\.4 needed"),
        ({"pass-mark": "0.81"}, r"2\.43 needed"),
        ({"pass-mark": "0,8"}, "share"),
        ({"pass-mark": "nan"}, "share"),
        ({"pass-mark": "0"}, "share"),
        ({"pass-mark": "1.01"}, "share"),
        ({"pass-mark": "0.00001"}, "share"),
        ({"lesson": "1"}, "two digits"),
        ({"lesson": "../01"}, "two digits"),
        ({"lesson": "０１"}, "two digits"),
        ({"name": " "}, "0 characters"),
        ({"name": "x" * 101}, "101 characters"),
        ({"name": "a\u202eb"}, r"U\+202E"),
        ({"student": "a\u202eb"}, r"U\+202E"),
        ({"title": "x" * 101}, "101 characters"),
        ({"valid-until": "2020-01-01"}, "over"),
        ({"valid-until": "1.1.2030"}, "YYYY-MM-DD"),
        ({"results": "/nonexistent/results.json"}, "no such file"),
        ({"key": "/nonexistent/key"}, "no such file"),
    ],
)
def test_issue_refuses_in_words_and_writes_nothing(issue, tmp_path, changed, says):
    result = issue(**changed)
    assert result.exit_code == 2 and result.stdout == ""
    assert re.search(says, result.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\xff", b'{"assignment":"a","results":[{"student":"ada","score":NaN,"max_score":3}]}']
)
def test_malformed_results_are_refused(issue, results_file, tmp_path, data):
    results_file.write_bytes(data)
    result = issue()
    assert result.exit_code == 2 and "malformed" in result.stderr and str(results_file) in result.stderr
    assert not (tmp_path / "out").exists()


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_open_is_not_used(issue, key, tmp_path, mode):
    key.chmod(mode)
    result = issue()
    assert result.exit_code == 2 and "chmod 600" in result.stderr
    assert not (tmp_path / "out").exists()


def private_pem(private, encryption=None):
    encryption = encryption or serialization.NoEncryption()
    return private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def test_other_keys_are_refused(issue, key):
    encrypted = private_pem(keys.load_private(key), serialization.BestAvailableEncryption(b"secret"))
    for data in (
        b"",
        b"garbage",
        encrypted,
        private_pem(x25519.X25519PrivateKey.generate()),
        private_pem(ec.generate_private_key(ec.SECP256R1())),
    ):
        key.write_bytes(data)
        result = issue()
        assert result.exit_code == 2 and "keygen" in result.stderr, data


def test_notes_of_the_grader_are_shown_to_the_issuer_without_their_escapes(issue):
    result = issue(student="eve")
    assert result.exit_code == 0
    assert "copied \\x1b[31mcell" in result.stderr


def test_a_full_disk_leaves_no_half_certificate(issue, tmp_path, monkeypatch):
    real, calls = os.replace, []

    def second_fails(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device", str(source))
        real(source, target)

    monkeypatch.setattr(publish.os, "replace", second_fails)
    result = issue()
    assert result.exit_code == 2 and "No space left" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_named(issue, tmp_path):
    (tmp_path / "out").write_text("mine")
    result = issue()
    assert result.exit_code == 2 and str(tmp_path / "out") in result.stderr
    assert (tmp_path / "out").read_text() == "mine"


# verify --------------------------------------------------------------------------------------------------------------


def test_verify_without_an_issuer_says_what_it_does_not_know(issued, key):
    did = keys.load_issuer(str(keys.public_path(key)))
    for path in issued:
        result = run("verify", path)
        assert result.exit_code == 1
        assert result.stdout.startswith("UNKNOWN ISSUER") and "you named no issuer" in result.stdout
        assert (
            did in result.stdout and "Zoë <b>" in result.stdout and "identity of the learner was not checked" in result.stdout
        )


def test_verify_with_the_issuer(issued, key, tmp_path):
    did = keys.load_issuer(str(keys.public_path(key)))
    pem = tmp_path / "public.pem"
    public = keys.load_private(key).public_key()
    pem.write_bytes(public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    for path in issued:
        for issuer in (did, keys.public_path(key), pem):
            result = run("verify", path, "--issuer", issuer)
            assert result.exit_code == 0 and result.stdout.startswith("VALID")


def test_verify_with_another_issuer(issued, tmp_path):
    other = keys.generate(tmp_path / "other")
    for path in issued:
        result = run("verify", path, "--issuer", other)
        assert result.exit_code == 1 and "another key signed it" in result.stdout


def test_one_changed_byte_is_exit_1(issued, key):
    def run_verify(path):
        return run("verify", path, "--issuer", keys.public_path(key))

    for path in issued:
        data = path.read_bytes()
        for place in (0, 1, len(data) // 2, data.index(b"2.4"), len(data) - 1):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            result = run_verify(path)
            assert result.exit_code == 1 and result.stdout.startswith(("ALTERED", "NOT A CERTIFICATE")), (path, place)
        for changed in (data + b"\n", data[:-1], b"", data * 40):
            path.write_bytes(changed)
            assert run_verify(path).exit_code == 1
        path.write_bytes(data + b" " * LARGEST_FILE)
        result = run_verify(path)
        assert result.exit_code == 1 and "none has more than" in result.stdout
        path.write_bytes(data)
        assert run_verify(path).exit_code == 0


def test_json_output_is_one_object_and_repeats_nothing_of_a_refused_file(issued, key):
    did = keys.load_issuer(str(keys.public_path(key)))
    result = run("verify", issued[1], "--issuer", did, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0 and report["valid"] is True and report["verdict"] == "valid"
    assert report["issued_to"] == "Zoë <b>" and report["issuer"] == did and report["id"].endswith(issued[0].stem)
    issued[1].write_bytes(issued[1].read_bytes().replace(b"Certificate", b"Diploma"))
    result = run("verify", issued[1], "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1 and set(report) == {"valid", "verdict", "message"} and report["verdict"] == "altered"


@pytest.mark.parametrize("issuer", ["did:web:example.org", "did:key:z6Mk", "/nonexistent", "", "."])
def test_an_issuer_that_names_no_key_is_exit_2(issued, issuer):
    result = run("verify", issued[0], "--issuer", issuer)
    assert result.exit_code == 2 and result.stdout == "" and "--issuer" in result.stderr


def test_the_private_key_as_issuer_is_refused(issued, key):
    result = run("verify", issued[0], "--issuer", key)
    assert result.exit_code == 2 and "private key" in result.stderr


def test_what_cannot_be_read_is_exit_2(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        result = run("verify", path)
        assert result.exit_code == 2 and str(path) in result.stderr and result.stdout == ""


@posix
def test_a_pipe_or_a_device_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        assert run("verify", path).exit_code == 2


def test_a_terminal_that_knows_only_ascii(issued):
    environment = os.environ | {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}
    environment["PYTHONIOENCODING"] = "ascii"
    command = [sys.executable, "-c", "from quizzes.certificates.cli import app; app()", "verify", str(issued[1])]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1, result.stderr
    assert "Zo\\xeb <b>" in result.stdout


def test_who_only_verifies_does_not_wait_for_torch():
    code = "import sys; import quizzes.certificates.cli; print('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr
