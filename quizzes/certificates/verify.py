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
from quizzes.say import N_, _

LARGEST_FILE = 256 * 1024
"""Bytes; a certificate has about 2,000 as JSON and about 20,000 as SVG."""
CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far the clocks of the issuer and of whoever verifies may lie apart."""

_WHOLE = N_("The certificate is whole: nothing in it was changed since it was signed.")
_ORIGINAL = N_("Do not rely on it; ask its owner or the issuer for the original file.")


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
        verdict = Verdict(True, "valid", _(_WHOLE), certificate, issuer is not None)
    return replace(verdict, notes=(_(PICTURE),)) if is_png and verdict.certificate is not None else verdict


def _signed(data: bytes) -> tuple[dict, Credential | Certificate]:
    try:
        secured = strict_json.loads(data)
    except MalformedJsonError as error:
        raise _Refused(
            "malformed",
            _("This is not a certificate, or it is damaged: {error}. {advice}").format(error=error, advice=_(_ORIGINAL)),
        ) from None
    if not isinstance(secured, dict):
        raise _Refused(
            "malformed", _("This is not a certificate: it is JSON, but not an object. {advice}").format(advice=_(_ORIGINAL))
        )
    if "proof" not in secured:
        raise _Refused("malformed", _("This is not a certificate: it carries no proof. {advice}").format(advice=_(_ORIGINAL)))
    try:
        did = _suite(secured).verify(secured)
    except ProofError as error:
        message = _("The certificate was altered after it was signed, or never was one: {error}. {advice}").format(
            error=error, advice=_(_ORIGINAL)
        )
        raise _Refused("altered", message) from None
    try:
        certificate = credential.read(secured)
    except CredentialError as error:
        message = _(
            "Something is signed here, but not a certificate that this version of the program knows: {error}. If a "
            "newer version issued it, update the program; otherwise do not rely on it."
        ).format(error=error)
        raise _Refused("malformed", message) from None
    if did != certificate.issuer.id:
        message = _("The certificate names one issuer and is signed with the key of another. {advice}").format(
            advice=_(_ORIGINAL)
        )
        raise _Refused("altered", message)
    return secured, certificate


def _suite(secured: dict) -> ModuleType:
    proof = secured["proof"]
    if isinstance(proof, dict) and proof.get("cryptosuite") == rdf.CRYPTOSUITE:
        return rdf
    return signing


def _check_size(data: bytes) -> None:
    if len(data) > LARGEST_FILE:
        message = _("This is not a certificate: none has more than {most} bytes. {advice}").format(
            most=LARGEST_FILE, advice=_(_ORIGINAL)
        )
        raise _Refused("malformed", message)


def _whole_json(data: bytes) -> Credential | Certificate:
    _check_size(data)
    secured, certificate = _signed(data)
    if data != file_bytes(secured):
        message = _(
            "The signed content is whole, but the file is not byte for byte as it was issued: spaces, line ends or "
            "the way characters are written were changed, perhaps by an editor or in transfer. {advice}"
        ).format(advice=_(_ORIGINAL))
        raise _Refused("altered", message, certificate)
    return certificate


def _whole_svg(data: bytes) -> Credential | Certificate:
    _check_size(data)
    try:
        edition, inside = badge.embedded(data)
    except badge.BadgeError as error:
        raise _Refused(
            "malformed",
            _("This SVG is not a certificate, or it is damaged: {error}. {advice}").format(error=error, advice=_(_ORIGINAL)),
        ) from None
    secured, certificate = _signed(inside)
    try:
        drawn = badge.render(secured, edition)
    except badge.BadgeError as error:
        message = _(
            "The signed content is whole, but the picture cannot be checked: {error}. Update the program and try again."
        ).format(error=error)
        raise _Refused("malformed", message, certificate) from None
    if data != drawn:
        message = _(
            "The signed content is whole, but the picture around it is not the one that belongs to it: what it shows "
            "may be false. {advice}"
        ).format(advice=_(_ORIGINAL))
        raise _Refused("altered", message, certificate)
    return certificate


def _whole_png(data: bytes) -> Credential | Certificate:
    try:
        inside = png.embedded(data)
    except png.PngError as error:
        raise _Refused(
            "malformed",
            _("This PNG is not a certificate, or it is damaged: {error}. {advice}").format(error=error, advice=_(_ORIGINAL)),
        ) from None
    secured, certificate = _signed(inside)
    if inside != strict_json.canonical(secured):
        raise _Refused(
            "altered",
            _("The credential in the PNG was rewritten after it was signed. {advice}").format(advice=_(_ORIGINAL)),
            certificate,
        )
    return certificate


def _check_issuer(certificate: Credential | Certificate, issuer: str | None) -> None:
    if issuer is not None and certificate.issuer.id != issuer:
        message = _(
            "The certificate is whole, but another key signed it: {id}, not {issuer}. Anybody can make a key; this "
            "certificate does not come from the issuer you named."
        ).format(id=certificate.issuer.id, issuer=issuer)
        raise _Refused("issuer", message, certificate)


def _check_time(certificate: Credential | Certificate, now: datetime) -> None:
    for stamp in (certificate.validFrom, certificate.proof.created):
        if credential.parse_time(stamp) > now + CLOCK_TOLERANCE:
            message = _(
                "The certificate is whole, but it is dated {stamp}, and now is {now}. Look at the clock of this machine; "
                "if it is right, ask the issuer."
            ).format(stamp=stamp, now=credential.format_time(now))
            raise _Refused("too early", message, certificate)
    if certificate.validUntil is not None and credential.parse_time(certificate.validUntil) < now:
        message = _("The certificate is whole, but it ran out on {validUntil}. Ask the issuer for a new one.").format(
            validUntil=certificate.validUntil
        )
        raise _Refused("expired", message, certificate)
