"""Data integrity proofs of the suite `eddsa-jcs-2022` (W3C "Data Integrity EdDSA Cryptosuites v1.0", section 3.3). Pure."""

from __future__ import annotations

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import base58, did_key, ed25519
from quizzes.certificates.strict_json import canonical
from quizzes.say import _

PROOF_TYPE = "DataIntegrityProof"
CRYPTOSUITE = "eddsa-jcs-2022"
PURPOSE = "assertionMethod"

_REQUIRED = {"type", "cryptosuite", "created", "verificationMethod", "proofPurpose", "proofValue"}
_OPTIONAL = {"@context"}


class ProofError(ValueError):
    """The document does not carry a whole proof; the message says why, in a sentence without an end stop."""


def hash_data(document: dict[str, Any], options: dict[str, Any]) -> bytes:
    """The 64 bytes that are signed: SHA-256 of the canonical proof options, then SHA-256 of the canonical document.

    `document` is without its proof, `options` without `proofValue`. Raises MalformedJsonError for values that have no
    canonical form.
    """
    return hashlib.sha256(canonical(options)).digest() + hashlib.sha256(canonical(document)).digest()


def sign(document: dict[str, Any], private: Ed25519PrivateKey, created: str) -> dict[str, Any]:
    """A copy of `document` with its proof, dated `created` (`YYYY-MM-DDThh:mm:ssZ`).

    Raises ProofError when the document already carries a proof, MalformedJsonError when it has no canonical form.
    """
    if "proof" in document:
        raise ProofError(_("the document already carries a proof"))
    options: dict[str, Any] = {
        "type": PROOF_TYPE,
        "cryptosuite": CRYPTOSUITE,
        "created": created,
        "verificationMethod": did_key.method_of(did_key.did_of(ed25519.public_key(private))),
        "proofPurpose": PURPOSE,
    }
    if "@context" in document:
        options["@context"] = document["@context"]
    signature = private.sign(hash_data(document, options))
    return {**document, "proof": {**options, "proofValue": "z" + base58.encode(signature)}}


def verify(secured: dict[str, Any]) -> str:
    """The did:key that signed `secured`, a document with one proof. Raises ProofError where there is no such key.

    As the suite says, contexts that were added behind those of the proof do not break it; contexts before or instead of
    them do.
    """
    proof = secured.get("proof")
    if not isinstance(proof, dict):
        raise ProofError(_("it does not carry exactly one proof"))
    if not _REQUIRED <= proof.keys() <= _REQUIRED | _OPTIONAL:
        raise ProofError(_("the proof lacks a part or has one that does not belong there"))
    for key, expected in (("type", PROOF_TYPE), ("cryptosuite", CRYPTOSUITE), ("proofPurpose", PURPOSE)):
        if proof[key] != expected:
            raise ProofError(_("the proof's {key} is not {expected}").format(key=key, expected=expected))
    if not all(isinstance(proof[key], str) for key in _REQUIRED):
        raise ProofError(_("a part of the proof is not text"))
    options = {key: value for key, value in proof.items() if key != "proofValue"}
    document = {key: value for key, value in secured.items() if key != "proof"}
    if "@context" in options:
        document["@context"] = _proof_context(document.get("@context"), options["@context"])
    try:
        did = did_key.did_of_method(proof["verificationMethod"])
        if not proof["proofValue"].startswith("z"):
            raise ValueError(_("the signature is not written in base 58"))
        signature = base58.decode(proof["proofValue"][1:])
        ed25519.verify(did_key.key_of(did), signature, hash_data(document, options))
    except ValueError as error:
        raise ProofError(str(error)) from None
    return did


def _proof_context(of_document: Any, of_proof: Any) -> Any:
    listed = of_document if isinstance(of_document, list) else [of_document]
    signed = of_proof if isinstance(of_proof, list) else [of_proof]
    if listed[: len(signed)] != signed:
        raise ProofError(_("the contexts of the document do not begin with those of the proof"))
    return of_proof
