"""The certificate as a PNG that carries its credential. Pillow draws it; it comes with the extra `certificates`.

Other machines draw other pixels, so a PNG's picture cannot be compared as an SVG's is: what counts is the credential
inside, and every verifier says so.
"""

from __future__ import annotations

import io
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from quizzes.certificates import badge, badge_layout, credential, fonts, png, qr, verify
from quizzes.certificates.strict_json import canonical
from quizzes.say import _

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
        raise BakeError(_("This credential is not baked into a picture. {message}").format(message=verdict.message))
    return png.insert(picture, canonical(secured))


def draw(secured: dict[str, Any]) -> bytes:
    """The picture alone. Raises CredentialError for another shape, FontError where no font has a character."""
    shown = badge.face(credential.read(secured))
    image, pen = _sheet(badge_layout.WIDTH * SCALE, badge_layout.HEIGHT * SCALE)
    for edge, width in badge_layout.FRAMES:
        corners = [edge * SCALE, edge * SCALE, (badge_layout.WIDTH - edge) * SCALE, (badge_layout.HEIGHT - edge) * SCALE]
        pen.rectangle(corners, outline=badge_layout.LINE, width=round(width * SCALE))
    for line in shown.lines:
        _write(pen, line, SCALE)
    left, top, side = badge_layout.QR
    _qr(pen, shown.qr, left * SCALE, top * SCALE, side * SCALE)
    return _png(image)


def draw_square(secured: dict[str, Any]) -> bytes:
    """A square badge: course, achievement, issuer and QR code, without the learner's name. Raises as `draw`."""
    face = badge_layout.square(credential.read(secured))
    image, pen = _sheet(badge_layout.SQUARE, badge_layout.SQUARE)
    for edge, width in badge_layout.FRAMES:
        corners = [edge, edge, badge_layout.SQUARE - edge, badge_layout.SQUARE - edge]
        pen.rounded_rectangle(corners, radius=60 - edge, outline=badge_layout.LINE, width=round(width))
    for line in face.lines:
        _write(pen, line, 1)
    _qr(pen, face.qr, *badge_layout.SQUARE_QR)
    return _png(image)


def is_as_drawn(picture: bytes, secured: dict[str, Any]) -> bool:
    """Whether the pixels of the PNG `picture` are those that `draw` or `draw_square` gives here and now.

    False proves no fraud: another machine may have other fonts. Raises as `draw`.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(picture), formats=["PNG"]) as image:
            size = image.size
            if size not in _SIZES:  # looked at before any pixel is unpacked
                return False
            pixels = image.convert("RGB").tobytes()
    except (OSError, SyntaxError, ValueError):  # what Pillow raises for pictures that are damaged behind their checksums
        return False
    with Image.open(io.BytesIO(_SIZES[size](secured))) as drawn:
        return drawn.convert("RGB").tobytes() == pixels


_SIZES = {
    (badge_layout.WIDTH * SCALE, badge_layout.HEIGHT * SCALE): draw,
    (badge_layout.SQUARE, badge_layout.SQUARE): draw_square,
}


def _sheet(width: int, height: int) -> tuple[Any, Any]:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), badge_layout.PAPER)
    return image, ImageDraw.Draw(image)


def _write(pen: Any, line: badge_layout.Line, scale: int) -> None:
    runs = fonts.runs(line.text)
    for size in range(line.size * scale, 0, -1):  # the layout only estimates how wide a text is
        pieces = [(_font(path, size), piece) for path, piece in runs]
        width = sum(font.getlength(piece) for font, piece in pieces)
        if width <= line.room * scale:
            break
    x = line.x * scale
    if line.middle:
        x -= width / 2
    for font, piece in pieces:
        fill = badge_layout.QUIET if line.quiet else badge_layout.INK
        pen.text((x, line.y * scale), piece, fill=fill, font=font, anchor="ls")
        x += font.getlength(piece)


def _qr(pen: Any, content: str, left: float, top: float, side: float) -> None:
    rows = qr.matrix(content)
    module = int(side // (len(rows) + 2 * qr.QUIET))  # whole pixels: a blurred edge is what cameras fail at
    for x, y, length in qr.runs(rows):
        a, b = left + (x + qr.QUIET) * module, top + (y + qr.QUIET) * module
        pen.rectangle([a, b, a + length * module - 1, b + module - 1], fill="#000000")


def _png(image: Any) -> bytes:
    out = io.BytesIO()
    image.quantize(16).save(out, "PNG", optimize=True)
    return out.getvalue()


@cache
def _font(path: Path, size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
