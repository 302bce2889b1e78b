"""A certificate of one's own: to whom, when it is a specimen, what it verifies as, and ways to bend it."""

import hashlib
import json
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from course import own_certificate
from course.own_certificate import SPECIMEN, Drawn, flipped, issue, refused, tampered, verdict


@pytest.fixture(scope="module")
def own():
    return issue("Zoë Ångström 김", 10, 12, b"answers")


def achievement(own):
    return own.document["credentialSubject"]["achievement"]["name"]


def test_who_has_the_points_is_named_and_it_says_that_it_is_self_issued(own):
    assert own.earned and own.learner == "Zoë Ångström 김" and not own.notes
    assert achievement(own).endswith("(self-issued)")
    assert own.document["evidence"][0]["genre"] == "self-paced" and "credentialStatus" not in own.document
    assert own.data[own.place :].startswith(own.learner.encode())


@pytest.mark.parametrize("reached, earned", [(9.6, True), (9.59, False), (0, False), (12, True), (0.1 + 0.2 + 9.3, True)])
def test_four_fifths_of_the_points_are_needed(reached, earned):
    made = issue("Ada", reached, 12, b"")
    assert made.earned is earned and (made.learner == "Ada") is earned
    assert achievement(made).endswith("(self-issued)" if earned else "(specimen, not earned)")
    assert verdict(made.data, made.did).verdict == "valid"


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "Ada\u202e", "Ada\u200b", "a\nb\0", None, 5, ["Ada"], "\ud800"])
def test_a_name_that_may_not_stand_there_is_said_and_nothing_is_lost(name):
    made = issue(name, 12, 12, b"")
    assert made.learner == SPECIMEN and made.notes and verdict(made.data, made.did).verdict == "valid"
    assert achievement(made).endswith("(specimen)")


@pytest.mark.parametrize("name", ['Ann "Zip" O\'Neil', "<b>Bo</b>", "C:\\path", "Éa"])
def test_a_name_with_signs_of_json_and_html_is_one_name(name):
    made = issue(name, 12, 12, b"")
    assert verdict(made.data, made.did).certificate.learner == name
    assert verdict(flipped(made.data, made.place), made.did).verdict in ("altered", "not a certificate")
    drawn = ElementTree.fromstring(Drawn(made).svg())
    assert not [part for part in drawn.iter() if part.tag.endswith("}b") or part.tag == "b"]


def test_each_key_is_new_unless_one_is_given_and_the_evidence_is_the_hash():
    key, now = Ed25519PrivateKey.generate(), datetime(2026, 5, 1, tzinfo=UTC)
    one, other = issue("A", 1, 1, b"r", key, now), issue("A", 1, 1, b"r", key, now)
    assert one.did == other.did != issue("A", 1, 1, b"r").did and one.data != other.data
    assert one.document["validFrom"] == "2026-05-01T00:00:00Z"
    import base64

    told = one.document["evidence"][0]["id"].removeprefix("ni:///sha-256;")
    assert base64.urlsafe_b64decode(told + "=") == hashlib.sha256(b"r").digest()


def test_a_bit_in_each_byte_is_refused(own, monkeypatch):
    assert refused(own.data, own.did) == (len(own.data), len(own.data))
    whole = verdict(own.data, own.did)
    monkeypatch.setattr(own_certificate, "verdict", lambda data, issuer: whole)
    assert refused(own.data, own.did) == (0, len(own.data)), "a verifier that takes all is seen"


@pytest.mark.parametrize(
    "way, expected",
    [
        ("spaces", "altered"),
        ("line end", "altered"),
        ("cut off", "not a certificate"),
        ("signed again", "unknown issuer"),
        ("another issuer", "altered"),
    ],
)
def test_each_way_of_bending_it_has_its_verdict(own, way, expected):
    assert verdict(tampered(own, way), own.did).verdict == expected
    if way == "spaces":
        assert json.loads(tampered(own, way)) == own.document


def test_another_way_is_refused_by_name(own):
    with pytest.raises(ValueError, match="way='burn': one of 'spaces', "):
        tampered(own, "burn")


def test_the_drawing_has_its_words_and_is_itself_a_certificate(own):
    drawn = Drawn(own)
    assert own.learner in drawn.text() and verdict(drawn.svg().encode(), own.did).verdict == "valid"
    assert 'alt="The certificate, drawn' in drawn.bundle()["text/html"]


def test_at_the_prompt_it_is_what_the_verifier_says(own, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = own_certificate.at_the_prompt(flipped(own.data, 100), own.did)
    assert said.startswith("$ offload-quiz certificate verify certificate.json --issuer did:key:")
    assert "ALTERED: certificate.json" in said and said.endswith("(exit status 1)") and not list(tmp_path.iterdir())
