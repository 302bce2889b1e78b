"""What the picture of a certificate shows, and where: the one layout behind SVG, PNG and PDF. Pure.

`verify_page/badge.js` does the same for the static page. Both must give the same numbers, so all of it is sums and products of
a few floats in one order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quizzes.certificates import credential, text

WIDTH, HEIGHT = 1120, 792
"""The units of the picture: A4 across, one unit is 297 / 1120 mm."""
QR = (764.0, 452.0, 276.0)
"""Left, top and side of the QR code with its quiet zone: 73 mm on paper."""
FRAMES = ((24, 6.0), (36, 1.5))
"""Distance from the edge and width of the two frames."""
INK, QUIET, PAPER, LINE = "#1b1b1b", "#4a4a4a", "#ffffff", "#0b4f6c"

SQUARE = 600
"""Pixels of a side of the square badge."""
SQUARE_QR = (190.0, 330.0, 220.0)

Measure = Callable[[str], float]

_LOWEST = 752.0
_SMALL_PRINT = (14, 12, 10, 9, 8)


@dataclass(frozen=True)
class Line:
    """One line of text. `x` is its left end, or its middle where `middle` is set; `y` the base line."""

    x: float
    y: float
    size: int
    text: str
    middle: bool = False
    bold: bool = False
    mono: bool = False
    quiet: bool = False
    spaced: bool = False
    room: float = 960.0
    """The width that there is. PNG and PDF, which know how wide their letters are, set a wider line smaller."""


@dataclass(frozen=True)
class Face:
    """A certificate as a picture."""

    title: str
    summary: str
    """All that the picture says, for who cannot see it."""
    lines: tuple[Line, ...]
    qr: str
    """What the QR code says."""


def first_edition(certificate: Any) -> Face:
    """Edition 1, for certificates of the first shape (`credential.Credential`)."""
    subject, evidence = certificate.credentialSubject, certificate.evidence[0]
    lines, y = _head(certificate, "passed the quiz of")
    lines.append(Line(WIDTH / 2, y, 20, f"{certificate.points} · {_dates(certificate)}", middle=True))
    y = 478.0
    for heading, content in (
        ("Asked for", subject.achievement.criteria.narrative),
        (evidence.name, evidence.narrative),
        ("Its limits", evidence.description),
    ):
        lines.append(Line(84.0, y, 14, heading, bold=True, room=660.0))
        for line in text.wrap(content, 640 / 14):
            y += 18
            lines.append(Line(84.0, y, 14, line, room=660.0))
        y += 25
    for heading, content in (("Certificate", certificate.id), ("Key of the issuer", certificate.issuer.id)):
        lines.append(Line(84.0, y, 13, heading, bold=True))
        lines.append(Line(224.0, y, 13, content, mono=True))
        y += 19
    advice = "A picture proves nothing. Check this file: offload-quiz certificate verify FILE"
    lines.append(Line(84.0, y + 4, 13, advice, quiet=True))
    summary = (
        f"{certificate.learner} passed the quiz of {subject.achievement.name} of the course {credential.COURSE}. "
        f"{certificate.points}. {_dates(certificate)}. {evidence.name}: {evidence.narrative} {evidence.description} "
        f"Asked for: {subject.achievement.criteria.narrative} "
        f"Certificate {certificate.id}, key of the issuer {certificate.issuer.id}. "
        "A QR code repeats the id, the key and the signature."
    )
    # By id, issuer's key and signature a print leads to its one file.
    qr = "\n".join(("Offload Lab certificate", certificate.id, certificate.issuer.id, certificate.proof.proofValue))
    return Face(_title(certificate), summary, tuple(lines), qr)


def second_edition(certificate: Any) -> Face:
    """Edition 2, for certificates of today's shape (`certificate.Certificate`). Its QR code is the id."""
    return _today(certificate, text.width)


def third_edition(certificate: Any) -> Face:
    """Edition 3: edition 2 with widths that names of wide letters do not exceed, and sizes in which the longest fit."""
    return _today(certificate, text.most_width, {16: 4, 12: 5, 8: 7, 6: 9}, {12: 4, 8: 6, 6: 9})


def _today(certificate: Any, measure: Measure, *smaller: dict[int, int]) -> Face:
    achievement, evidence = certificate.credentialSubject.achievement, certificate.evidence[0]
    passed = "passed the quizzes of" if achievement.achievementType == "Course" else "passed the quiz of"
    lines, y = _head(certificate, passed, measure, *smaller)
    lines.append(Line(WIDTH / 2, y, 20, f"{certificate.points} · {_dates(certificate)}", middle=True))
    versions = f"Course version {achievement.version}, question bank {certificate.bank_version or 'not named'}"
    lines.append(Line(WIDTH / 2, y + 26, 15, versions, middle=True, quiet=True))
    facts = [("Certificate", _grouped(certificate.identifier)), ("Key of the issuer", certificate.issuer.id)]
    if certificate.issuer.name is not None:
        facts.insert(0, ("Issuer", certificate.issuer.name))
    advice = "A picture proves nothing. Check this file: offload-quiz certificate verify FILE"
    parts = (
        ("Asked for", achievement.criteria.narrative),
        ("How it was assessed", evidence.narrative),
        ("Its limits", evidence.description),
    )
    for size in _SMALL_PRINT:  # the first in which all of it fits
        small, bottom = _small_print(parts, facts, advice, size, measure)
        if bottom <= _LOWEST:
            break
    summary = (
        f"{certificate.learner} {passed} {achievement.name} of the course {credential.COURSE}. "
        f"{certificate.points}. {_dates(certificate)}. {versions}. "
        f"How it was assessed: {evidence.narrative} {evidence.description} "
        f"Asked for: {achievement.criteria.narrative} "
        f"Certificate {certificate.id}, key of the issuer {certificate.issuer.id}. A QR code repeats the id."
    )
    return Face(_title(certificate), summary, (*lines, *small), certificate.id)


def square(certificate: Any) -> Face:
    """The square badge of a certificate of either shape, in pixels. It shows no person."""
    middle = SQUARE / 2
    lines, y = [], 76.0
    for line in text.wrap(credential.COURSE, 480 / 22):
        lines.append(Line(middle, y, 22, line, middle=True, quiet=True, room=500.0))
        y += 28
    sizes = {40: 2, 32: 3, 24: 4, 18: 6, 12: 9}
    size, wrapped = _fitted(certificate.credentialSubject.achievement.name, sizes, 480, text.most_width)
    y += 10
    for line in wrapped:
        y += size * 1.2
        lines.append(Line(middle, y, size, line, middle=True, bold=True, room=500.0))
    facts = certificate.validFrom[:10]
    issuer = getattr(certificate.issuer, "name", None)
    for number, line in enumerate(text.wrap(facts if issuer is None else f"{issuer} · {facts}", 440 / 12)[:2]):
        lines.append(Line(middle, 548.0 + 15 * number, 12, line, middle=True, quiet=True, room=440.0))
    return Face(_title(certificate), certificate.name, tuple(lines), certificate.id)


def _small_print(
    parts: tuple[tuple[str, str], ...], facts: list[tuple[str, str]], advice: str, size: int, measure: Measure
) -> tuple[list[Line], float]:
    lines, y, step = [], 478.0, size + 4
    for heading, content in parts:
        lines.append(Line(84.0, y, size, heading, bold=True, room=640.0))
        for line in text.wrap(content, 640 / size):
            y += step
            lines.append(Line(84.0, y, size, line, room=660.0))
        y += step + 6
    for heading, content in facts:
        lines.append(Line(84.0, y, size - 1, heading, bold=True))
        mono = heading != "Issuer"  # its letters are equally wide
        for line in text.wrap(content, 520 / (size - 1), text.width if mono else measure):
            lines.append(Line(224.0, y, size - 1, line, mono=mono, room=530.0))
            y += step
    lines.append(Line(84.0, y + 4, size - 1, advice, quiet=True))
    return lines, y + 4


def _head(
    certificate: Any,
    passed: str,
    measure: Measure = text.width,
    smaller_name: dict[int, int] | None = None,
    smaller_achievement: dict[int, int] | None = None,
) -> tuple[list[Line], float]:
    middle = WIDTH / 2
    lines = [Line(middle, 124.0, 40, "Certificate", middle=True, bold=True, spaced=True)]
    lines.append(Line(middle, 164.0, 18, credential.COURSE, middle=True, quiet=True))
    y = 198.0
    size, wrapped = _fitted(certificate.learner, {52: 1, 42: 1, 34: 1, 28: 2, 20: 3, **(smaller_name or {})}, 940, measure)
    for line in wrapped:
        y += size * 1.15
        lines.append(Line(middle, y, size, line, middle=True, bold=True))
    y += 38
    lines.append(Line(middle, y, 18, passed, middle=True, quiet=True))
    sizes = {28: 1, 24: 1, 20: 2, 16: 3, **(smaller_achievement or {})}
    size, wrapped = _fitted(certificate.credentialSubject.achievement.name, sizes, 940, measure)
    y += 6
    for line in wrapped:
        y += size * 1.25
        lines.append(Line(middle, y, size, line, middle=True))
    return lines, y + 36


def _fitted(content: str, sizes: dict[int, int], room: float, measure: Measure) -> tuple[int, list[str]]:
    """The first of `sizes` (font size -> lines allowed), or else the last, in which `content` fits, and its lines."""
    for size, allowed in sizes.items():
        wrapped = text.wrap(content, room / size, measure)
        if len(wrapped) <= allowed:
            break
    return size, wrapped


def _dates(certificate: Any) -> str:
    end = f", valid until {certificate.validUntil[:10]}" if certificate.validUntil else ""
    return f"Issued on {certificate.validFrom[:10]}{end}"


def _title(certificate: Any) -> str:
    return f"Certificate of {certificate.learner}: {certificate.credentialSubject.achievement.name}"


def _grouped(identifier: str) -> str:
    return "-".join(identifier[start : start + 4] for start in range(0, len(identifier), 4))
