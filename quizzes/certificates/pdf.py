"""The certificate as a PDF on A4, fonts embedded. fpdf2 writes it; it comes with the extra `certificates`.

A PDF is for paper: it carries no credential. Its QR code leads to the certificate.
"""

from __future__ import annotations

from typing import Any

from quizzes.certificates import badge, badge_layout, credential, fonts, qr

_MM = 297 / badge_layout.WIDTH
_POINT = 72 / 25.4


def render(secured: dict[str, Any]) -> bytes:
    """The PDF of a signed credential. Raises CredentialError for another shape, FontError where no font has a character."""
    from fpdf import FPDF

    certificate = credential.read(secured)
    shown = badge.face(certificate)
    pdf = FPDF(orientation="L", unit="mm", format="A4")
    pdf.set_auto_page_break(False)
    pdf.set_title(shown.title)
    pdf.set_subject(shown.summary)
    pdf.set_creation_date(credential.parse_time(certificate.validFrom))
    pdf.add_page()
    pdf.set_draw_color(badge_layout.LINE)
    for edge, width in badge_layout.FRAMES:
        pdf.set_line_width(width * _MM)
        pdf.rect(edge * _MM, edge * _MM, (badge_layout.WIDTH - 2 * edge) * _MM, (badge_layout.HEIGHT - 2 * edge) * _MM)
    names: dict[Any, str] = {}
    for line in shown.lines:
        points = line.size * _MM * _POINT
        runs = fonts.runs(line.text)
        for path, _piece in runs:
            if path not in names:
                names[path] = f"font{len(names)}"
                pdf.add_font(names[path], fname=str(path))
        width = sum(_width(pdf, names[path], points, piece) for path, piece in runs)
        points *= min(1.0, line.room * _MM / width)  # the layout only estimates how wide a text is
        pieces = [(names[path], piece, _width(pdf, names[path], points, piece)) for path, piece in runs]
        x = line.x * _MM - (sum(width for _, _, width in pieces) / 2 if line.middle else 0)
        pdf.set_text_color(badge_layout.QUIET if line.quiet else badge_layout.INK)
        for name, piece, width in pieces:
            pdf.set_font(name, size=points)
            pdf.text(x, line.y * _MM, piece)
            x += width
    left, top, side = (value * _MM for value in badge_layout.QR)
    rows = qr.matrix(shown.qr)
    module = qr.side_mm(shown.qr, side) / (len(rows) + 2 * qr.QUIET)
    pdf.set_fill_color(0)
    for x, y, length in qr.runs(rows):
        pdf.rect(left + (x + qr.QUIET) * module, top + (y + qr.QUIET) * module, length * module, module, style="F")
    return bytes(pdf.output())


def _width(pdf: Any, font: str, points: float, text: str) -> float:
    pdf.set_font(font, size=points)
    return pdf.get_string_width(text)
