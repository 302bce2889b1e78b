"""From keygen to revoke, as an issuer and a stranger run it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quizzes.certificates import credential, identifier, keys, names, status_list
from quizzes.certificates.cli import app
from quizzes.certificates.judge import judge
from quizzes.certificates.registry import Registry

URL = "https://example.org/certificates"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(keys.PASSPHRASE_VARIABLE, "correct horse é")
    for name in ("key", "new"):
        assert run("keygen", "--out", tmp_path / name).exit_code == 0
    entry = {"student": "ada", "score": 2.6, "max_score": 3.0, "notes": []}
    (tmp_path / "results.json").write_text(json.dumps({"assignment": "lesson-01", "results": [entry]}))
    made = run("init", "--registry", tmp_path / "reg", "--key", tmp_path / "key", "--name", "A School", "--url", URL)
    assert made.exit_code == 0, made.output
    return tmp_path


def issue(place, *more, key="key"):
    common = ("--key", place / key, "--registry", place / "reg", "--out", place / "out", "--student", "ada")
    lesson = ("--results", place / "results.json", "--lesson", "01")
    result = run("issue", *common, *lesson, "--email", "Ada@Example.org ", *more)
    assert result.exit_code == 0, result.output
    return Path(result.stdout.splitlines()[0])


def verdict(place, what, *more):
    result = run("verify", what, "--registry", place / "reg", "--json", *more)
    report = json.loads(result.stdout)
    assert result.exit_code == (0 if report["verdict"] == "valid" else 1)
    return report


def test_the_key_is_encrypted_and_opens_only_with_its_passphrase(place, monkeypatch):
    assert b"ENCRYPTED" in (place / "key").read_bytes()
    monkeypatch.setenv(keys.PASSPHRASE_VARIABLE, "wrong")
    result = run("refresh", "--registry", place / "reg", "--key", place / "key")
    assert result.exit_code == 2 and "does not open" in result.stderr
    monkeypatch.delenv(keys.PASSPHRASE_VARIABLE)
    assert run("refresh", "--registry", place / "reg", "--key", place / "key").exit_code == 2


def test_issued_looked_up_and_revoked(place):
    file = issue(place, "--name", "김민준")
    shown = identifier.shown(file.stem).lower()
    for what in (file, file.with_suffix(".svg"), file.stem, shown):
        assert verdict(place, what)["verdict"] == "valid"
    certificate = credential.read(json.loads(file.read_bytes()))
    assert certificate.points.startswith("80–89 %") and certificate.assessed == "instructor"
    assert certificate.bound_to("ada@example.org") and not certificate.bound_to("eve@example.org")
    assert b"xample.org " not in file.read_bytes() and b"ada@" not in file.read_bytes()
    arguments = ("revoke", shown, "--registry", place / "reg", "--key", place / "key", "--reason", "issued in error")
    assert run(*arguments).exit_code == 0
    first = verdict(place, file)
    assert (first["verdict"], first["reason"]) == ("revoked", "issued in error") and first["revoked_since"] in first["message"]
    assert run(*arguments).exit_code == 0
    assert verdict(place, shown) == first
    assert verdict(place, issue(place))["verdict"] == "valid"


def test_a_new_name_supersedes_the_old_certificate(place):
    old = issue(place, "--name", "Ada One")
    new = issue(place, "--name", "Ada Two", "--replaces", old.stem)
    assert verdict(place, old)["superseded"] is True and verdict(place, new)["verdict"] == "valid"
    assert b"Two" not in (place / "reg" / "revocations.json").read_bytes()


def test_a_change_of_keys_keeps_old_certificates_and_ends_the_old_key(place):
    old = issue(place)
    rotated = run("rotate", "--registry", place / "reg", "--key", place / "key", "--new-key", place / "new")
    assert rotated.exit_code == 0, rotated.output
    assert verdict(place, old)["verdict"] == "valid"
    assert verdict(place, issue(place, key="new"), "--issuer", place / "key.pub")["verdict"] == "valid"
    ring = Registry(place / "reg").ring()
    assert [key.until is None for key in ring.keys] == [False, True]
    before = judge(old.read_bytes(), now=datetime.now(UTC), issuer=ring.current.did)
    assert before.verdict == "unknown issuer"
    document = json.loads((place / "reg" / "issuer.json").read_bytes())
    document["keys"][0]["until"] = "2099-01-01T00:00:00Z"
    (place / "reg" / "issuer.json").write_text(json.dumps(document))
    assert verdict(place, old)["verdict"] == "unknown issuer"


def test_verdicts_are_kept_apart(place):
    file = issue(place, "--valid-until", (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d"))
    data, published, now = file.read_bytes(), Registry(place / "reg").read(), datetime.now(UTC)
    assert judge(data, now=now).verdict == "unknown issuer"
    did = keys.load_issuer(str(place / "key.pub"))
    assert judge(data, now=now, issuer=did).verdict == "status unknown"
    assert judge(data, now=now + timedelta(days=3), published=published).verdict == "expired"
    assert judge(issue(place).read_bytes(), now=now + status_list.GOOD_FOR * 2, published=published).verdict == "status unknown"
    assert judge(data.replace(b"ada", b"eve"), now=now, published=published).verdict == "altered"
    assert judge(b"{}", now=now, published=published).verdict == "not a certificate"
    (place / "reg" / "status.json").unlink()
    assert verdict(place, file)["verdict"] == "status unknown"


def test_every_single_bit_counts(place):
    data, published, now = issue(place).read_bytes(), Registry(place / "reg").read(), datetime.now(UTC)
    assert judge(data, now=now, published=published).verdict == "valid"
    for place_of_bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[place_of_bit // 8] ^= 1 << place_of_bit % 8
        assert judge(bytes(changed), now=now, published=published).verdict in ("altered", "not a certificate"), place_of_bit


def test_it_fits_the_official_schema(place, vectors):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema comes with nbformat")
    schema = json.loads(vectors("1edtech-ob3", "ob_v3p0_achievementcredential_schema.json").read_text())
    jsonschema.Draft201909Validator(schema).validate(json.loads(issue(place).read_bytes()))


def test_a_published_test_key_is_refused_by_default(place):
    assert run("keygen", "--out", place / "test", "--test").exit_code == 0
    assert run("init", "--registry", place / "r2", "--key", place / "test", "--name", "T", "--url", URL).exit_code == 0
    file = issue(place, "--registry", place / "r2", key="test")
    for more, expected in (((), "unknown issuer"), (("--allow-test-keys",), "valid")):
        assert json.loads(run("verify", file, "--registry", place / "r2", "--json", *more).stdout)["verdict"] == expected


def test_short_lists_are_refused_and_the_example_is_read(vectors):
    text = vectors("w3c-bitstring-status-list", "spec-example-encodedList.txt").read_text().strip()
    assert len(status_list.decode(text)) * 8 >= status_list.ENTRIES
    short = json.loads(vectors("w3c-bitstring-status-list", "sl-encoded-list-short-fail.jsonld").read_text())
    for name in ("short-encoded-list-fail.jsonld", "sl-encoded-list-short-fail.jsonld", "single-purpose-ok.jsonld"):
        short = json.loads(vectors("w3c-bitstring-status-list", name).read_text())
        if "encodedList" in short["credentialSubject"] and name.endswith("fail.jsonld"):
            with pytest.raises(status_list.StatusListError) as caught:
                status_list.read(short, strict=False)
            assert caught.value.code == "STATUS_LIST_LENGTH_ERROR"


@pytest.mark.parametrize("number", [0, 1, 2**128 - 1, 0x0123456789ABCDEF0123456789ABCDEF])
def test_ids_there_and_back_as_people_write_them(number):
    made = identifier.encode(number)
    typed = identifier.shown(made).lower().replace("1", "l").replace("0", "o")
    assert identifier.parse(typed) == made and len(made) == 27
    for place in range(26):
        other = "7" if made[place] != "7" else "6"
        with pytest.raises(identifier.IdentifierError, match="check symbol is wrong"):
            identifier.parse(made[:place] + other + made[place + 1 :])


def test_names_that_hide_or_imitate():
    for name in ("Zoë", "김민준", "Renée-Ann O'Neil"):
        assert names.tidy(name) == name and names.lookalikes(name) == []
    assert names.lookalikes("Аda") and names.tidy("Zoe\u0308") == "Zoë"
    for hidden in "\u200e\u202e\u200b\u3164\n\x00":
        with pytest.raises(ValueError):
            names.check(f"a{hidden}b")
