"""Verify says yes to the file as it was issued and no to every other."""

from __future__ import annotations

import copy
import dataclasses
import json
import uuid
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from quizzes.certificates import badge, credential, did_key, ed25519, signing
from quizzes.certificates.strict_json import canonical
from quizzes.certificates.verify import CLOCK_TOLERANCE, LARGEST_FILE, file_bytes, verify

NOW = datetime(2026, 6, 1, tzinfo=UTC)
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def as_json(secured):
    return file_bytes(secured)


@pytest.fixture(scope="module")
def as_svg(secured):
    return badge.render(secured)


@pytest.fixture(scope="module")
def sign_again(private):
    """Signs a changed document with the issuer's own key: what is refused then is refused for its content."""

    def sign(document, created="2026-03-01T12:00:00Z"):
        return signing.sign({key: value for key, value in document.items() if key != "proof"}, private, created)

    return sign


def refused(data, code=None, **more):
    verdict = verify(data, now=NOW, **more)
    assert not verdict.valid
    assert code is None or verdict.code == code, verdict
    assert verdict.message.endswith(".") and verdict.message[0].isupper()
    return verdict


def test_the_files_as_issued_are_whole(as_json, as_svg, did):
    for data in (as_json, as_svg):
        verdict = verify(data, now=NOW)
        assert verdict.valid and verdict.code == "valid" and not verdict.issuer_checked
        verdict = verify(data, issuer=did, now=NOW)
        assert verdict.valid and verdict.issuer_checked


def test_certificates_of_every_edition_stay_valid():
    """Files out in the world must verify for years: if this fails, a new edition of the drawing is due, not new files here."""
    for shape, editions in (("edition-1", (1,)), ("edition-2", (2, 3))):
        data = (GOLDEN / f"{shape}.json").read_bytes()
        assert verify(data, now=NOW).valid, shape
        for edition in editions:
            svg = (GOLDEN / f"edition-{edition}.svg").read_bytes()
            assert verify(svg, now=NOW).valid, edition
            assert badge.render(json.loads(data), edition=edition) == svg


# Every single byte ---------------------------------------------------------------------------------------------------


def changes(data, place):
    """One byte flipped in one bit, made a digit, made a space, left out, doubled, and one put before it."""
    byte = data[place]
    before, after = data[:place], data[place + 1 :]
    for other in {byte ^ 1, byte ^ 0x20, byte ^ 0x80, 0x20, 0x30, 0x00} - {byte}:
        yield before + bytes([other]) + after
    yield before + after
    for other in (byte, 0x20, 0x0A):
        yield before + bytes([other]) + data[place:]


def test_every_byte_of_the_json_counts(as_json):
    for place in range(len(as_json)):
        for changed in changes(as_json, place):
            assert changed == as_json or not verify(changed, now=NOW).valid, (place, changed[place : place + 20])
    for byte in range(256):
        assert not verify(as_json + bytes([byte]), now=NOW).valid


def test_every_byte_of_the_svg_counts(as_svg):
    inside = range(as_svg.index(b"<openbadges"), as_svg.index(b"</openbadges:credential>") + 24)
    # The picture is drawn anew for each change outside of the credential; every 53rd byte here, random ones below.
    places = {*inside[::3], *range(0, 60), *range(0, len(as_svg), 53), *range(len(as_svg) - 10, len(as_svg))}
    for place in sorted(places):
        byte = as_svg[place]
        for changed in (
            as_svg[:place] + bytes([byte ^ 1]) + as_svg[place + 1 :],
            as_svg[:place] + as_svg[place + 1 :],
            as_svg[:place] + b" " + as_svg[place:],
        ):
            assert not verify(changed, now=NOW).valid, (place, changed[place : place + 20])
    for byte in (0x00, 0x0A, 0x20):
        assert not verify(as_svg + bytes([byte]), now=NOW).valid


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_random_damage_to_either_file_is_noticed(as_json, as_svg, data):
    original = data.draw(st.sampled_from([as_json, as_svg]))
    start = data.draw(st.integers(0, len(original)))
    length = data.draw(st.integers(0, 40))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[start + length :]
    assert verify(changed, now=NOW).valid == (changed == original)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda tail: b"<" + tail), st.text().map(str.encode)))
def test_no_bytes_make_it_stumble(data):
    refused(data)


# The JSON ------------------------------------------------------------------------------------------------------------


def test_the_same_json_written_otherwise_is_refused_and_said_to_be_that(secured, as_json):
    for data in (
        json.dumps(secured).encode(),
        json.dumps(secured, indent=2, ensure_ascii=False).encode() + b"\n",
        json.dumps(dict(reversed(secured.items())), separators=(",", ":"), ensure_ascii=False).encode() + b"\n",
        as_json.rstrip(b"\n"),
        as_json.replace(b"\n", b"\r\n"),
        as_json + b"\n",
    ):
        verdict = refused(data, "altered")
        assert "content is whole" in verdict.message and "byte for byte" in verdict.message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("credentialSubject", "identifier", 0, "identityHash"), "Mallory"),
        (("credentialSubject", "result", 0, "value"), "3"),
        (("credentialSubject", "achievement", "name"), "Lesson 02"),
        (("id",), "urn:uuid:3f8e0b57-6b1f-4c8a-9a55-1f6f0c1d2e3b"),
        (("validFrom",), "2026-03-02T12:00:00Z"),
        (("validUntil",), "2030-01-01T00:00:00Z"),
        (("evidence", 0, "description"), "Identity checked."),
    ],
)
def test_changed_content_in_perfect_form_is_refused(secured, path, value):
    changed = copy.deepcopy(secured)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    refused(file_bytes(changed), "altered")
    refused(badge.render(changed), "altered")


def test_keys_that_stand_twice_are_refused(as_json):
    doubled = as_json.replace(b'{"@context"', b'{"name":"Other","@context"', 1)
    assert "twice" in refused(doubled, "malformed").message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"null\n",
        b"[]\n",
        b'"x"\n',
        b"{}\n",
        b'{"proof":{}}\n',
        b'{"valid": true}\n',
        b"[" * 100_000,
        b'{"a":' * 20_000,
        b"<" * 100_000,
        b"9" * 100_000,
        b"\xff\xfe{\0}\0",
        b"\xef\xbb\xbf{}",
        b" " * (LARGEST_FILE + 1),
        b"<svg " + b" " * LARGEST_FILE,
        b'{"a":NaN}',
        b"PK\x03\x04",
        b"\x89PNG\r\n\x1a\n",
    ],
)
def test_what_is_no_certificate_is_refused(data):
    refused(data)


def test_signed_things_that_are_no_certificates_are_refused(sign_again, unsigned):
    cases = [
        {"hello": "world"},
        {**unsigned, "credentialStatus": {"id": "urn:x", "type": "BitstringStatusListEntry"}},
        {**unsigned, "credentialSubject": [unsigned["credentialSubject"]]},
        {**unsigned, "name": 5},
        {**unsigned, "name": "a\u202eb"},
        {**unsigned, "type": ["VerifiableCredential"]},
        {**unsigned, "issuer": unsigned["issuer"]["id"]},
        {**unsigned, "@context": [*unsigned["@context"], "https://example.org/more"]},
        {**unsigned, "validUntil": None},
        {**unsigned, "validFrom": "2026-03-01"},
    ]
    for document in cases:
        verdict = refused(file_bytes(sign_again(document)), "malformed")
        assert "not a certificate" in verdict.message and verdict.certificate is None


def test_a_context_added_behind_is_refused_here_although_the_proof_allows_it(secured):
    added = {**secured, "@context": [*secured["@context"], "https://example.org/more"]}
    assert signing.verify(added)
    refused(file_bytes(added), "malformed")


def test_a_result_below_the_points_needed_is_refused(award, did, issued, sign_again):
    failed = dataclasses.replace(award, score=credential.Decimal("2.3"))
    document = credential.build(failed, issuer=did, issued=issued, identifier=uuid.uuid4())
    assert "points needed" in refused(file_bytes(sign_again(document)), "malformed").message


# The issuer ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mallory():
    private = Ed25519PrivateKey.from_private_bytes(bytes(32))
    return private, did_key.did_of(ed25519.public_key(private))


def test_a_forger_with_a_key_of_his_own_is_found_by_the_issuer(unsigned, did, mallory):
    private, own = mallory
    forged = signing.sign({**unsigned, "issuer": {"id": own, "type": ["Profile"]}}, private, "2026-03-01T12:00:00Z")
    for data in (file_bytes(forged), badge.render(forged)):
        assert verify(data, now=NOW).valid
        verdict = refused(data, "issuer", issuer=did)
        assert own in verdict.message and did in verdict.message


def test_a_forger_cannot_sign_in_the_name_of_the_issuer(unsigned, mallory):
    forged = signing.sign(unsigned, mallory[0], "2026-03-01T12:00:00Z")
    for data in (file_bytes(forged), badge.render(forged)):
        assert "key of another" in refused(data, "altered").message


# Time ----------------------------------------------------------------------------------------------------------------


def test_dates_to_come_are_refused_beyond_the_tolerance(secured, issued, sign_again, unsigned):
    data = file_bytes(secured)
    assert verify(data, now=issued - CLOCK_TOLERANCE).valid
    verdict = verify(data, now=issued - CLOCK_TOLERANCE - timedelta(seconds=1))
    assert (verdict.valid, verdict.code) == (False, "too early")
    later = file_bytes(sign_again(unsigned, created="2026-06-01T00:05:01Z"))
    refused(later, "too early")


def test_a_certificate_runs_out(award, did, issued, sign_again):
    end = issued + timedelta(days=10)
    document = credential.build(award, issuer=did, issued=issued, valid_until=end, identifier=uuid.uuid4())
    secured = sign_again(document)
    for data in (file_bytes(secured), badge.render(secured)):
        assert verify(data, now=end).valid
        verdict = verify(data, now=end + timedelta(seconds=1))
        assert (verdict.valid, verdict.code) == (False, "expired")
        assert "2026-03-11" in verdict.message


# The picture ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b">Certificate</text>", b">Diploma</text>"),
        (b"2.5 of 3 points (2.4 needed)", b"3 of 3 points (2.4 needed)"),
        (b"</svg>\n", b'<text x="10" y="20">with honours</text></svg>\n'),
        (b"</svg>\n", b"<script>alert(1)</script></svg>\n"),
        (b"</svg>\n", b"</svg>"),
        (b"</svg>\n", b"</svg>\n<!-- -->"),
        (b"\n", b"\r\n"),
        (b'fill="#000000"', b'fill="#000001"'),
        (b'<svg data-edition="1" ', b'<svg data-edition="1" onload="alert(1)" '),
        (b"<openbadges:credential><![CDATA[", b"<!--x--><openbadges:credential><![CDATA["),
        (b'xmlns="http://www.w3.org/2000/svg"', b'xmlns="http://www.w3.org/1999/xhtml"'),
    ],
)
def test_a_doctored_picture_around_a_whole_credential_is_refused(as_svg, old, new):
    assert old in as_svg
    verdict = refused(as_svg.replace(old, new), "altered")
    assert "picture around it" in verdict.message and verdict.certificate is not None


def test_a_name_changed_everywhere_in_the_picture_but_not_in_the_credential(secured, as_svg):
    other = copy.deepcopy(secured)
    other["credentialSubject"]["identifier"][0]["identityHash"] = "Mallory"
    drawn = badge.render(other)
    start, end = drawn.index(b"<![CDATA["), drawn.index(b"]]></openbadges")
    inside = as_svg[as_svg.index(b"<![CDATA[") : as_svg.index(b"]]></openbadges")]
    assert "picture around it" in refused(drawn[:start] + inside + drawn[end:], "altered").message


def test_a_second_credential_or_another_edition_does_not_help(as_svg, secured):
    start, end = as_svg.index(b"<openbadges"), as_svg.index(b"</openbadges:credential>") + 24
    baked = as_svg[start:end]
    refused(as_svg[:end] + baked + as_svg[end:], "altered")
    refused(as_svg.replace(b'data-edition="1"', b'data-edition="2"'), "malformed")
    # The same credential in entities instead of a CDATA section reads the same to an XML parser.
    entities = b"<openbadges:credential>" + escape(canonical(secured).decode()).encode() + b"</openbadges:credential>"
    refused(as_svg[:start] + entities + as_svg[end:], "malformed")


@pytest.mark.parametrize(
    "head",
    [
        b'<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n',
        b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n',
        b'<?xml version="1.0" encoding="UTF-7"?>\n',
        b'<?xml-stylesheet href="https://example.org/x.css"?>\n',
    ],
)
def test_a_prologue_is_refused(as_svg, head):
    refused(head + as_svg, "malformed")
