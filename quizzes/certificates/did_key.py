"""`did:key` names of Ed25519 keys: the key itself is the name, nothing has to be looked up. Pure."""

from __future__ import annotations

from quizzes.certificates import base58
from quizzes.certificates.ed25519 import check_public_key
from quizzes.say import _

PREFIX = "did:key:"
_MULTICODEC_ED25519 = b"\xed\x01"


def did_of(key: bytes) -> str:
    """The `did:key:z6Mk…` name of a public key of 32 bytes. Raises ValueError for a key that must not be used."""
    check_public_key(key)
    return PREFIX + "z" + base58.encode(_MULTICODEC_ED25519 + key)


def key_of(did: str) -> bytes:
    """The 32 bytes of the public key that `did` names. Raises ValueError for anything but a strict Ed25519 `did:key`."""
    multibase = did.removeprefix(PREFIX)
    if multibase == did or not multibase.startswith("z"):
        raise ValueError(_("the name of an issuer has the form did:key:z6Mk…"))
    data = base58.decode(multibase[1:])
    if data[:2] != _MULTICODEC_ED25519:
        raise ValueError(_("the did:key does not name an Ed25519 key"))
    check_public_key(data[2:])
    return data[2:]


def method_of(did: str) -> str:
    """The verification method, `did:key:z6Mk…#z6Mk…`, by which a proof points at the key of `did`."""
    return f"{did}#{did.removeprefix(PREFIX)}"


def did_of_method(method: str) -> str:
    """The did of a verification method. Raises ValueError where the part after `#` is not the key of the did itself."""
    did = method.partition("#")[0]
    if method != method_of(did):
        raise ValueError(_("the verification method does not have the form did:key:z6Mk…#z6Mk… with the same key twice"))
    key_of(did)
    return did
