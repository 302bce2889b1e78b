"""Receipts: signed under one key, refused when altered in any bit, counted once."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from quizzes.certificates import did_key, ed25519
from quizzes.receipts import PREFIX, Claims, ReceiptError, answer_hash, check, sign, tally

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
DID = did_key.did_of(ed25519.public_key(KEY))
TRUSTED = frozenset({DID})
CLAIMS = Claims(
    learner="ada",
    run="0" * 32,
    question="g01-1",
    variant="",
    answer_hash=answer_hash("c"),
    score=1.0,
    max_score=1.0,
    attempt=1,
    at="2026-12-02T22:38:41.123456Z",
    nonce="n1",
)
POINTS = {"g01-1": 1.0, "g01-2": 2.0}


def test_a_receipt_says_what_was_signed():
    assert check(sign(CLAIMS, KEY), TRUSTED) == replace(CLAIMS, issuer=DID)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(1, 2**40), st.floats(0, 1e6), st.integers(0, 9)
)
def test_any_claims_come_back(text, attempt, score, hints):
    claims = replace(CLAIMS, learner=text, variant=text, attempt=attempt, score=score, max_score=1e6, hints=hints)
    assert check(sign(claims, KEY), TRUSTED) == replace(claims, issuer=DID)


def test_the_signature_is_ed25519_over_canonical_json():
    _, payload, signature = sign(CLAIMS, KEY).split(".")
    data = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    # RFC 8785 for plain ASCII: sorted keys, no blanks, and 1.0 written as 1.
    said = asdict(CLAIMS) | {"issuer": DID, "score": 1, "max_score": 1}
    del said["hints"]
    oracle = json.dumps(said, sort_keys=True, separators=(",", ":"))
    assert data == oracle.encode()
    KEY.public_key().verify(base64.urlsafe_b64decode(signature + "=="), b"offload-lab receipt 1\n" + data)


def test_a_receipt_after_hints_is_of_a_form_of_its_own():
    receipt = sign(replace(CLAIMS, score=0.5, hints=2), KEY)
    form, payload, signature = receipt.split(".")
    data = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    said = asdict(CLAIMS) | {"issuer": DID, "score": 0.5, "max_score": 1, "hints": 2}
    assert form == "olr2" and data == json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    KEY.public_key().verify(base64.urlsafe_b64decode(signature + "=="), b"offload-lab receipt 2\n" + data)
    assert check(receipt, TRUSTED).hints == 2
    for other in ("olr1", "olr3", "olr", "OLR2"):
        with pytest.raises(ReceiptError):
            check(f"{other}.{payload}.{signature}", TRUSTED)


@pytest.mark.parametrize(
    ("form", "hints"), [("olr1", 1), ("olr1", 0), ("olr2", 0), ("olr2", None), ("olr2", 1.5), ("olr2", True)]
)
def test_signed_claims_of_the_other_form_are_refused(form, hints):
    """The issuer itself would have to sign such a thing: one set of claims has one text that passes."""
    said = asdict(CLAIMS) | {"issuer": DID, "score": 1, "max_score": 1, "hints": hints}
    if hints is None:
        del said["hints"]
    data = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    signature = KEY.sign(f"offload-lab receipt {form[-1]}\n".encode() + data)
    texts = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (data, signature)]
    with pytest.raises(ReceiptError, match=r"hints|nothing else"):
        check(".".join([form, *texts]), TRUSTED)


@pytest.mark.parametrize("hints", [0, 1])
def test_every_changed_bit_is_refused(hints):
    receipt = sign(replace(CLAIMS, hints=hints), KEY)
    for place in range(len(receipt)):
        for bit in range(7):
            altered = receipt[:place] + chr(ord(receipt[place]) ^ 1 << bit) + receipt[place + 1 :]
            with pytest.raises(ReceiptError):
                check(altered, TRUSTED)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda b: f"{PREFIX}.{base64.urlsafe_b64encode(b).decode()}.AAAA"))
def test_what_is_no_receipt_is_refused_with_a_sentence(text):
    with pytest.raises(ReceiptError, match=r"\.$"):
        check(text, TRUSTED)


def test_another_issuer_is_named():
    with pytest.raises(ReceiptError, match=r"did:key:z.*not an issuer that you trust"):
        check(sign(CLAIMS, OTHER), TRUSTED)
    payload = sign(CLAIMS, KEY).split(".")[1]
    forged = base64.urlsafe_b64encode(
        OTHER.sign(b"offload-lab receipt 1\n" + base64.urlsafe_b64decode(payload + "==="))
    ).decode()
    with pytest.raises(ReceiptError, match="altered or forged"):
        check(f"{PREFIX}.{payload}.{forged.rstrip('=')}", TRUSTED)


@pytest.mark.parametrize(
    "change", [{"score": 2.0}, {"score": float("nan")}, {"score": -1.0}, {"attempt": 0}, {"at": "now"}, {"hints": -1}]
)
def test_claims_out_of_range_are_never_signed(change):
    with pytest.raises(ReceiptError):
        sign(replace(CLAIMS, **change), KEY)


def signed(**change) -> str:
    return sign(replace(CLAIMS, **change), KEY)


def test_the_best_attempt_counts_and_a_copy_counts_once():
    receipts = [
        signed(score=0.0),
        signed(attempt=2, nonce="n2"),
        signed(attempt=2, nonce="n2"),
        signed(attempt=3, nonce="n3", score=0.5),
        signed(question="g01-2", nonce="n4", score=1.5, max_score=2.0),
    ]
    result = tally(receipts, TRUSTED, "ada", POINTS)
    assert result.score == 2.5
    assert result.best["g01-1"].attempt == 2
    assert [place for place, _ in result.refused] == [2]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"learner": "eve"}, "another learner"),
        ({"run": "1" * 32, "at": "2026-12-03T00:00:00.000000Z"}, "another run"),
        ({"question": "p01-open"}, "not part of this assignment"),
        ({"max_score": 100.0, "score": 100.0}, "which has 1"),
        ({"attempt": 4}, "3 count"),
    ],
)
def test_receipts_of_something_else_are_refused(change, why):
    result = tally([signed(score=0.5), signed(nonce="n2", **change)], TRUSTED, "ada", POINTS, attempts=3)
    assert result.score == 0.5
    assert [place for place, _ in result.refused] == [1] and why in result.refused[0][1]


@given(st.permutations([signed(score=0.25), signed(score=1.0, nonce="n2"), "nonsense", signed(learner="eve", attempt=2)]))
def test_two_receipts_of_one_attempt_give_the_lower_in_any_order(receipts):
    result = tally(receipts, TRUSTED, "ada", POINTS)
    assert result.score == 0.25
    assert len(result.refused) == 3


def test_a_named_run_excludes_the_others():
    later = signed(run="1" * 32, nonce="n2", at="2026-12-03T00:00:00.000000Z", score=0.25)
    assert tally([signed(), later], TRUSTED, "ada", POINTS, run="1" * 32).score == 0.25
    assert tally([signed(), later], TRUSTED, "ada", POINTS).score == 1.0
