"""Proofs of eddsa-jcs-2022: the W3C's own example bit by bit, a check without our code, and swapped parts."""

from __future__ import annotations

import copy
import hashlib
import json

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from quizzes.certificates import base58, did_key, ed25519, signing
from quizzes.certificates.signing import ProofError
from quizzes.certificates.strict_json import canonical

ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.fixture
def w3c(vectors):
    folder = vectors("w3c-vc-di-eddsa", "TestVectors")
    suite = folder / "eddsa-jcs-2022"

    def read(name):
        text = (suite / name).read_text()
        return json.loads(text) if name.endswith(".json") else text

    pair = json.loads((folder / "keyPair.json").read_text())
    private = Ed25519PrivateKey.from_private_bytes(base58.decode(pair["privateKeyMultibase"][1:])[2:])
    return json.loads((folder / "unsigned.json").read_text()), private, read


def test_the_w3c_example_step_by_step(w3c):
    unsigned, private, read = w3c
    options = read("proofConfigJCS.json")
    assert canonical(unsigned).decode() == read("canonDocJCS.txt")
    assert canonical(options).decode() == read("proofCanonJCS.txt")
    assert hashlib.sha256(canonical(unsigned)).hexdigest() == read("docHashJCS.txt")
    assert hashlib.sha256(canonical(options)).hexdigest() == read("proofHashJCS.txt")
    assert signing.hash_data(unsigned, options).hex() == read("combinedHashJCS.txt")
    assert private.sign(signing.hash_data(unsigned, options)).hex() == read("sigHexJCS.txt")


def test_the_w3c_example_is_signed_to_the_same_document(w3c):
    unsigned, private, read = w3c
    signed = signing.sign(unsigned, private, read("proofConfigJCS.json")["created"])
    assert signed == read("signedJCS.json")
    assert signed["proof"]["proofValue"] == read("sigBTC58JCS.txt")


def test_the_w3c_example_verifies(w3c):
    _, private, read = w3c
    assert signing.verify(read("signedJCS.json")) == did_key.did_of(ed25519.public_key(private))


def test_a_certificate_verifies_without_our_code(secured):
    """The steps of the specification, by `cryptography` and integers alone."""
    alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

    def from_base58(text, length):
        number = 0
        for symbol in text:
            number = number * 58 + alphabet.index(symbol)
        return number.to_bytes(length, "big")

    document = {key: value for key, value in secured.items() if key != "proof"}
    options = {key: value for key, value in secured["proof"].items() if key != "proofValue"}
    digest = hashlib.sha256(rfc8785.dumps(options)).digest() + hashlib.sha256(rfc8785.dumps(document)).digest()
    multikey = from_base58(options["verificationMethod"].split("#z")[1], 34)
    assert multikey[:2] == b"\xed\x01"
    signature = from_base58(secured["proof"]["proofValue"][1:], 64)
    Ed25519PublicKey.from_public_bytes(multikey[2:]).verify(signature, digest)
    assert secured["issuer"]["id"] == options["verificationMethod"].split("#")[0]


def test_signing_leaves_the_document_alone_and_refuses_a_second_proof(unsigned, private):
    before = copy.deepcopy(unsigned)
    signed = signing.sign(unsigned, private, "2026-03-01T12:00:00Z")
    assert unsigned == before
    with pytest.raises(ProofError, match="already"):
        signing.sign(signed, private, "2026-03-01T12:00:00Z")


def test_contexts_behind_those_of_the_proof_do_not_break_it_others_do(secured):
    added = "https://example.org/context"
    contexts = secured["@context"]
    assert signing.verify({**secured, "@context": [*contexts, added]})
    for changed in ([added, *contexts], [added, contexts[1]], contexts[:1], contexts[::-1], [], None, contexts[0]):
        with pytest.raises(ProofError, match="context"):
            signing.verify({**secured, "@context": changed})
    with pytest.raises(ProofError, match="does not fit"):
        signing.verify({**secured, "proof": {**secured["proof"], "@context": contexts[:1]}})


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("type", "Ed25519Signature2020"),
        ("type", ["DataIntegrityProof"]),
        ("cryptosuite", "eddsa-rdfc-2022"),
        ("cryptosuite", "eddsa-2022"),
        ("proofPurpose", "authentication"),
        ("proofPurpose", None),
        ("created", "2026-03-01T12:00:01Z"),
        ("created", 5),
        ("verificationMethod", "https://example.org/key"),
        ("verificationMethod", {}),
        ("proofValue", ""),
        ("proofValue", "z"),
        ("proofValue", "z1"),
        ("proofValue", ["z"]),
        ("@context", []),
        ("@context", {}),
        ("previousProof", "urn:x"),
        ("domain", "example.org"),
        ("expires", "2030-01-01T00:00:00Z"),
        ("id", "urn:uuid:1"),
    ],
)
def test_a_changed_or_added_part_of_the_proof_breaks_it(secured, part, value):
    with pytest.raises(ProofError):
        signing.verify({**secured, "proof": {**secured["proof"], part: value}})


@pytest.mark.parametrize(
    "part", ["type", "cryptosuite", "created", "verificationMethod", "proofPurpose", "proofValue", "@context"]
)
def test_a_missing_part_of_the_proof_breaks_it(secured, part):
    proof = {key: value for key, value in secured["proof"].items() if key != part}
    with pytest.raises(ProofError):
        signing.verify({**secured, "proof": proof})


def test_exactly_one_proof(secured):
    for proof in ([secured["proof"]], [secured["proof"], secured["proof"]], [], None, "z"):
        with pytest.raises(ProofError, match="exactly one proof"):
            signing.verify({**secured, "proof": proof})
    with pytest.raises(ProofError, match="exactly one proof"):
        signing.verify({key: value for key, value in secured.items() if key != "proof"})


def test_a_purpose_or_suite_that_was_truly_signed_is_still_refused(unsigned, private, did):
    """The signature is right over what it says; what it says is not an assertion of this suite."""
    for part, value in (
        ("proofPurpose", "authentication"),
        ("cryptosuite", "eddsa-rdfc-2022"),
        ("type", "Other"),
        ("domain", "example.org"),
    ):
        options = {
            "type": signing.PROOF_TYPE,
            "cryptosuite": signing.CRYPTOSUITE,
            "created": "2026-03-01T12:00:00Z",
            "verificationMethod": did_key.method_of(did),
            "proofPurpose": signing.PURPOSE,
            "@context": unsigned["@context"],
            part: value,
        }
        signature = private.sign(signing.hash_data(unsigned, options))
        proof = {**options, "proofValue": "z" + base58.encode(signature)}
        with pytest.raises(ProofError, match="does not belong" if part == "domain" else f"{part} is not"):
            signing.verify({**unsigned, "proof": proof})


def test_the_same_signature_written_otherwise_is_refused(secured):
    value = secured["proof"]["proofValue"]
    raw = base58.decode(value[1:])
    second = raw[:32] + (int.from_bytes(raw[32:], "little") + ORDER).to_bytes(32, "little")
    forms = ["z" + base58.encode(second), "z1" + value[1:], "m" + value[1:], "f" + raw.hex(), value + "\n", " " + value]
    for form in forms:
        with pytest.raises(ProofError):
            signing.verify({**secured, "proof": {**secured["proof"], "proofValue": form}})


def test_another_key_in_the_proof_breaks_it(secured):
    other = did_key.did_of(ed25519.public_key(Ed25519PrivateKey.from_private_bytes(bytes(32))))
    with pytest.raises(ProofError, match="does not fit"):
        signing.verify({**secured, "proof": {**secured["proof"], "verificationMethod": did_key.method_of(other)}})
