"""LinkedIn's "add to profile": a link that fills its form, and the same fields to copy where it does not. Pure."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from quizzes.certificates import credential
from quizzes.certificates.certificate import Certificate
from quizzes.say import N_, _

ENTRY = "https://www.linkedin.com/profile/add"


def fields(*, name: str, organization: str, issued: str, url: str, identifier: str, until: str | None = None) -> dict[str, str]:
    """The parameters of the form, in its own names. `issued` and `until` are written as in a credential.

    Raises ValueError where `url` is not the https (or local http) address of this certificate's own page: a link that leads
    elsewhere would put somebody else's certificate into a profile.
    """
    for what, value in (("name", name), ("organization", organization), ("identifier", identifier)):
        if not value.strip():
            raise ValueError(_("LinkedIn's form needs a {what}, and it is empty").format(what=what))
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
        raise ValueError(_("the certificate's address, {url}, does not begin with https:// and a host").format(url=url))
    if identifier not in parts.path:
        raise ValueError(
            _("the certificate's address, {url}, does not hold its id, {identifier}: it leads to something else").format(
                url=url, identifier=identifier
            )
        )
    start = credential.parse_time(issued)
    found = {
        "startTask": "CERTIFICATION_NAME",
        "name": name,
        "organizationName": organization,
        "issueYear": str(start.year),
        "issueMonth": str(start.month),
    }
    if until is not None:
        end = credential.parse_time(until)
        found |= {"expirationYear": str(end.year), "expirationMonth": str(end.month)}
    return found | {"certUrl": url, "certId": identifier}


def form_of(certificate: Certificate) -> dict[str, str]:
    """The form for a certificate, by `fields`; raises ValueError as that does."""
    return fields(
        name=certificate.name,
        organization=certificate.issuer.name or "Offload Lab",
        issued=certificate.validFrom,
        until=certificate.validUntil,
        url=certificate.id,
        identifier=certificate.identifier,
    )


def link(form: dict[str, str]) -> str:
    """The address that opens LinkedIn's form with `form`, as made by `fields`, filled in."""
    return f"{ENTRY}?{urlencode(form)}"


LABELS = {
    "name": N_("Name"),
    "organizationName": N_("Issuing organization"),
    "issueMonth": N_("Issue month"),
    "issueYear": N_("Issue year"),
    "expirationMonth": N_("Expiration month"),
    "expirationYear": N_("Expiration year"),
    "certId": N_("Credential ID"),
    "certUrl": N_("Credential URL"),
}
"""What LinkedIn's own form calls the fields, in its order."""
