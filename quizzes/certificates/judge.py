"""The one verdict on a certificate: the bytes, the issuer, the status list and the time, in the order of the contract. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from quizzes.certificates import verify as whole
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.credential import Credential, parse_time
from quizzes.certificates.keyring import Keyring, KeyringError
from quizzes.certificates.published import Published, Revocation, StatusUnknownError, revocation
from quizzes.certificates.verdicts import TEST_KEYS, exit_status, heading, sentences
from quizzes.say import _

_OF_CODE = {"malformed": "not a certificate", "altered": "altered"}


@dataclass(frozen=True)
class Judgement:
    """What became of one certificate."""

    verdict: str
    """One of `verdicts.ORDER`."""
    message: str
    """What was found, in whole sentences; `verdicts.sentences` says what the verdict means."""
    certificate: Credential | Certificate | None = None
    """The contents, from `unknown issuer` on; None where something was altered."""
    issuer_name: str = ""
    """The issuer's name by the trusted list of keys; empty where there is none."""
    revocation: Revocation | None = None
    """Since when and why, where it was revoked."""
    notes: tuple[str, ...] = ()
    """What the reader must know besides: that a PNG's picture is not signed."""

    @property
    def exit_status(self) -> int:
        """0 for valid, 1 for every other verdict."""
        return exit_status(self.verdict)

    @property
    def heading(self) -> str:
        """The verdict as a heading."""
        return heading(self.verdict)

    @property
    def meaning(self) -> str:
        """What the verdict means and what to do."""
        return sentences(self.verdict)


def judge(
    data: bytes,
    *,
    now: datetime,
    issuer: str | None = None,
    published: Published | None = None,
    test_keys: bool = False,
) -> Judgement:
    """The verdict on the bytes of a certificate file (JSON or SVG).

    Trust comes from the caller: `issuer`, a did:key, or `published`, the files of a registry that the caller trusts, or both
    (then the registry must list the issuer). `now` knows its time zone. Never raises for what is in any of the bytes.
    """
    verdict = whole.verify(data, now=now)
    if verdict.code in _OF_CODE:
        return Judgement(_OF_CODE[verdict.code], verdict.message)
    certificate = verdict.certificate
    if certificate is None:
        raise RuntimeError("a whole certificate without contents")
    try:
        ring = _trusted(certificate, issuer, published, test_keys)
    except _UnknownIssuer as error:
        return Judgement("unknown issuer", str(error), certificate, notes=verdict.notes)
    return replace(_of_whole(verdict, certificate, ring, published, now), notes=verdict.notes)


def _of_whole(
    verdict: whole.Verdict,
    certificate: Credential | Certificate,
    ring: Keyring | None,
    published: Published | None,
    now: datetime,
) -> Judgement:
    name = ring.name if ring else ""
    status = certificate.credentialStatus if isinstance(certificate, Certificate) else None
    unknown = ""
    if status is not None:
        try:
            found = _revocation(certificate, int(status.statusListIndex), ring, published, now)
        except StatusUnknownError as error:
            unknown = _("Whether it was revoked cannot be told: {error}.").format(error=error)
        else:
            if found is not None:
                return Judgement("revoked", _revoked(found), certificate, name, found)
    if not verdict.valid:
        return Judgement("expired", verdict.message, certificate, name)
    if unknown:
        return Judgement("status unknown", unknown, certificate, name)
    message = verdict.message
    if status is None:
        message += " " + _("It has no entry in a status list, so its issuer cannot revoke it.")
    return Judgement("valid", message, certificate, name)


class _UnknownIssuer(Exception):
    pass


def _trusted(
    certificate: Credential | Certificate, issuer: str | None, published: Published | None, test_keys: bool
) -> Keyring | None:
    signer = certificate.issuer.id
    if signer in TEST_KEYS and not test_keys:
        raise _UnknownIssuer(
            _("It is signed with a published test key, {signer}: everybody can sign with it, so it proves nothing.").format(
                signer=signer
            )
        )
    if issuer is None and published is None:
        raise _UnknownIssuer(
            _("The certificate is whole, but you named no issuer to compare its key with, {signer}.").format(signer=signer)
        )
    ring = None
    if published is not None:
        try:
            ring = published.ring()
        except KeyringError as error:
            if issuer is None:
                raise _UnknownIssuer(
                    _("The registry's list of keys cannot be relied on: {error}.").format(error=error)
                ) from None
        if ring is not None and issuer is not None and ring.find(issuer) is None:
            raise _UnknownIssuer(
                _("The registry belongs to another issuer: {issuer} is not among its keys.").format(issuer=issuer)
            )
    if ring is None:
        if signer != issuer:
            raise _UnknownIssuer(
                _("The certificate is whole, but another key signed it: {signer}, not {issuer}.").format(
                    signer=signer, issuer=issuer
                )
            )
        return None
    key = ring.find(signer)
    if key is None:
        raise _UnknownIssuer(
            _("The certificate is whole, but its key, {signer}, is none of {ring!r} ({url}).").format(
                signer=signer, ring=ring.name, url=ring.url
            )
        )
    if not key.covers(parse_time(certificate.validFrom)):
        raise _UnknownIssuer(
            _("It is dated {validFrom}, when its key, {signer}, did not sign for {ring!r}: not yet, or no more.").format(
                validFrom=certificate.validFrom, signer=signer, ring=ring.name
            )
        )
    return ring


def _revocation(
    certificate: Certificate, index: int, ring: Keyring | None, published: Published | None, now: datetime
) -> Revocation | None:
    if published is None:
        raise StatusUnknownError(_("no registry was given"))
    if ring is None:
        raise StatusUnknownError(_("the registry's list of keys cannot be relied on"))
    if ring.url != certificate.base:
        raise StatusUnknownError(
            _("the registry is that of {url}, the certificate's is {base}").format(url=ring.url, base=certificate.base)
        )
    return revocation(published, ring, index, now)


def _revoked(found: Revocation) -> str:
    if not found.since:
        return _("It was revoked; since when and why, the registry does not say.")
    # The reason was signed with the list, in the words of whoever revoked; what this program writes there is translated.
    said = (
        _("It was replaced by a newer certificate on {day} ({since}): {reason}")
        if found.superseded
        else _("It was revoked on {day} ({since}): {reason}")
    )
    return said.format(day=found.since[:10], since=found.since, reason=_(found.reason))
