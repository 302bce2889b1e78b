"""The issuer's list of keys: only the key before can name the next one, and only the last one signs the list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import keyring, signing
from quizzes.certificates.keyring import KeyringError
from quizzes.certificates.published import public_name

T0 = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = "2026-06-01T00:00:00Z"


@pytest.fixture(scope="module")
def keys():
    return [Ed25519PrivateKey.generate() for _ in range(4)]


@pytest.fixture(scope="module")
def document(keys):
    made = keyring.first(keys[0], name="A School", url="https://example.org", begin=T0, now=T0)
    for place in (1, 2):
        made = keyring.rotated(made, keys[place - 1], keys[place], now=T0 + timedelta(days=place))
    return made


def resigned(document, private):
    return signing.sign({part: value for part, value in document.items() if part != "proof"}, private, STAMP)


def test_a_whole_list_is_read_and_each_key_has_its_time(document, keys):
    ring = keyring.read(document)
    assert [key.did for key in ring.keys] == [public_name(private) for private in keys[:3]]
    assert ring.keys[0].covers(T0) and not ring.keys[0].covers(T0 + timedelta(days=1, seconds=1))
    assert ring.keys[1].covers(T0 + timedelta(days=1)) and ring.current.covers(T0 + timedelta(days=9999))


@pytest.mark.parametrize("signer", [0, 1, 3])
def test_a_list_signed_by_another_than_its_last_key_is_refused(document, keys, signer):
    with pytest.raises(KeyringError, match="not signed by its last key"):
        keyring.read(resigned(document, keys[signer]))


def test_a_key_that_the_one_before_did_not_name_is_refused(document, keys):
    stranger = keys[3]
    entry = signing.sign({"id": public_name(stranger), "from": document["keys"][2]["from"]}, stranger, STAMP)
    with pytest.raises(KeyringError, match="not vouched for"):
        keyring.read(resigned({**document, "keys": [*document["keys"][:2], entry]}, stranger))


def test_a_retired_key_cannot_rotate_and_no_key_comes_back(document, keys):
    with pytest.raises(KeyringError, match="current key"):
        keyring.rotated(document, keys[0], keys[3], now=T0 + timedelta(days=5))
    with pytest.raises(KeyringError, match="already"):
        keyring.rotated(document, keys[2], keys[0], now=T0 + timedelta(days=5))


@pytest.mark.parametrize(
    "change",
    [
        {"keys": []},
        {"keys": None},
        {"url": "https://example.org/"},
        {"url": "javascript:x"},
        {"name": "a\u202eb"},
        {"issued": "today"},
        {"more": 1},
    ],
)
def test_a_malformed_list_is_refused_whoever_signed_it(document, keys, change):
    with pytest.raises(KeyringError):
        keyring.read(resigned({**document, **change}, keys[2]))
    for nothing in (None, [], "x", {}):
        with pytest.raises(KeyringError):
            keyring.read(nothing)
