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

from quizzes.certificates import badge_layout, credential, qr
from quizzes.certificates.badge_layout import HEIGHT, INK, LINE, PAPER, QUIET, WIDTH, Face
from quizzes.certificates.credential import Credential
from quizzes.certificates.strict_json import canonical
from quizzes.say import _

EDITION = 3
"""The edition of the drawing that new certificates get; those of the first shape have edition 1."""

_START = b"<openbadges:credential><![CDATA["
_END = b"]]></openbadges:credential>"
_CLOSING, _CLOSING_SPLIT = b"]]>", b"]]]]><![CDATA[>"  # what ends a CDATA section, and the same across two of them
_EDITION = re.compile(rb'\A<svg data-edition="([1-9][0-9]{0,3})" ')


class BadgeError(ValueError):
    """An SVG is not a certificate of this program; the message says why, in a sentence without an end stop."""


def render(secured: dict[str, Any], edition: int | None = None) -> bytes:
    """The SVG (UTF-8) of a signed credential, in the edition of its shape unless another is asked for.

    Raises CredentialError for another shape, BadgeError for an unknown edition or one that does not belong to the shape.
    """
    certificate = credential.read(secured)
    belong = (1,) if isinstance(certificate, Credential) else (2, 3)
    edition = edition_of(certificate) if edition is None else edition
    if edition not in _EDITIONS:
        raise BadgeError(
            _("it is drawn in edition {edition}, which this version of the program does not know").format(edition=edition)
        )
    if edition not in belong:
        told = _("it is drawn in edition {edition}, and certificates of its shape have edition {belongs}")
        raise BadgeError(told.format(edition=edition, belongs=", ".join(map(str, belong))))
    return _draw(edition, _EDITIONS[edition](certificate), canonical(secured))


def edition_of(certificate: Any) -> int:
    """The newest edition of the drawing that belongs to the shape of `certificate`."""
    return 1 if isinstance(certificate, Credential) else EDITION


def face(certificate: Any) -> Face:
    """What the picture of a certificate shows, in the edition of its shape."""
    return _EDITIONS[edition_of(certificate)](certificate)


def embedded(svg: bytes) -> tuple[int, bytes]:
    """The edition of the drawing and the bytes of the credential inside. Raises BadgeError where they are not found.

    The bytes are searched, not parsed as XML: `render` tells afterwards whether all the rest is as it must be, so there is no
    entity, include or style for a parser to follow.
    """
    edition = _EDITION.match(svg)
    if not edition:
        raise BadgeError(_("it does not begin as the SVG certificates of this program do"))
    start = svg.find(_START)
    end = svg.find(_END, start)
    if start < 0 or end < 0:
        raise BadgeError(_("there is no credential in it"))
    return int(edition[1]), svg[start + len(_START) : end].replace(_CLOSING_SPLIT, _CLOSING)


def qr_text(certificate: Any) -> str:
    """What the QR code says: the certificate's id, an address where there is one. In edition 1, key and signature too."""
    return face(certificate).qr


def _qr_path(content: str, left: float, top: float, side: float) -> str:
    rows = qr.matrix(content)
    path = "".join(f"M{x} {y}h{length}v1h-{length}z" for x, y, length in qr.runs(rows))
    scale = side / (len(rows) + 2 * qr.QUIET)
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{side:g}" height="{side:g}" fill="#ffffff"/>'
        f'<path transform="translate({left + 4 * scale:.4f} {top + 4 * scale:.4f}) scale({scale:.6f})" '
        f'shape-rendering="crispEdges" fill="#000000" d="{path}"/>'
    )


def _line(line: badge_layout.Line) -> str:
    more = "".join(
        attribute
        for wanted, attribute in (
            (line.middle, ' text-anchor="middle"'),
            (line.bold, ' font-weight="bold"'),
            (line.spaced, ' letter-spacing="6"'),
            (line.mono, ' font-family="monospace"'),
        )
        if wanted
    )
    fill = QUIET if line.quiet else INK
    return f'<text x="{line.x:g}" y="{line.y:g}" font-size="{line.size}" fill="{fill}"{more}>{escape(line.text)}</text>'


def _draw(edition: int, shown: Face, data: bytes) -> bytes:
    frame = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>' + "".join(
        f'<rect x="{edge}" y="{edge}" width="{WIDTH - 2 * edge}" height="{HEIGHT - 2 * edge}" fill="none" '
        f'stroke="{LINE}" stroke-width="{width:g}"/>'
        for edge, width in badge_layout.FRAMES
    )
    head = (
        f'<svg data-edition="{edition}" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:openbadges="https://purl.imsglobal.org/ob/v3p0" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title desc" '
        f"font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
    )
    tail = "\n".join(
        (
            f'<title id="title">{escape(shown.title)}</title>',
            f'<desc id="desc">{escape(shown.summary)}</desc>',
            frame,
            *map(_line, shown.lines),
            _qr_path(shown.qr, *badge_layout.QR),
            "</svg>\n",
        )
    )
    return head.encode() + _START + data.replace(_CLOSING, _CLOSING_SPLIT) + _END + b"\n" + tail.encode()


_EDITIONS: dict[int, Callable[[Any], Face]] = {
    1: badge_layout.first_edition,
    2: badge_layout.second_edition,
    3: badge_layout.third_edition,
}
