"""Keys and signatures: the official cases, and what a lenient reader would let through."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from quizzes.certificates import base58, did_key, ed25519

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def test_every_case_of_rfc_8032_signs_and_verifies(vectors):
    lines = vectors("rfc8032-ed25519", "sign.input").read_text().split()
    assert len(lines) == 1024
    for line in lines:
        seed_and_key, key, message, signature_and_message = (bytes.fromhex(part) for part in line.split(":")[:4])
        signature = signature_and_message[:64]
        private = Ed25519PrivateKey.from_private_bytes(seed_and_key[:32])
        assert ed25519.public_key(private) == key
        assert private.sign(message) == signature
        ed25519.verify(key, signature, message)
        with pytest.raises(ValueError, match="does not fit"):
            ed25519.verify(key, signature, message + b"\0")


def add(a, b):
    """The sum of two points (x, y) of -x² + y² = 1 + d·x²·y²."""
    (x1, y1), (x2, y2) = a, b
    cross = D * x1 * x2 * y1 * y2
    x3 = (x1 * y2 + x2 * y1) * pow(1 + cross, P - 2, P)
    y3 = (y1 * y2 + x1 * x2) * pow(1 - cross, P - 2, P)
    return x3 % P, y3 % P


def times(scalar, point):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def decode(key):
    y = int.from_bytes(key, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square:
        return None
    return (P - x if x & 1 != key[31] >> 7 else x), y


def encode(point):
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


def small_order_keys():
    """All eight points whose order divides eight, made by multiplying points of the curve with the prime order."""
    keys = set()
    candidate = 2
    while len(keys) < 8:
        point = decode(candidate.to_bytes(32, "little"))
        if point is not None:
            keys.add(encode(times(ORDER, point)))
        candidate += 1
    return keys


def test_the_eight_keys_of_small_order_are_refused():
    keys = small_order_keys()
    for key in keys:
        with pytest.raises(ValueError, match="small order"):
            ed25519.check_public_key(key)
        other_sign = key[:31] + bytes([key[31] ^ 0x80])
        with pytest.raises(ValueError, match="small order"):
            ed25519.check_public_key(other_sign)


def test_a_signature_that_fits_everything_is_refused():
    neutral = (1).to_bytes(32, "little")
    forged = neutral + bytes(32)  # R = neutral point, S = 0: the equation S·B = R + h·A holds for every message
    with pytest.raises(ValueError, match="small order"):
        ed25519.verify(neutral, forged, b"anything")


@pytest.mark.parametrize("y", [P, P + 1, P + 3, 2**255 - 1])
def test_a_key_that_is_not_reduced_is_refused(y):
    with pytest.raises(ValueError, match="canonical"):
        ed25519.check_public_key(y.to_bytes(32, "little"))


@given(st.binary(max_size=64), st.integers(min_value=1, max_value=14))
def test_the_second_form_of_a_signature_is_refused(message, factor):
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    signature = private.sign(message)
    second = int.from_bytes(signature[32:], "little") + factor * ORDER
    with pytest.raises(ValueError, match="signature is not written"):
        ed25519.verify(ed25519.public_key(private), signature[:32] + second.to_bytes(32, "little"), message)


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_key_of_another_length_is_refused(length):
    with pytest.raises(ValueError, match="32 bytes"):
        ed25519.check_public_key(b"\x05" * length)


@pytest.mark.parametrize("length", [0, 63, 65])
def test_a_signature_of_another_length_is_refused(length):
    key = ed25519.public_key(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    with pytest.raises(ValueError, match="64 bytes"):
        ed25519.verify(key, bytes(length), b"")


@pytest.mark.parametrize(
    ("data", "written"),
    [
        (b"", ""),
        (b"Hello World!", "2NEpo7TZRRrLZSi2U"),
        (b"\x00\x00\x28\x7f\xb4\xcd", "11233QC4"),
        (b"\x00", "1"),
        (b"\xff" * 4, "7YXq9G"),
    ],
)
def test_base_58_of_known_bytes(data, written):
    assert base58.encode(data) == written
    assert base58.decode(written) == data


@given(st.binary(max_size=100))
def test_base_58_there_and_back(data):
    assert base58.decode(base58.encode(data)) == data


@given(st.text(alphabet=base58.ALPHABET, max_size=100))
def test_a_base_58_text_is_the_only_one_of_its_bytes(written):
    assert base58.encode(base58.decode(written)) == written


@pytest.mark.parametrize("written", ["0", "O", "I", "l", "a b", "é", "１", "2" * 201])
def test_base_58_refuses_what_does_not_belong(written):
    with pytest.raises(ValueError, match=r"base 58"):
        base58.decode(written)


def test_the_did_of_the_w3c_key_pair(vectors):
    pair = json.loads(vectors("w3c-vc-di-eddsa", "TestVectors", "keyPair.json").read_text())
    did = "did:key:" + pair["publicKeyMultibase"]
    seed = base58.decode(pair["privateKeyMultibase"][1:])[2:]
    key = ed25519.public_key(Ed25519PrivateKey.from_private_bytes(seed))
    assert did_key.did_of(key) == did
    assert did_key.key_of(did) == key
    assert did_key.method_of(did) == f"{did}#{pair['publicKeyMultibase']}"


def test_only_strict_ed25519_dids_are_taken(did):
    key = did_key.key_of(did)
    bad = [
        "",
        did[8:],
        did.upper(),
        did + " ",
        did + "\n",
        did[:-1],
        did.replace("did:key:z", "did:key:u"),
        did.replace("did:key:", "did:web:"),
        "did:key:z" + base58.encode(b"\xec\x01" + key),  # X25519
        "did:key:z" + base58.encode(b"\xed\x01" + key + b"\0"),
        "did:key:z" + base58.encode(b"\xed\x01" + (1).to_bytes(32, "little")),
        "did:key:did:key:" + did[8:],
    ]
    for name in bad:
        with pytest.raises(ValueError):
            did_key.key_of(name)


def test_a_method_names_its_own_key_and_nothing_else(did):
    assert did_key.did_of_method(did_key.method_of(did)) == did
    for method in (
        did,
        did + "#",
        f"{did}#{did}",
        did_key.method_of(did) + "#",
        f"{did}#z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2",
    ):
        with pytest.raises(ValueError, match="verification method"):
            did_key.did_of_method(method)
