"""The static verify page: one HTML file that needs no server and no network, made of the sources in `verify_page`. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

from quizzes.certificates import keyring, strict_json, text, verdicts
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.credential import Credential
from quizzes.certificates.parts import CONTEXTS, TYPES
from quizzes.say import _

VERIFIER = ("json", "ed25519", "proof", "status", "files", "shape", "qr", "badge", "verify")
"""The sources that give the verdict, in the order of their use. They neither show nor read anything."""


_PLACE = re.compile("(@[a-z]+@)")


class PageError(ValueError):
    """The page cannot be built from what was given; the message says why and what to do."""


def build(
    issuer: bytes,
    *,
    status: bytes | None = None,
    revocations: bytes | None = None,
    allow_test_keys: bool = False,
    pages: str | None = None,
) -> bytes:
    """The page (UTF-8) that trusts the keys in `issuer`, the bytes of an `issuer.json`.

    `status` and `revocations` are the bytes of the issuer's signed lists. The page checks them itself; here they only must be
    JSON, so that a mix-up shows at once. `pages` is where the pages of certificates stand, with a slash at its end; without it,
    at the issuer's address. Raises PageError for a list of keys that is not whole and for lists that are no JSON.
    """
    trusted = Trusted.of(issuer, status=status, revocations=revocations, allow_test_keys=allow_test_keys)
    constants = {"PAGES": f"{trusted.ring.url}/c/" if pages is None else pages}
    return assemble("page.html", ("show", "page"), trusted, constants, {})


@dataclass(frozen=True)
class Trusted:
    """What a page that verifies carries: an issuer's keys and signed lists."""

    ring: keyring.Keyring
    constants: dict[str, Any]
    """Name in the script -> value."""

    @classmethod
    def of(
        cls,
        issuer: bytes,
        *,
        status: bytes | None = None,
        revocations: bytes | None = None,
        allow_test_keys: bool = False,
    ) -> Trusted:
        """From the bytes of a registry's files. Raises PageError as `build` does."""
        try:
            ring = keyring.loads(issuer)
        except keyring.KeyringError as error:
            raise PageError(
                _("The issuer's list of keys is not whole: {error}. Take the issuer.json of the registry.").format(error=error)
            ) from None
        constants = {
            "ISSUER": json.loads(issuer) | {"allow_test_keys": allow_test_keys},
            "STATUS": _text(status, _("status list")),
            "REVOCATIONS": _text(revocations, _("list of revocations")),
            "VERDICTS": verdicts.DATA,
            "SCHEMAS": schemas(),
            "WIDTHS": text.WIDTHS,
        }
        return cls(ring, constants)


def assemble(
    template: str,
    scripts: tuple[str, ...],
    trusted: Trusted,
    constants: dict[str, Any],
    places: dict[str, str],
    images: str = "data:",
) -> bytes:
    """The page `template` with the verifier, `scripts` behind it, and `constants` for them.

    `places` are filled in as they are: whoever gives them escapes them. The policy lets one script and one style in, by their
    hashes, pictures from `images`, and nothing from any network.
    """
    written = (trusted.constants | constants).items()
    script = "\n".join(
        (
            '"use strict";',
            *(f"const {name} = {_literal(value)};" for name, value in written),
            *(source(f"{name}.js") for name in (*VERIFIER, *scripts)),
        )
    )
    style = source("style.css")
    policy = (
        f"default-src 'none'; script-src {source_hash(script)}; style-src {source_hash(style)}; img-src {images}; "
        "base-uri 'none'; form-action 'none'; connect-src 'none'"
    )
    keys = "".join(f"<li><code>{escape(key.did)}</code></li>" for key in trusted.ring.keys)
    filled = {"csp": policy, "style": style, "issuer": escape(trusted.ring.name), "keys": keys, **places, "script": script}
    page = source(template)
    made = []
    # One pass, so that a text filled in is never searched for the next place.
    for piece in _PLACE.split(page):
        made.append(filled[piece[1:-1]] if _PLACE.fullmatch(piece) else piece)
    return "".join(made).encode()


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


def source_hash(content: str) -> str:
    """How a policy names the script or style `content`."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _text(data: bytes | None, what: str) -> str | None:
    if data is None:
        return None
    try:
        strict_json.loads(data)
    except strict_json.MalformedJsonError as error:
        raise PageError(
            _("The {what} cannot be used: {error}. Take the file from the registry as it is.").format(what=what, error=error)
        ) from None
    return data.decode()


def _literal(value: object) -> str:
    # Escaped so that no text ends the script element or opens a comment in it.
    return json.dumps(value, ensure_ascii=True, sort_keys=True).replace("<", "\\u003c")
