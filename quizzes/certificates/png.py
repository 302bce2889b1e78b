"""PNG files that carry a credential, as Open Badges 3.0 says: whole JSON in one uncompressed `iTXt` chunk. Pure.

The reader is strict where decoders are generous: every checksum is compared, nothing may stand behind the end, and a second
credential is refused, so that no two programs can find different ones in the same file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from quizzes.say import _

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORD = b"openbadgecredential"
LARGEST_FILE = 1024 * 1024
"""Bytes of a whole PNG; those of this program have about 100,000."""
LARGEST_CREDENTIAL = 64 * 1024
"""Bytes of the credential inside; one has about 3,000."""
MOST_CHUNKS = 4096

_TEXT_CHUNKS = (b"tEXt", b"zTXt", b"iTXt")
_HEADER = KEYWORD + b"\0" + b"\0\0" + b"\0" + b"\0"  # not compressed, method 0, no language, no translated keyword


class PngError(ValueError):
    """A PNG is damaged or carries no credential; the message says why, in a sentence without an end stop."""


def embedded(png: bytes) -> bytes:
    """The credential's bytes. Raises PngError for a damaged file, for none, two, compressed or oversized credentials."""
    found = [body for kind, body in _chunks(png) if _is_credential(kind, body)]
    if not found:
        raise PngError(_("there is no credential in it"))
    if len(found) > 1:
        raise PngError(_("there are {count} credentials in it; a certificate has one").format(count=len(found)))
    body = found[0]
    if not body.startswith(_HEADER):
        raise PngError(_("the credential in it is not stored as Open Badges 3.0 says: as uncompressed international text"))
    credential = body[len(_HEADER) :]
    if len(credential) > LARGEST_CREDENTIAL:
        raise PngError(
            _("the credential in it has more than {largest_credential} bytes").format(largest_credential=LARGEST_CREDENTIAL)
        )
    return credential


def insert(png: bytes, credential: bytes) -> bytes:
    """A copy of a picture that carries `credential` (UTF-8 JSON) directly behind its header.

    Checks neither content nor signature; `badge_png.bake` does. Raises PngError for a damaged picture, one that carries a
    credential already, or a credential above `LARGEST_CREDENTIAL` bytes.
    """
    if len(credential) > LARGEST_CREDENTIAL:
        raise PngError(
            _("the credential has more than {largest_credential} bytes").format(largest_credential=LARGEST_CREDENTIAL)
        )
    if any(_is_credential(kind, body) for kind, body in _chunks(png)):
        raise PngError(_("the picture carries a credential already"))
    behind_header = len(SIGNATURE) + 12 + 13
    return png[:behind_header] + _chunk(b"iTXt", _HEADER + credential) + png[behind_header:]


def _is_credential(kind: bytes, body: bytes) -> bool:
    # Any letter case: a reader that folds case must not find another credential than one that does not.
    return kind in _TEXT_CHUNKS and body.partition(b"\0")[0].lower() == KEYWORD


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Type and body of each chunk, all checked. Raises PngError at the first that is not as it must be."""
    if len(png) > LARGEST_FILE:
        raise PngError(_("it has more than {most} bytes").format(most=LARGEST_FILE))
    if not png.startswith(SIGNATURE):
        raise PngError(_("it does not begin as a PNG does"))
    place, count = len(SIGNATURE), 0
    while True:
        if len(png) - place < 12:
            raise PngError(_("it breaks off at byte {place}, before its end chunk").format(place=place))
        length = int.from_bytes(png[place : place + 4], "big")
        kind = png[place + 4 : place + 8]
        if length > len(png) - place - 12:
            raise PngError(_("the chunk at byte {place} is longer than the rest of the file").format(place=place))
        if not (kind.isascii() and kind.isalpha()):
            raise PngError(_("the chunk at byte {place} has no valid type").format(place=place))
        if (count == 0) != (kind == b"IHDR") or (kind == b"IHDR" and length != 13):
            raise PngError(_("it does not begin with one header of 13 bytes"))
        body = png[place + 8 : place + 8 + length]
        if zlib.crc32(kind + body) != int.from_bytes(png[place + 8 + length : place + 12 + length], "big"):
            raise PngError(_("the checksum of the chunk at byte {place} does not fit: the file is damaged").format(place=place))
        yield kind, body
        place, count = place + 12 + length, count + 1
        if count > MOST_CHUNKS:
            raise PngError(_("it has more than {most_chunks} chunks").format(most_chunks=MOST_CHUNKS))
        if kind == b"IEND":
            if length or place != len(png):
                raise PngError(_("something follows its end"))
            return
