"""`eddsa-rdfc-2022`: the official vectors, and other people's programs on what we issue."""

from __future__ import annotations

import copy
import json
import os
import shutil
import socket
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import did_key, identifier, issuing, rdf, signing
from quizzes.certificates.issuing import Achieved, File, Passed, Place
from quizzes.certificates.published import public_name
from quizzes.certificates.signing import ProofError

pytest.importorskip("pyld", reason="the extra rdf is not installed")
EXAMPLES = "https://www.w3.org/ns/credentials/examples/v2"
JAVASCRIPT = Path(__file__).resolve().parents[1] / "interop"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*arguments, **more):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def key():
    return Ed25519PrivateKey.generate()


@pytest.fixture(scope="module")
def document(key):
    passed = Passed("01", "Where did the memory go?", Decimal("2.6"), Decimal(3))
    achieved = Achieved(
        "김민준", "name", (passed,), Decimal("0.8"), "instructor", "0.1", "sha256-1", (File.of("R", b"x"),), "a@b.c"
    )
    place = Place(public_name(key), identifier.new(), "https://example.org/c", "A School", 7)
    return issuing.build(achieved, place, issued=datetime(2026, 3, 1, tzinfo=UTC), salt="0" * 32)


@pytest.fixture(scope="module")
def examples(vectors):
    return {EXAMPLES: json.loads(vectors("w3c-vc-data-model", "contexts", "credentials", "examples", "v2").read_text())}


def test_the_official_vector(vectors, examples):
    folder = vectors("w3c-vc-di-eddsa", "TestVectors", "eddsa-rdfc-2022")
    signed = json.loads((folder / "signedDataInt.json").read_text())
    unsigned = {name: value for name, value in signed.items() if name != "proof"}
    assert rdf.canonical(unsigned, examples) == (folder / "canonDocDataInt.txt").read_bytes()
    options = {name: value for name, value in signed["proof"].items() if name != "proofValue"}
    assert rdf.hash_data(unsigned, options, examples).hex() == (folder / "combinedHashDataInt.txt").read_text().strip()
    assert rdf.verify(signed, examples) == signed["proof"]["verificationMethod"].partition("#")[0]
    with pytest.raises(ProofError, match="not bundled"):
        rdf.verify(signed)


def test_what_we_sign_verifies_and_no_text_in_it_can_be_changed(document, key):
    signed = rdf.sign(document, key, "2026-03-01T00:00:00Z")
    assert rdf.verify(signed) == public_name(key)

    def leaves(value, path=()):
        if isinstance(value, dict | list):
            for step in value if isinstance(value, dict) else range(len(value)):
                yield from leaves(value[step], (*path, step))
        else:
            yield path

    for path in leaves(document):
        changed = copy.deepcopy(signed)
        inner = changed
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = (not inner[path[-1]]) if isinstance(inner[path[-1]], bool) else inner[path[-1]] + "x"
        with pytest.raises(ProofError):
            rdf.verify(changed)


def test_openvc_verifies_it(document, key):
    module = pytest.importorskip("openvc.proof.data_integrity", reason="the extra interop is not installed")
    signed = rdf.sign(document, key, "2026-03-01T00:00:00Z")
    suite = module.DataIntegrityProofSuite()
    folder = Path(rdf.__file__).parent / "contexts"
    contexts = {url: json.loads((folder / name).read_text()) for url, name in rdf._FILES.items()}
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": _base64(did_key.key_of(public_name(key)))}
    suite.verify(signed, public_key_jwk=jwk, extra_contexts=contexts)
    changed = {**signed, "name": "Another"}
    with pytest.raises(module.ProofError):
        suite.verify(changed, public_key_jwk=jwk, extra_contexts=contexts)


def _base64(data):
    import base64

    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_openbadgeslib_verifies_it(document, key):
    module = pytest.importorskip("openbadgeslib.ob3.ldp", reason="the extra interop is not installed")
    signed = rdf.sign(document, key, "2026-03-01T00:00:00Z")
    verifier = module.OB3LdpVerifier.for_issuer_did(public_name(key))
    verifier.verify(json.dumps(signed))
    with pytest.raises(module.OB3VerificationError):
        verifier.verify(json.dumps({**signed, "name": "Another"}))


@pytest.mark.parametrize("suite", ["rdfc", "jcs"])
def test_a_javascript_implementation_verifies_it(document, key, tmp_path, suite):
    if shutil.which("node") is None or not (JAVASCRIPT / "node_modules").exists():
        pytest.skip(os.environ.get("INTEROP_MISSING", "run `npm ci` in tests/interop first"))
    sign = rdf.sign if suite == "rdfc" else signing.sign
    signed = sign(document, key, "2026-03-01T00:00:00Z")
    for name, content, verified in (("a", signed, True), ("b", {**signed, "name": "Another"}, False)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        contexts = Path(rdf.__file__).parent / "contexts"
        command = ["node", JAVASCRIPT / "verify.mjs", path, suite, contexts]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (result.stdout.strip() == "verified") is verified, result.stdout + result.stderr
