"""The issuer's keys as a DID document (`did:web`), for programs that look keys up there. Pure.

Our own verifiers do not read it: they go by `issuer.json`, whose keys vouch for one another. This document is only as good as
the web server that it comes from.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from quizzes.certificates.did_key import PREFIX
from quizzes.certificates.keyring import Keyring
from quizzes.certificates.parts import format_time

CONTEXTS = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"]


def web_name(base: str) -> str:
    """The `did:web` whose document stands at `base`/did.json: `https://a.org:8/b` is `did:web:a.org%3A8:b`."""
    parts = urlsplit(base)
    host = parts.netloc.lower().replace(":", "%3A")
    path = [step.replace("~", "%7E") for step in parts.path.split("/") if step]
    return ":".join(["did:web", host, *path])


def build(ring: Keyring) -> dict[str, Any]:
    """The document: every key that signed certificates, the ones out of use with the moment at which they stopped."""
    did = web_name(ring.url)
    methods = []
    for key in ring.keys:
        multibase = key.did.removeprefix(PREFIX)
        method = {"id": f"{did}#{multibase}", "type": "Multikey", "controller": did, "publicKeyMultibase": multibase}
        if key.until is not None:
            method["expires"] = format_time(key.until)
        methods.append(method)
    return {
        "@context": CONTEXTS,
        "id": did,
        "alsoKnownAs": [key.did for key in ring.keys],
        "verificationMethod": methods,
        "assertionMethod": [method["id"] for method in methods],
    }
