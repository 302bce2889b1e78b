"""The issuer's list of keys, `issuer.json`: who signs from when until when, each key vouched for by the one before. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import did_key, ed25519, names, signing, strict_json
from quizzes.certificates.certificate import is_base
from quizzes.certificates.parts import format_time, parse_time
from quizzes.certificates.signing import ProofError
from quizzes.certificates.strict_json import MalformedJsonError
from quizzes.say import _

TYPE = "IssuerKeys"
MOST_KEYS = 1000


class KeyringError(ValueError):
    """A list of keys is not whole, or must not be made; the message is a sentence without an end stop."""


@dataclass(frozen=True)
class Key:
    """One key and the time in which it signs, both ends included."""

    did: str
    begin: datetime
    until: datetime | None

    def covers(self, moment: datetime) -> bool:
        """Whether the key signs at `moment`."""
        return self.begin <= moment and (self.until is None or moment <= self.until)


@dataclass(frozen=True)
class Keyring:
    """A whole list of keys, in the order of their use."""

    name: str
    url: str
    keys: tuple[Key, ...]

    @property
    def current(self) -> Key:
        """The key that signs today."""
        return self.keys[-1]

    def find(self, did: str) -> Key | None:
        """The entry of `did`, or None."""
        return next((key for key in self.keys if key.did == did), None)


def first(private: Ed25519PrivateKey, *, name: str, url: str, begin: datetime, now: datetime) -> dict[str, Any]:
    """A signed list of one key that signs from `begin` on. Raises KeyringError for a name or address that cannot be."""
    try:
        names.check(name)
    except ValueError as error:
        raise KeyringError(_("the issuer's name: {error}").format(error=error)) from None
    if not name or not is_base(url):
        raise KeyringError(
            _("an issuer has a name, and a web address like https://example.org/certificates, no slash at its end")
        )
    keys = [{"id": did_key.did_of(ed25519.public_key(private)), "from": format_time(begin)}]
    return _signed({"type": TYPE, "name": name, "url": url, "keys": keys}, private, now)


def rotated(document: dict[str, Any], old: Ed25519PrivateKey, new: Ed25519PrivateKey, *, now: datetime) -> dict[str, Any]:
    """The list with `new` signing from `now` on and `old` until then. Raises KeyringError where `old` is not current."""
    ring = read(document)
    old_did, new_did = (did_key.did_of(ed25519.public_key(private)) for private in (old, new))
    if ring.current.did != old_did:
        raise KeyringError(
            _("the current key of the issuer is {did}, the key given is {old_did}").format(
                did=ring.current.did, old_did=old_did
            )
        )
    if ring.find(new_did):
        raise KeyringError(_("the new key stands in the list already; make a new one with keygen"))
    if now < ring.current.begin:
        raise KeyringError(_("the current key begins to sign later than now; look at the clock of this machine"))
    stamp = format_time(now)
    keys = [*document["keys"][:-1], {**document["keys"][-1], "until": stamp}]
    keys.append(signing.sign({"id": new_did, "from": stamp}, old, stamp))
    return _signed({**document, "keys": keys}, new, now)


def _signed(document: dict[str, Any], private: Ed25519PrivateKey, now: datetime) -> dict[str, Any]:
    unsigned = {key: value for key, value in document.items() if key != "proof"} | {"issued": format_time(now)}
    return signing.sign(unsigned, private, format_time(now))


def loads(data: bytes) -> Keyring:
    """The list in the bytes of `issuer.json`. Raises KeyringError where it is not whole."""
    try:
        document = strict_json.loads(data)
    except MalformedJsonError as error:
        raise KeyringError(str(error)) from None
    return read(document)


def read(document: Any) -> Keyring:
    """The list in a signed document, every proof in it checked. Raises KeyringError where one does not fit."""
    if not isinstance(document, dict) or document.get("type") != TYPE:
        raise KeyringError(_("it is not an issuer's list of keys"))
    if document.keys() != {"type", "name", "url", "issued", "keys", "proof"}:
        raise KeyringError(_("it lacks a part or has one that does not belong there"))
    entries = document["keys"]
    if not isinstance(entries, list) or not 1 <= len(entries) <= MOST_KEYS:
        raise KeyringError(_("it does not list 1 to {most_keys} keys").format(most_keys=MOST_KEYS))
    if not isinstance(document["url"], str) or not is_base(document["url"]) or not isinstance(document["name"], str):
        raise KeyringError(_("the issuer's name or web address is malformed"))
    keys: list[Key] = []
    for place, entry in enumerate(entries, start=1):
        key = _entry(entry, place, last=place == len(entries), before=keys[-1] if keys else None)
        if any(key.did == other.did for other in keys):
            raise KeyringError(_("key {place} stands in the list twice").format(place=place))
        keys.append(key)
    try:
        names.check(document["name"])
        parse_time(document["issued"])
        signer = signing.verify(document)
    except (TypeError, ValueError) as error:
        raise KeyringError(_("the list is not whole: {error}").format(error=error)) from None
    if signer != keys[-1].did:
        raise KeyringError(_("the list is not signed by its last key"))
    return Keyring(document["name"], document["url"], tuple(keys))


def _entry(entry: Any, place: int, *, last: bool, before: Key | None) -> Key:
    expected = {"id", "from"} | (set() if last else {"until"}) | ({"proof"} if before else set())
    if not isinstance(entry, dict) or entry.keys() != expected:
        raise KeyringError(_("key {place} does not have the parts {expected}").format(place=place, expected=sorted(expected)))
    try:
        did_key.key_of(entry["id"])
        begin = parse_time(entry["from"])
        until = None if last else parse_time(entry["until"])
    except (AttributeError, TypeError, ValueError) as error:
        raise KeyringError(_("key {place} is malformed ({error})").format(place=place, error=error)) from None
    if until is not None and until < begin:
        raise KeyringError(_("key {place} ends before it begins").format(place=place))
    if before is not None:
        if before.until is None or begin < before.until:
            raise KeyringError(_("key {place} begins before the one in front of it ends").format(place=place))
        try:
            voucher = signing.verify({key: entry[key] for key in ("id", "from", "proof")})
        except ProofError as error:
            raise KeyringError(_("the proof of key {place} does not fit: {error}").format(place=place, error=error)) from None
        if voucher != before.did:
            raise KeyringError(_("key {place} is not vouched for by the key in front of it").format(place=place))
    return Key(entry["id"], begin, until)
