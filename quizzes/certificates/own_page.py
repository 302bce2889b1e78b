"""The static page of one certificate: it carries the certificate and the issuer's lists, and verifies in the browser. Pure.

It needs no server. What stands in it as markup was escaped; what a certificate says is put in by the page's script, as text,
after the verdict.
"""

from __future__ import annotations

from html import escape

from quizzes.certificates import badge, identifier, page, qr
from quizzes.certificates.build_page import Trusted, assemble, source, source_hash
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.judge import Judgement
from quizzes.say import _


def render(data: bytes, judged: Judgement, trusted: Trusted, *, faces: dict[str, str], listed: str) -> bytes:
    """The page (UTF-8) of the certificate file `data`, which was `judged` when the page was built.

    `faces` are the files beside `ID.json` (face -> file name), `listed` is the date of the issuer's status list. Raises
    ValueError for a certificate that is not of today's shape.
    """
    certificate = judged.certificate
    if not isinstance(certificate, Certificate):
        raise ValueError(_("only certificates of today's shape have a page"))
    shown = identifier.shown(certificate.identifier)
    counts = judged.verdict == "valid"
    title = badge.face(certificate).title if counts else f"{judged.heading}: {shown}"
    places = {
        "title": escape(title),
        "id": escape(shown),
        "address": escape(certificate.id),
        "meta": _open_graph(certificate, judged, faces),
        "built": escape(_built(judged, listed)),
        "files": "".join(
            f'<li><a href="../{escape(name)}" download>{escape(label)}</a></li>'
            for label, name in _labelled({"json": f"{certificate.identifier}.json", **faces})
        ),
        "profile": page.profile(certificate) if counts else "",
        "qr": _qr(certificate.id),
    }
    constants = {"CERTIFICATE": data.decode()}
    return assemble("certificate.html", ("show", "copy", "own"), trusted, constants, places, images="data: blob:")


def missing(name: str, home: str) -> bytes:
    """The page for an address where nothing stands, of the issuer `name`; `home` is the address of the verify page."""
    style = source("style.css")
    policy = f"default-src 'none'; style-src {source_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    html = source("missing.html")
    # The style holds no place to fill, so it may come first; what comes from the issuer comes last.
    for place, content in (("csp", policy), ("style", style), ("home", escape(home)), ("issuer", escape(name))):
        html = html.replace(f"@{place}@", content)
    return html.encode()


def _labelled(files: dict[str, str]) -> list[tuple[str, str]]:
    labels = {
        "json": _("The certificate (JSON): this file counts"),
        "svg": _("A picture that carries the certificate (SVG)"),
        "png": _("A picture that carries the certificate (PNG)"),
        "pdf": _("A sheet to print (PDF); it carries no certificate, only the QR code"),
        "badge": _("A small badge for a profile (PNG), without the name in sight"),
    }
    return [(labels[face], name) for face, name in files.items()]


def _built(judged: Judgement, listed: str) -> str:
    said = _("When the page was built, by the issuer's list of {date}, the verdict was: {verdict}.").format(
        date=listed, verdict=judged.heading
    )
    if judged.revocation is not None and judged.revocation.since:
        said += " " + _("Revoked since {since}: {reason}.").format(
            since=judged.revocation.since, reason=judged.revocation.reason.rstrip(".")
        )
    return said


def _open_graph(certificate: Certificate, judged: Judgement, faces: dict[str, str]) -> str:
    """What other sites show of a link to the page. The learner's name is not in it: who shares a link may not want that."""
    about = {"og:type": "website", "og:url": certificate.id}
    if judged.verdict == "valid":
        issuer = certificate.issuer.name or certificate.issuer.id
        about |= {
            "og:title": certificate.name,
            "og:description": _("Issued by {issuer} on {date}. The page verifies the certificate in the browser.").format(
                issuer=issuer, date=certificate.validFrom[:10]
            ),
        }
        if "badge" in faces:
            about |= {
                "og:image": f"{certificate.base}/c/{faces['badge']}",
                "og:image:type": "image/png",
                "og:image:alt": certificate.name,
            }
    else:
        about |= {"og:title": judged.heading, "og:description": _("Open the page to see what became of this certificate.")}
    return "\n".join(f'<meta property="{key}" content="{escape(value)}">' for key, value in about.items())


def _qr(content: str) -> str:
    rows = qr.matrix(content)
    side = len(rows) + 2 * qr.QUIET
    path = "".join(f"M{x + qr.QUIET} {y + qr.QUIET}h{length}v1h-{length}z" for x, y, length in qr.runs(rows))
    label = escape(_("QR code of this page's address"))
    return (
        f'<svg viewBox="0 0 {side} {side}" width="160" height="160" role="img" aria-label="{label}">'
        f'<rect width="{side}" height="{side}" fill="#ffffff"/>'
        f'<path shape-rendering="crispEdges" fill="#000000" d="{path}"/></svg>'
    )
