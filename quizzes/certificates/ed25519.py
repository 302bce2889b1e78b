"""Ed25519 (RFC 8032) with the strict reading of keys and signatures. Pure.

`cryptography` does the arithmetic. Added here is what a certificate needs beyond it: one key has one encoding, one
signature has one encoding, and no key exists under which a signature says nothing.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from quizzes.say import _

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P


def check_public_key(key: bytes) -> None:
    """Raises ValueError unless `key` is 32 bytes, written in the one shortest form, and of more than small order.

    A point of order 1, 2, 4 or 8 has y = ±1, y = 0 or, by the doubling formula, d·y⁴ + 2y² − 1 = 0 (mod p). Under such a
    key one signature fits many documents.
    """
    if len(key) != PUBLIC_KEY_BYTES:
        raise ValueError(
            _("an Ed25519 public key has {public_key_bytes} bytes, this one has {count}").format(
                public_key_bytes=PUBLIC_KEY_BYTES, count=len(key)
            )
        )
    y = int.from_bytes(key, "little") & (2**255 - 1)
    if y >= _P:
        raise ValueError(_("the public key is not written in its one canonical form"))
    if y * (y * y - 1) * (_D * y**4 + 2 * y * y - 1) % _P == 0:
        raise ValueError(_("the public key is a point of small order, under which signatures prove nothing"))


def public_key(private: Ed25519PrivateKey) -> bytes:
    """The 32 bytes of the public key that belongs to `private`."""
    return private.public_key().public_bytes_raw()


def verify(key: bytes, signature: bytes, message: bytes) -> None:
    """Raises ValueError unless `signature` (64 bytes) is the signature of `message` under `key` (32 bytes).

    The second half of a signature, the number S, must be below the group order (RFC 8032, 5.1.7): otherwise a stranger
    could write the same signature in another way.
    """
    check_public_key(key)
    if len(signature) != SIGNATURE_BYTES:
        raise ValueError(
            _("an Ed25519 signature has {signature_bytes} bytes, this one has {count}").format(
                signature_bytes=SIGNATURE_BYTES, count=len(signature)
            )
        )
    if int.from_bytes(signature[32:], "little") >= _ORDER:
        raise ValueError(_("the signature is not written in its one canonical form"))
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        raise ValueError(_("the signature does not fit the content under this key")) from None
