"""The certificate as a PNG that carries its credential. Pillow draws it; it comes with the extra `certificates`.

Other machines draw other pixels, so a PNG's picture cannot be compared as an SVG's is: what counts is the credential inside.
"""

from __future__ import annotations

import io
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from quizzes.certificates import badge, badge_layout, credential, fonts, png, qr, verify
from quizzes.certificates.strict_json import canonical

SCALE = 2
"""Pixels of a unit of the layout: 192 dots an inch on A4."""


class BakeError(ValueError):
    """A credential must not be baked into a picture; the message says why."""


def render(secured: dict[str, Any], *, now: datetime) -> bytes:
    """The PNG of a signed credential, credential inside. Raises BakeError where that does not verify, FontError."""
    return bake(draw(secured), secured, now=now)


def bake(picture: bytes, secured: dict[str, Any], *, now: datetime) -> bytes:
    """A copy of the PNG `picture` that carries `secured`. Raises BakeError where it is not whole, PngError."""
    verdict = verify.verify(verify.file_bytes(secured), now=now)
    if not verdict.valid:
        raise BakeError(f"This credential is not baked into a picture. {verdict.message}")
    return png.insert(picture, canonical(secured))


def draw(secured: dict[str, Any]) -> bytes:
    """The picture alone. Raises CredentialError for another shape, FontError where no font has a character."""
    from PIL import Image, ImageDraw

    shown = badge.face(credential.read(secured))
    image = Image.new("RGB", (badge_layout.WIDTH * SCALE, badge_layout.HEIGHT * SCALE), badge_layout.PAPER)
    pen = ImageDraw.Draw(image)
    for edge, width in badge_layout.FRAMES:
        corners = [edge * SCALE, edge * SCALE, (badge_layout.WIDTH - edge) * SCALE, (badge_layout.HEIGHT - edge) * SCALE]
        pen.rectangle(corners, outline=badge_layout.LINE, width=round(width * SCALE))
    for line in shown.lines:
        pieces = [(_font(path, line.size * SCALE), piece) for path, piece in fonts.runs(line.text)]
        x = line.x * SCALE
        if line.middle:
            x -= sum(font.getlength(piece) for font, piece in pieces) / 2
        for font, piece in pieces:
            fill = badge_layout.QUIET if line.quiet else badge_layout.INK
            pen.text((x, line.y * SCALE), piece, fill=fill, font=font, anchor="ls")
            x += font.getlength(piece)
    left, top, side = badge_layout.QR
    rows = qr.matrix(shown.qr)
    module = int(side * SCALE // (len(rows) + 2 * qr.QUIET))  # whole pixels: a blurred edge is what cameras fail at
    for x, y, length in qr.runs(rows):
        a, b = left * SCALE + (x + qr.QUIET) * module, top * SCALE + (y + qr.QUIET) * module
        pen.rectangle([a, b, a + length * module - 1, b + module - 1], fill="#000000")
    out = io.BytesIO()
    image.quantize(16).save(out, "PNG", optimize=True)
    return out.getvalue()


@cache
def _font(path: Path, size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
