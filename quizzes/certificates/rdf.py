"""Data integrity proofs of the suite `eddsa-rdfc-2022`, for wallets and validators. Needs the extra `rdf` (pyld); no network.

The contexts come from this package alone: a document that names another one is refused, not looked up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import base58, did_key, ed25519
from quizzes.certificates.parts import CONTEXTS
from quizzes.certificates.signing import PROOF_TYPE, PURPOSE, ProofError
from quizzes.say import _

CRYPTOSUITE = "eddsa-rdfc-2022"
_FILES = dict(zip(CONTEXTS, ("credentials-v2.json", "ob-3.0.3.json"), strict=True))
_REQUIRED = {"type", "cryptosuite", "created", "verificationMethod", "proofPurpose", "proofValue"}


class RdfMissingError(RuntimeError):
    """The extra `rdf` is not installed; the message says how to install it."""


def _pyld() -> Any:
    try:
        from pyld import jsonld
    except ImportError:
        raise RdfMissingError(_("This needs the extra rdf: pip install 'offload-lab[rdf]'.")) from None
    return jsonld


def canonical(document: dict[str, Any], contexts: Mapping[str, Any] | None = None) -> bytes:
    """The canonical N-Quads (RDFC-1.0) of a JSON-LD document, with no context but the bundled ones and `contexts`.

    Raises ProofError for another context, a term that no context defines and anything that is not JSON-LD; RdfMissingError
    without pyld.
    """
    jsonld, extra = _pyld(), contexts or {}
    missing: list[str] = []

    def load(url: str, options: Any = None) -> dict[str, Any]:
        if url in extra:
            found = extra[url]
        elif url in _FILES:
            found = json.loads(resources.files(__package__).joinpath("contexts", _FILES[url]).read_text("utf-8"))
        else:
            missing.append(url)  # pyld wraps the error in others that do not say which context it was
            raise jsonld.JsonLdError(
                _("the context {url} is not bundled").format(url=url[:200]), "jsonld.LoadDocumentError", code="loading"
            )
        return {"contextUrl": None, "documentUrl": url, "document": found, "contentType": "application/ld+json"}

    try:
        quads = jsonld.normalize(
            document,
            {
                "algorithm": "URDNA2015",
                "format": "application/n-quads",
                "documentLoader": load,
                "processingMode": "json-ld-1.1",
            },
        )
    except (jsonld.JsonLdError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if missing:
            raise ProofError(
                _("its context {missing!a} is not bundled, and none is looked up").format(missing=missing[0][:200])
            ) from None
        raise ProofError(_("it has no RDF form ({error})").format(error=str(error)[:200])) from None
    return quads.encode()


def hash_data(document: dict[str, Any], options: dict[str, Any], contexts: Mapping[str, Any] | None = None) -> bytes:
    """The 64 bytes that are signed: SHA-256 of the canonical proof options, then of the document without its proof."""
    options = {**options, "@context": document.get("@context")}
    proof, content = canonical(options, contexts), canonical(document, contexts)
    return hashlib.sha256(proof).digest() + hashlib.sha256(content).digest()


def sign(document: dict[str, Any], private: Ed25519PrivateKey, created: str) -> dict[str, Any]:
    """A copy of `document` with its proof, dated `created`. Raises ProofError where it has one or has no RDF form."""
    if "proof" in document:
        raise ProofError(_("the document already carries a proof"))
    options = {
        "type": PROOF_TYPE,
        "cryptosuite": CRYPTOSUITE,
        "created": created,
        "verificationMethod": did_key.method_of(did_key.did_of(ed25519.public_key(private))),
        "proofPurpose": PURPOSE,
    }
    signature = private.sign(hash_data(document, options))
    return {**document, "proof": {**options, "proofValue": "z" + base58.encode(signature)}}


def verify(secured: dict[str, Any], contexts: Mapping[str, Any] | None = None) -> str:
    """The did:key that signed `secured`. Raises ProofError where there is none, RdfMissingError without pyld."""
    proof = secured.get("proof")
    if not isinstance(proof, dict) or not _REQUIRED <= proof.keys() <= _REQUIRED | {"@context"}:
        raise ProofError(_("it does not carry exactly one proof with the parts that it needs"))
    for key, expected in (("type", PROOF_TYPE), ("cryptosuite", CRYPTOSUITE), ("proofPurpose", PURPOSE)):
        if proof[key] != expected:
            raise ProofError(_("the proof's {key} is not {expected}").format(key=key, expected=expected))
    if not all(isinstance(proof[key], str) for key in _REQUIRED):
        raise ProofError(_("a part of the proof is not text"))
    document = {key: value for key, value in secured.items() if key != "proof"}
    if proof.get("@context", document.get("@context")) != document.get("@context"):
        raise ProofError(_("the contexts of the document are not those of the proof"))
    options = {key: value for key, value in proof.items() if key != "proofValue"}
    try:
        did = did_key.did_of_method(proof["verificationMethod"])
        if not proof["proofValue"].startswith("z"):
            raise ValueError(_("the signature is not written in base 58"))
        signature = base58.decode(proof["proofValue"][1:])
        ed25519.verify(did_key.key_of(did), signature, hash_data(document, options, contexts))
    except ProofError:
        raise
    except ValueError as error:
        raise ProofError(str(error)) from None
    return did
