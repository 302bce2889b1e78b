"""What an issuer publishes besides certificates, taken apart and checked: keys, status list, revocations. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from quizzes.certificates import did_key, ed25519, keyring, signing, status_list, strict_json, text
from quizzes.certificates.keyring import Keyring, KeyringError
from quizzes.certificates.parts import format_time, parse_time
from quizzes.certificates.signing import ProofError
from quizzes.certificates.status_list import StatusListError
from quizzes.certificates.strict_json import MalformedJsonError
from quizzes.say import _

LONGEST_REASON = 200


class StatusUnknownError(ValueError):
    """Whether a certificate was revoked cannot be told; the message says why, in a sentence without an end stop."""


@dataclass(frozen=True)
class Published:
    """The bytes of the files of a registry; None where one is missing."""

    issuer: bytes | None = None
    status: bytes | None = None
    revocations: bytes | None = None

    def ring(self) -> Keyring:
        """The issuer's keys. Raises KeyringError where the list is missing or not whole."""
        if self.issuer is None:
            raise KeyringError(_("there is no issuer.json"))
        return keyring.loads(self.issuer)


@dataclass(frozen=True)
class Revocation:
    """That a certificate was taken back; `since` and `reason` are empty where only the bit says so."""

    since: str = ""
    reason: str = ""
    superseded: bool = False


def build_revocations(entries: list[dict[str, Any]], *, base: str, issuer: str, now: datetime) -> dict[str, Any]:
    """The unsigned record of since when and why entries of the status list are set."""
    head = {"type": "Revocations", "id": f"{base}/revocations.json", "issuer": issuer, "issued": format_time(now)}
    return {**head, "entries": entries}


def entries_of(data: bytes, ring: Keyring) -> list[dict[str, Any]]:
    """The entries of `revocations.json`. Raises StatusUnknownError unless the issuer's current key signed it."""
    document = _signed(data, ring, "revocations.json", f"{ring.url}/revocations.json")
    entries = document.get("entries")
    if document.get("type") != "Revocations" or not isinstance(entries, list):
        raise StatusUnknownError(_("revocations.json is not a record of revocations"))
    for entry in entries:
        if not isinstance(entry, dict) or not {"index", "since", "reason"} <= entry.keys() <= _ENTRY:
            raise StatusUnknownError(_("an entry of revocations.json is malformed"))
        try:
            parse_time(entry["since"])
            text.check(entry["reason"])
        except (TypeError, ValueError):
            raise StatusUnknownError(_("an entry of revocations.json is malformed")) from None
    return entries


_ENTRY = {"index", "since", "reason", "superseded"}


def bits_of(data: bytes, ring: Keyring, now: datetime | None) -> bytes:
    """The bits of `status.json`. Raises StatusUnknownError unless it is the issuer's, whole and in its time.

    `now=None` takes a list of any age: for its issuer, who writes the next one.
    """
    document = _signed(data, ring, "status.json", f"{ring.url}/status.json")
    try:
        bits = status_list.read(document)
        if now is not None:
            status_list.check_time(document, now)
    except StatusListError as error:
        raise StatusUnknownError(_("status.json: {error} ({code})").format(error=error, code=error.code)) from None
    return bits


def _signed(data: bytes, ring: Keyring, name: str, url: str) -> dict[str, Any]:
    try:
        document = strict_json.loads(data)
        signer = signing.verify(document) if isinstance(document, dict) else ""
    except (MalformedJsonError, ProofError) as error:
        raise StatusUnknownError(_("{name} is damaged or was altered: {error}").format(name=name, error=error)) from None
    if signer != ring.current.did or document.get("issuer") != signer:
        raise StatusUnknownError(_("{name} is not signed by the issuer's current key").format(name=name))
    if document.get("id") != url:
        raise StatusUnknownError(_("{name} belongs to another address than {url}").format(name=name, url=url))
    return document


def revocation(published: Published, ring: Keyring, index: int, now: datetime) -> Revocation | None:
    """Whether entry `index` is revoked: None where it is not.

    A bit or an entry alone is enough. Raises StatusUnknownError where the list cannot be relied on and no entry says more.
    """
    noted: Revocation | None = None
    damage: StatusUnknownError | None = None
    if published.revocations is not None:
        try:
            for entry in entries_of(published.revocations, ring):
                if entry["index"] == str(index):
                    noted = Revocation(entry["since"], entry["reason"], entry.get("superseded") is True)
        except StatusUnknownError as error:
            damage = error
    if noted is not None:
        return noted
    if published.status is None:
        raise StatusUnknownError(_("there is no status.json"))
    try:
        if status_list.is_set(bits_of(published.status, ring, now), index):
            return Revocation()
    except StatusListError as error:
        raise StatusUnknownError(f"{error} ({error.code})") from None
    if damage is not None:
        raise damage
    return None


def public_name(private: Any) -> str:
    """The did:key of a private key."""
    return did_key.did_of(ed25519.public_key(private))
