"""A certificate's faces: the files that show it, made of its signed credential alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from quizzes.certificates import badge, badge_png, pdf, png, signing, strict_json, verify
from quizzes.certificates.strict_json import MalformedJsonError
from quizzes.say import _

SUFFIXES = {"svg": ".svg", "png": ".png", "pdf": ".pdf", "badge": ".badge.png"}
"""How the file of each face ends."""


class FaceError(ValueError):
    """A face cannot be made; the message says why and what to do."""


def credential_in(data: bytes) -> dict[str, Any]:
    """The signed credential in the bytes of a certificate file: JSON, SVG or PNG.

    Nothing is checked but that it is there: `verify.verify` does the rest. Raises FaceError where there is none.
    """
    try:
        if data.startswith(png.SIGNATURE):
            data = png.embedded(data)
        elif data.startswith(b"<"):
            data = badge.embedded(data)[1]
        secured = strict_json.loads(data)
    except (png.PngError, badge.BadgeError, MalformedJsonError) as error:
        raise FaceError(_("This is not a certificate, or it is damaged: {error}.").format(error=error)) from None
    if not isinstance(secured, dict):
        raise FaceError(_("This is not a certificate: it is JSON, but not an object."))
    return secured


def render(face: str, secured: dict[str, Any], *, now: datetime, picture: bytes | None = None) -> bytes:
    """The file of `face` (a key of `SUFFIXES`) for a signed credential.

    `picture`, a PNG of the caller's own, takes the place of the drawing in a "badge". Raises FaceError where the credential is
    not whole and in its time, FontError where no font here draws a text, PngError for a picture that is no PNG.
    """
    verdict = verify.verify(verify.file_bytes(secured), now=now)
    if not verdict.valid:
        raise FaceError(_("No picture is made of this certificate. {why}").format(why=verdict.message))
    proof = secured["proof"]
    if face != "pdf" and proof.get("cryptosuite") != signing.CRYPTOSUITE:
        raise FaceError(_("A picture carries the certificate itself, not its edition for wallets. Give the file ID.json."))
    if face == "badge" and picture is not None:
        return badge_png.bake(picture, secured, now=now)
    return _DRAWN[face](secured)


_DRAWN: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "svg": badge.render,
    "png": lambda secured: png.insert(badge_png.draw(secured), strict_json.canonical(secured)),
    "pdf": pdf.render,
    "badge": lambda secured: png.insert(badge_png.draw_square(secured), strict_json.canonical(secured)),
}
