"""Whether a certificate file is whole: every byte as the issuer's key signed it, in its time, by the issuer asked for. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import ModuleType

from quizzes.certificates import badge, credential, png, rdf, signing, strict_json
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.credential import Credential, CredentialError
from quizzes.certificates.signing import ProofError
from quizzes.certificates.strict_json import MalformedJsonError
from quizzes.certificates.verdicts import PICTURE

LARGEST_FILE = 256 * 1024
"""Bytes; a certificate has about 2,000 as JSON and about 20,000 as SVG."""
CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far the clocks of the issuer and of whoever verifies may lie apart."""

_WHOLE = "The certificate is whole: nothing in it was changed since it was signed."
_ORIGINAL = "Do not rely on it; ask its owner or the issuer for the original file."


@dataclass(frozen=True)
class Verdict:
    """What became of one certificate file."""

    valid: bool
    code: str
    """`valid`, or in one word why not: `malformed`, `altered`, `issuer`, `too early`, `expired`."""
    message: str
    """What happened and what to do, in whole sentences."""
    certificate: Credential | Certificate | None = None
    """The contents, where their signature is whole, even if the rest of the file is not."""
    issuer_checked: bool = False
    """Whether the key was compared with the one the caller trusts."""
    notes: tuple[str, ...] = ()
    """What the reader must know besides, in whole sentences: that a PNG's picture is not signed."""


class _Refused(Exception):
    def __init__(self, code: str, message: str, certificate: Credential | Certificate | None = None) -> None:
        super().__init__(message)
        self.verdict = Verdict(False, code, message, certificate)


def file_bytes(secured: dict) -> bytes:
    """A signed credential as a JSON certificate file: its canonical bytes and a line end."""
    return strict_json.canonical(secured) + b"\n"


def verify(data: bytes, *, issuer: str | None = None, now: datetime) -> Verdict:
    """The verdict on the bytes of a certificate file, JSON or SVG (told apart by the first byte).

    `issuer` is the did:key that the certificate must be signed by; without it the verdict says nothing about who signed. `now`
    knows its time zone. Never raises for what is in `data`; RdfMissingError where its proof is of the suite
    `eddsa-rdfc-2022` and the extra `rdf` is not installed.
    """
    try:
        is_png = data.startswith(png.SIGNATURE)
        read = _whole_png if is_png else _whole_svg if data.startswith(b"<") else _whole_json
        certificate = read(data)
        _check_issuer(certificate, issuer)
        _check_time(certificate, now)
    except _Refused as refused:
        verdict = refused.verdict
    else:
        verdict = Verdict(True, "valid", _WHOLE, certificate, issuer is not None)
    return replace(verdict, notes=(PICTURE,)) if is_png and verdict.certificate is not None else verdict


def _signed(data: bytes) -> tuple[dict, Credential | Certificate]:
    try:
        secured = strict_json.loads(data)
    except MalformedJsonError as error:
        raise _Refused("malformed", f"This is not a certificate, or it is damaged: {error}. {_ORIGINAL}") from None
    if not isinstance(secured, dict):
        raise _Refused("malformed", f"This is not a certificate: it is JSON, but not an object. {_ORIGINAL}")
    if "proof" not in secured:
        raise _Refused("malformed", f"This is not a certificate: it carries no proof. {_ORIGINAL}")
    try:
        did = _suite(secured).verify(secured)
    except ProofError as error:
        message = f"The certificate was altered after it was signed, or never was one: {error}. {_ORIGINAL}"
        raise _Refused("altered", message) from None
    try:
        certificate = credential.read(secured)
    except CredentialError as error:
        message = (
            f"Something is signed here, but not a certificate that this version of the program knows: {error}. "
            "If a newer version issued it, update the program; otherwise do not rely on it."
        )
        raise _Refused("malformed", message) from None
    if did != certificate.issuer.id:
        message = f"The certificate names one issuer and is signed with the key of another. {_ORIGINAL}"
        raise _Refused("altered", message)
    return secured, certificate


def _suite(secured: dict) -> ModuleType:
    proof = secured["proof"]
    if isinstance(proof, dict) and proof.get("cryptosuite") == rdf.CRYPTOSUITE:
        return rdf
    return signing


def _check_size(data: bytes) -> None:
    if len(data) > LARGEST_FILE:
        message = f"This is not a certificate: none has more than {LARGEST_FILE} bytes. {_ORIGINAL}"
        raise _Refused("malformed", message)


def _whole_json(data: bytes) -> Credential | Certificate:
    _check_size(data)
    secured, certificate = _signed(data)
    if data != file_bytes(secured):
        message = (
            "The signed content is whole, but the file is not byte for byte as it was issued: spaces, line ends or the way "
            f"characters are written were changed, perhaps by an editor or in transfer. {_ORIGINAL}"
        )
        raise _Refused("altered", message, certificate)
    return certificate


def _whole_svg(data: bytes) -> Credential | Certificate:
    _check_size(data)
    try:
        edition, inside = badge.embedded(data)
    except badge.BadgeError as error:
        raise _Refused("malformed", f"This SVG is not a certificate, or it is damaged: {error}. {_ORIGINAL}") from None
    secured, certificate = _signed(inside)
    try:
        drawn = badge.render(secured, edition)
    except badge.BadgeError as error:
        message = f"The signed content is whole, but the picture cannot be checked: {error}. Update the program and try again."
        raise _Refused("malformed", message, certificate) from None
    if data != drawn:
        message = (
            "The signed content is whole, but the picture around it is not the one that belongs to it: what it shows may be "
            f"false. {_ORIGINAL}"
        )
        raise _Refused("altered", message, certificate)
    return certificate


def _whole_png(data: bytes) -> Credential | Certificate:
    try:
        inside = png.embedded(data)
    except png.PngError as error:
        raise _Refused("malformed", f"This PNG is not a certificate, or it is damaged: {error}. {_ORIGINAL}") from None
    secured, certificate = _signed(inside)
    if inside != strict_json.canonical(secured):
        raise _Refused("altered", f"The credential in the PNG was rewritten after it was signed. {_ORIGINAL}", certificate)
    return certificate


def _check_issuer(certificate: Credential | Certificate, issuer: str | None) -> None:
    if issuer is not None and certificate.issuer.id != issuer:
        message = (
            f"The certificate is whole, but another key signed it: {certificate.issuer.id}, not {issuer}. "
            "Anybody can make a key; this certificate does not come from the issuer you named."
        )
        raise _Refused("issuer", message, certificate)


def _check_time(certificate: Credential | Certificate, now: datetime) -> None:
    for stamp in (certificate.validFrom, certificate.proof.created):
        if credential.parse_time(stamp) > now + CLOCK_TOLERANCE:
            message = (
                f"The certificate is whole, but it is dated {stamp}, and now is {credential.format_time(now)}. "
                "Look at the clock of this machine; if it is right, ask the issuer."
            )
            raise _Refused("too early", message, certificate)
    if certificate.validUntil is not None and credential.parse_time(certificate.validUntil) < now:
        message = f"The certificate is whole, but it ran out on {certificate.validUntil}. Ask the issuer for a new one."
        raise _Refused("expired", message, certificate)
