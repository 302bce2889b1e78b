"""The certificate as a picture: an SVG that shows the credential, carries it whole, and has a QR code. Pure.

The file is a function of the signed credential and of the edition of the drawing, byte for byte. Whoever verifies it draws it
anew and compares: a picture that says something else than the credential inside cannot pass. So a change of the drawing, even
of one byte, needs a new edition beside the old one, whose certificates are out in the world.

The credential is baked in as Open Badges 3.0 says: in an `openbadges:credential` element directly after the `svg` tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

import segno

from quizzes.certificates import credential, text
from quizzes.certificates.credential import Credential
from quizzes.certificates.strict_json import canonical

EDITION = 1
"""The edition of the drawing that new certificates get."""

_START = b"<openbadges:credential><![CDATA["
_END = b"]]></openbadges:credential>"
_CLOSING, _CLOSING_SPLIT = b"]]>", b"]]]]><![CDATA[>"  # what ends a CDATA section, and the same across two of them
_EDITION = re.compile(rb'\A<svg data-edition="([1-9][0-9]{0,3})" ')

_WIDTH, _HEIGHT = 1120, 792  # A4 across
_INK, _QUIET, _PAPER, _LINE = "#1b1b1b", "#4a4a4a", "#ffffff", "#0b4f6c"


class BadgeError(ValueError):
    """An SVG is not a certificate of this program; the message says why, in a sentence without an end stop."""


def render(secured: dict[str, Any], edition: int = EDITION) -> bytes:
    """The SVG (UTF-8) of a signed credential. Raises CredentialError for another shape, BadgeError for an unknown edition."""
    if edition not in _EDITIONS:
        raise BadgeError(f"it is drawn in edition {edition}, which this version of the program does not know")
    return _EDITIONS[edition](credential.read(secured), canonical(secured))


def embedded(svg: bytes) -> tuple[int, bytes]:
    """The edition of the drawing and the bytes of the credential inside. Raises BadgeError where they are not found.

    The bytes are searched, not parsed as XML: `render` tells afterwards whether all the rest is as it must be, so there is no
    entity, include or style for a parser to follow.
    """
    edition = _EDITION.match(svg)
    if not edition:
        raise BadgeError("it does not begin as the SVG certificates of this program do")
    start = svg.find(_START)
    end = svg.find(_END, start)
    if start < 0 or end < 0:
        raise BadgeError("there is no credential in it")
    return int(edition[1]), svg[start + len(_START) : end].replace(_CLOSING_SPLIT, _CLOSING)


def qr_text(certificate: Credential) -> str:
    """What the QR code says: id, issuer's key and signature of the certificate, by which a print leads to its one file."""
    return "\n".join(("Offload Lab certificate", certificate.id, certificate.issuer.id, certificate.proof.proofValue))


def _qr_path(content: str, left: float, top: float, side: float) -> str:
    # Error correction, mode, mask and the smallest version that holds the text fix the symbol completely (ISO/IEC 18004). A
    # mask chosen by the library could be another one in its next release, and old certificates would no longer verify.
    symbol = segno.make_qr(content, error="m", mode="byte", mask=0, boost_error=False)
    modules = len(symbol.matrix)
    runs = []
    for y, row in enumerate(symbol.matrix):
        x = 0
        while x < modules:
            length = 0
            while x + length < modules and row[x + length]:
                length += 1
            if length:
                runs.append(f"M{x} {y}h{length}v1h-{length}z")
            x += length or 1
    scale = side / (modules + 8)  # four modules of quiet zone on each side
    return (
        f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="#ffffff"/>'
        f'<path transform="translate({left + 4 * scale:.4f} {top + 4 * scale:.4f}) scale({scale:.6f})" '
        f'shape-rendering="crispEdges" fill="#000000" d="{"".join(runs)}"/>'
    )


def _line(x: float, y: float, size: float, content: str, more: str = "", fill: str = _INK) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}"{more}>{escape(content)}</text>'


def _fitted(content: str, sizes: dict[int, int], room: float) -> tuple[int, list[str]]:
    """The first of `sizes` (font size -> lines allowed), or else the last, in which `content` fits, and its lines."""
    for size, lines in sizes.items():
        wrapped = text.wrap(content, room / size)
        if len(wrapped) <= lines:
            break
    return size, wrapped


def _edition_1(certificate: Credential, data: bytes) -> bytes:
    subject, evidence = certificate.credentialSubject, certificate.evidence[0]
    dates = f"Issued on {certificate.validFrom[:10]}"
    if certificate.validUntil:
        dates += f", valid until {certificate.validUntil[:10]}"
    middle, bold = ' text-anchor="middle"', ' font-weight="bold"'
    body = []

    y = 124.0
    body.append(_line(_WIDTH / 2, y, 40, "Certificate", f'{middle}{bold} letter-spacing="6"'))
    y += 40
    body.append(_line(_WIDTH / 2, y, 18, credential.COURSE, middle, _QUIET))
    size, lines = _fitted(certificate.learner, {52: 1, 42: 1, 34: 1, 28: 2, 20: 3}, 940)
    y += 34
    for line in lines:
        y += size * 1.15
        body.append(_line(_WIDTH / 2, y, size, line, middle + bold))
    y += 38
    body.append(_line(_WIDTH / 2, y, 18, "passed the quiz of", middle, _QUIET))
    size, lines = _fitted(subject.achievement.name, {28: 1, 24: 1, 20: 2, 16: 3}, 940)
    y += 6
    for line in lines:
        y += size * 1.25
        body.append(_line(_WIDTH / 2, y, size, line, middle))
    y += 36
    body.append(_line(_WIDTH / 2, y, 20, f"{certificate.points} · {dates}", middle))

    left, y, size = 84.0, 478.0, 14
    for heading, content in (
        ("Asked for", subject.achievement.criteria.narrative),
        (evidence.name, evidence.narrative),
        ("Its limits", evidence.description),
    ):
        body.append(_line(left, y, size, heading, bold))
        for line in text.wrap(content, 640 / size):
            y += 18
            body.append(_line(left, y, size, line))
        y += 25
    for heading, content in (("Certificate", certificate.id), ("Key of the issuer", certificate.issuer.id)):
        body.append(_line(left, y, 13, heading, bold))
        body.append(_line(left + 140, y, 13, content, ' font-family="monospace"'))
        y += 19
    advice = "A picture proves nothing. Check this file: offload-quiz certificate verify FILE"
    body.append(_line(left, y + 4, 13, advice, fill=_QUIET))

    summary = (
        f"{certificate.learner} passed the quiz of {subject.achievement.name} of the course {credential.COURSE}. "
        f"{certificate.points}. {dates}. {evidence.name}: {evidence.narrative} {evidence.description} "
        f"Asked for: {subject.achievement.criteria.narrative} "
        f"Certificate {certificate.id}, key of the issuer {certificate.issuer.id}. "
        "A QR code repeats the id, the key and the signature."
    )
    frame = (
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="{_PAPER}"/>'
        f'<rect x="24" y="24" width="{_WIDTH - 48}" height="{_HEIGHT - 48}" fill="none" stroke="{_LINE}" stroke-width="6"/>'
        f'<rect x="36" y="36" width="{_WIDTH - 72}" height="{_HEIGHT - 72}" fill="none" stroke="{_LINE}" stroke-width="1.5"/>'
    )
    head = (
        f'<svg data-edition="1" xmlns="http://www.w3.org/2000/svg" xmlns:openbadges="https://purl.imsglobal.org/ob/v3p0" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-labelledby="title desc" '
        f"font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
    )
    tail = "\n".join(
        (
            f'<title id="title">Certificate of {escape(certificate.learner)}: {escape(subject.achievement.name)}</title>',
            f'<desc id="desc">{escape(summary)}</desc>',
            frame,
            *body,
            _qr_path(qr_text(certificate), 764, 452, 276),
            "</svg>\n",
        )
    )
    return head.encode() + _START + data.replace(_CLOSING, _CLOSING_SPLIT) + _END + b"\n" + tail.encode()


_EDITIONS: dict[int, Callable[[Credential, bytes], bytes]] = {1: _edition_1}
