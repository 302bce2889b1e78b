"""Bitstring status lists (W3C "Bitstring Status List v1.0"): which certificates were revoked, one bit each. Pure."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from datetime import datetime, timedelta
from typing import Any

from quizzes.certificates.parts import format_time, parse_time
from quizzes.say import _

ENTRIES = 131_072
"""The fewest entries that the standard allows: among fewer, a look-up would tell who is being checked."""
LARGEST_BYTES = 8 * 1024 * 1024
"""A list that unpacks to more is refused before it fills the memory."""
CONTEXT = "https://www.w3.org/ns/credentials/v2"
TYPES = ["VerifiableCredential", "BitstringStatusListCredential"]
GOOD_FOR = timedelta(days=90)
"""After this time a list says nothing any more: somebody may be showing an old one."""

_GZIP_FLAGS = 16 + zlib.MAX_WBITS


class StatusListError(ValueError):
    """A status list says nothing; `code` is the standard's name for why, the message a sentence without an end stop."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def empty() -> bytearray:
    """The bits of a list in which nothing is set."""
    return bytearray(ENTRIES // 8)


def is_set(bits: bytes | bytearray, index: int) -> bool:
    """Bit `index`; 0 is the most significant bit of byte 0. Raises StatusListError (RANGE_ERROR) behind the end."""
    if not 0 <= index < 8 * len(bits):
        raise StatusListError(
            "RANGE_ERROR", _("index {index} lies outside the list of {value} entries").format(index=index, value=8 * len(bits))
        )
    return bool(bits[index // 8] >> (7 - index % 8) & 1)


def set_bit(bits: bytearray, index: int) -> None:
    """Sets bit `index` in place. Raises StatusListError (RANGE_ERROR) behind the end."""
    if not is_set(bits, index):
        bits[index // 8] |= 1 << (7 - index % 8)


def encode(bits: bytes | bytearray) -> str:
    """The bits as the standard has them: `u`, then base64url without padding of their GZIP. The same bits, the same text."""
    packed = gzip.compress(bytes(bits), compresslevel=9, mtime=0)
    return "u" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode(text: str, *, strict: bool = True) -> bytes:
    """The bits of an encoded list. Raises StatusListError for anything else, and for fewer than `ENTRIES` entries.

    `strict=False` also reads what other programs wrote: without the `u`, with padding, in the alphabet with `+` and `/`.
    """
    if not isinstance(text, str):
        raise StatusListError("MALFORMED_VALUE_ERROR", _("the encoded list is not text"))
    if strict:
        if not text.startswith("u"):
            raise StatusListError("MALFORMED_VALUE_ERROR", _("the encoded list does not begin with u, for base64url"))
        plain = text[1:]
        if set(plain) & set("+/="):
            raise StatusListError("MALFORMED_VALUE_ERROR", _("the encoded list is not base64url without padding"))
    else:
        # GZIP begins with 1f 8b, in base 64 with H4, so a leading u can only be the prefix.
        plain = text.removeprefix("u").rstrip("=").replace("+", "-").replace("/", "_")
    try:
        packed = base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj(wbits=_GZIP_FLAGS)
        bits = unpacker.decompress(packed, LARGEST_BYTES + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise StatusListError(
            "MALFORMED_VALUE_ERROR", _("the encoded list cannot be unpacked ({error})").format(error=error)
        ) from None
    if len(bits) > LARGEST_BYTES:
        raise StatusListError(
            "MALFORMED_VALUE_ERROR",
            _("the list unpacks to more than {largest_bytes} bytes").format(largest_bytes=LARGEST_BYTES),
        )
    if not unpacker.eof or unpacker.unused_data:
        raise StatusListError("MALFORMED_VALUE_ERROR", _("the packed list is cut off, or something stands behind it"))
    if 8 * len(bits) < ENTRIES:
        message = _("the list has {value} entries, and none has fewer than {entries}").format(
            value=8 * len(bits), entries=ENTRIES
        )
        raise StatusListError("STATUS_LIST_LENGTH_ERROR", message)
    return bits


def build(bits: bytes | bytearray, *, url: str, issuer: str, now: datetime) -> dict[str, Any]:
    """The unsigned status list credential at `url`, good from `now` for `GOOD_FOR`."""
    return {
        "@context": [CONTEXT],
        "id": url,
        "type": list(TYPES),
        "issuer": issuer,
        "validFrom": format_time(now),
        "validUntil": format_time(now + GOOD_FOR),
        "credentialSubject": {
            "id": f"{url}#list",
            "type": "BitstringStatusList",
            "statusPurpose": "revocation",
            "encodedList": encode(bits),
        },
    }


def read(document: dict[str, Any], *, purpose: str = "revocation", strict: bool = True) -> bytes:
    """The bits of a status list credential, signed or not. Raises StatusListError for another shape or purpose."""
    kinds, subject = document.get("type"), document.get("credentialSubject")
    if not isinstance(kinds, list) or "BitstringStatusListCredential" not in kinds:
        raise StatusListError("STATUS_VERIFICATION_ERROR", _("it is not a status list credential"))
    if not isinstance(subject, dict) or subject.get("type") != "BitstringStatusList":
        raise StatusListError("STATUS_VERIFICATION_ERROR", _("its subject is not a status list"))
    purposes = subject.get("statusPurpose")
    if purpose not in (purposes if isinstance(purposes, list) else [purposes]):
        raise StatusListError("STATUS_VERIFICATION_ERROR", _("its purpose is not {purpose}").format(purpose=purpose))
    return decode(subject.get("encodedList", ""), strict=strict)


def check_time(document: dict[str, Any], now: datetime) -> None:
    """Raises StatusListError unless `now` lies in the time of the list, which must have an end."""
    try:
        begin, end = parse_time(document["validFrom"]), parse_time(document["validUntil"])
    except (KeyError, TypeError, ValueError):
        raise StatusListError("STATUS_VERIFICATION_ERROR", _("it does not say from when and until when it is good")) from None
    if now > end:
        raise StatusListError(
            "STATUS_VERIFICATION_ERROR", _("it was good until {validUntil}").format(validUntil=document["validUntil"])
        )
    if now + timedelta(minutes=5) < begin:
        raise StatusListError("STATUS_VERIFICATION_ERROR", _("it is dated {validFrom}").format(validFrom=document["validFrom"]))
