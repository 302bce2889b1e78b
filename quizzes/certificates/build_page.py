"""The static verify page: one HTML file that needs no server and no network, made of the sources in `verify_page`. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib import resources
from typing import Any

from quizzes.certificates import keyring, strict_json, verdicts
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.credential import Credential
from quizzes.certificates.parts import CONTEXTS, TYPES

SCRIPTS = ("json", "ed25519", "proof", "status", "files", "shape", "qr", "badge", "verify", "page")
"""The sources of the one script, in the order of their use."""


class PageError(ValueError):
    """The page cannot be built from what was given; the message says why and what to do."""


def build(
    issuer: bytes, *, status: bytes | None = None, revocations: bytes | None = None, allow_test_keys: bool = False
) -> bytes:
    """The page (UTF-8) that trusts the keys in `issuer`, the bytes of an `issuer.json`.

    `status` and `revocations` are the bytes of the issuer's signed lists. The page checks them itself; here they only must be
    JSON, so that a mix-up shows at once. Raises PageError for a list of keys that is not whole and for lists that are no JSON.
    """
    try:
        ring = keyring.loads(issuer)
    except keyring.KeyringError as error:
        raise PageError(f"The issuer's list of keys is not whole: {error}. Take the issuer.json of the registry.") from None
    trusted = json.loads(issuer) | {"allow_test_keys": allow_test_keys}
    script = "\n".join(
        (
            '"use strict";',
            f"const ISSUER = {_literal(trusted)};",
            f"const STATUS = {_literal(_text(status, 'status list'))};",
            f"const REVOCATIONS = {_literal(_text(revocations, 'list of revocations'))};",
            f"const VERDICTS = {_literal(verdicts.DATA)};",
            f"const SCHEMAS = {_literal(schemas())};",
            *(source(f"{name}.js") for name in SCRIPTS),
        )
    )
    style = source("style.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; connect-src 'none'"
    )
    keys = "".join(f"<li><code>{escape(key.did)}</code></li>" for key in ring.keys)
    page = source("page.html")
    for place, content in (
        ("csp", policy),
        ("style", style),
        ("issuer", escape(ring.name)),
        ("keys", keys),
        ("script", script),
    ):
        before, _, after = page.partition(f"@{place}@")
        page = before + content + after
    return page.encode()


def schemas() -> dict[str, Any]:
    """The shapes of certificates as JSON schemas, for `shape.js`."""
    return {
        "first": Credential.model_json_schema(),
        "today": Certificate.model_json_schema(),
        "contexts": CONTEXTS,
        "types": TYPES,
    }


def source(name: str) -> str:
    """The text of one source of the page."""
    return resources.files(__package__).joinpath("verify_page", name).read_text("utf-8")


def _text(data: bytes | None, what: str) -> str | None:
    if data is None:
        return None
    try:
        strict_json.loads(data)
    except strict_json.MalformedJsonError as error:
        raise PageError(f"The {what} cannot be used: {error}. Take the file from the registry as it is.") from None
    return data.decode()


def _literal(value: object) -> str:
    # Escaped so that no text ends the script element or opens a comment in it.
    return json.dumps(value, ensure_ascii=True, sort_keys=True).replace("<", "\\u003c")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
