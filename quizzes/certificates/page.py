"""The page of one certificate: what it says, its verdict, LinkedIn's form and the fields to copy. Pure.

Everything from a certificate goes in escaped, and the policy allows one script, by its hash. A page in a frame of another site
cannot be forbidden from inside the page: whoever serves it sends `HEADERS` with it.
"""

from __future__ import annotations

from html import escape

from quizzes.certificates import linkedin
from quizzes.certificates.build_page import source, source_hash
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.judge import Judgement
from quizzes.say import _, spoken

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""What must be sent with a page; a `meta` element cannot say it."""


def render(judgement: Judgement) -> bytes:
    """The page (UTF-8) of a judged certificate. A revoked one has a page too, which says since when and why."""
    certificate = judgement.certificate
    tone = {"valid": "good", "expired": "unsure", "status unknown": "unsure"}.get(judgement.verdict, "bad")
    mark = {"good": "✓", "bad": "✗", "unsure": "!"}[tone]
    body = [
        f'<section class="verdict {tone}" role="status">'
        f'<h2><span aria-hidden="true">{mark} </span>{escape(judgement.heading)}</h2>',
        f"<p>{escape(judgement.meaning)}</p><p>{escape(judgement.message)}</p>",
        *(f"<p><strong>{escape(note)}</strong></p>" for note in judgement.notes),
        f"<p>{escape(_('This page tells what its server found. The file itself can be verified anywhere, without it.'))}</p>"
        "</section>",
    ]
    if isinstance(certificate, Certificate):
        body.append(_facts(certificate))
        if judgement.verdict == "valid":
            body.append(profile(certificate))
    style, script = source("style.css"), source("copy.js")
    policy = f"default-src 'none'; script-src {source_hash(script)}; style-src {source_hash(style)}; "
    policy += "base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="' + escape(spoken()) + '"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        '<meta name="robots" content="noindex">'
        f"<title>{escape(_('Certificate: {verdict}').format(verdict=judgement.heading))}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{escape(_('Certificate'))}</h1>{''.join(body)}</main><script>{script}</script></body></html>\n"
    ).encode()


def _facts(certificate: Certificate) -> str:
    evidence = certificate.evidence[0]
    rows = {
        _("Issued to"): certificate.learner,
        _("Achievement"): certificate.name,
        _("Result"): certificate.points,
        _("How it was assessed"): _(evidence.narrative),  # signed in English, translated for this reader
        _("Its limits"): _(evidence.description),
        _("Valid from"): certificate.validFrom,
        _("Valid until"): certificate.validUntil or _("no end"),
        _("Key of the issuer"): certificate.issuer.id,
        _("Certificate"): certificate.identifier,
    }
    return "<dl>" + "".join(f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in rows.items()) + "</dl>"


def profile(certificate: Certificate) -> str:
    """LinkedIn's link and the fields to copy, as HTML for a page with `copy.js`; empty where no profile could link there."""
    try:
        form = linkedin.form_of(certificate)
    except ValueError:  # an address that is not https, or none
        return ""
    copied = escape(_("{field} copied."))
    refused = escape(_("This browser does not let the page copy. Select the text and copy it."))
    rows = "".join(
        f"<dt>{escape(_(label))}</dt><dd>{escape(form[key])} "
        f'<button type="button" data-copy="{escape(form[key])}" data-label="{escape(_(label))}" '
        f'aria-label="{escape(_("Copy {field}").format(field=_(label)))}">{escape(_("Copy"))}</button></dd>'
        for key, label in linkedin.LABELS.items()
        if key in form
    )
    return (
        f"<h2>{escape(_('For a profile'))}</h2><p>"
        f'<a href="{escape(linkedin.link(form))}" rel="noopener noreferrer">{escape(_("Add to LinkedIn"))}</a>. '
        f"{escape(_('Where its form stays empty, copy the fields:'))}</p><dl>{rows}</dl>"
        f'<p id="copied" role="status" aria-live="polite" data-copied="{copied}" data-refused="{refused}"></p>'
    )
