"""`offload-quiz certificate verify FILE|ID`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from quizzes.certificates import badge_png, faces, keys, png
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.cli_common import read, say, stop
from quizzes.certificates.credential import Credential
from quizzes.certificates.fonts import FontError
from quizzes.certificates.judge import Judgement, judge
from quizzes.certificates.rdf import RdfMissingError
from quizzes.certificates.registry import Registry, RegistryError
from quizzes.certificates.verdicts import heading
from quizzes.say import N_, _


def verify(
    file: Annotated[str, typer.Argument(metavar="FILE|ID", help="The certificate, or (with --registry) its id.")],
    issuer: Annotated[str | None, typer.Option(help="The issuer you trust: a did:key, or the file of a public key.")] = None,
    registry: Annotated[Path | None, typer.Option(help="The registry of an issuer you trust: a folder.")] = None,
    email: Annotated[str | None, typer.Option(help="Say whether the certificate is bound to this e-mail.")] = None,
    allow_test_keys: Annotated[bool, typer.Option("--allow-test-keys", help="Take published test keys for real ones.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Verify a certificate, offline. Exit 0: valid. Exit 1: any other verdict. Exit 2: could not look."""
    try:
        trusted = None if issuer is None else keys.load_issuer(issuer)
    except keys.KeyFileError as error:
        stop(f"--issuer: {error}")
    try:
        published = None if registry is None else Registry(registry).read()
        if registry is not None and not Path(file).exists() and "/" not in file and "." not in file:
            data = Registry(registry).certificate(file)
        else:
            data = read(Path(file), "a certificate", png.LARGEST_FILE)
    except RegistryError as error:
        stop(str(error))
    try:
        found = judge(data, now=datetime.now(UTC), issuer=trusted, published=published, test_keys=allow_test_keys)
    except RdfMissingError as error:
        stop(_("{file}: its proof is for wallets. {error}").format(file=file, error=error))
    picture = _picture(data, found)
    if as_json:
        typer.echo(json.dumps(_report(found, picture)))
    else:
        _explain(file, found, email, picture)
    raise typer.Exit(found.exit_status)


def _picture(data: bytes, found: Judgement) -> str:
    """How the pixels of a PNG compare with a drawing made here; empty for other files and for what is not whole."""
    if not data.startswith(png.SIGNATURE) or found.certificate is None:
        return ""
    try:
        same = badge_png.is_as_drawn(data, faces.credential_in(data))
    except (FontError, ModuleNotFoundError):
        return "not compared"
    return "as drawn here" if same else "not as drawn here"


def _said_of_picture(picture: str) -> str:
    if picture == "as drawn here":
        return _("Its pixels are those that this program draws for this credential.")
    if picture == "not as drawn here":
        return _(
            "Its pixels are NOT those that this program draws for this credential: it was repainted, or drawn with other "
            "fonts. For a picture that you can rely on: offload-quiz certificate png FILE"
        )
    return _("Its pixels were not compared: this machine cannot draw it (extra certificates, or a font, is missing).")


def _report(found: Judgement, picture: str) -> dict[str, object]:
    report: dict[str, object] = {
        "valid": found.verdict == "valid",
        "verdict": found.verdict,
        "message": found.message,
    }
    if found.notes:
        report |= {"notes": list(found.notes), "picture": picture}
    if found.revocation is not None:
        report |= {"revoked_since": found.revocation.since, "reason": found.revocation.reason}
        report["superseded"] = found.revocation.superseded
    # What stands in a refused certificate is not repeated: a program that reads this must not take it for true.
    if found.verdict == "valid" and found.certificate is not None:
        report |= {key.replace(" ", "_"): value for key, value in facts(found.certificate).items()}
    return report


def facts(certificate: Credential | Certificate) -> dict[str, str]:
    """What the certificate says, by label, in the order in which people read it."""
    evidence = certificate.evidence[0]
    result = {
        "id": certificate.id,
        N_("issued to"): certificate.learner,
        N_("achievement"): certificate.name,
        N_("result"): certificate.points,
        N_("assessed"): evidence.narrative,
        N_("limits"): evidence.description,
        N_("valid from"): certificate.validFrom,
    }
    if isinstance(certificate, Certificate):
        result[N_("course")] = certificate.credentialSubject.achievement.version
        result[N_("questions")] = certificate.bank_version
        result[N_("evidence")] = ", ".join(part.id for part in certificate.evidence)
    if certificate.validUntil is not None:
        result[N_("valid until")] = certificate.validUntil
    return result | {N_("issuer"): certificate.issuer.id}


def _explain(file: str, found: Judgement, email: str | None, picture: str) -> None:
    say(f"{heading(found.verdict).upper()}: {file}")
    say(found.message)
    if found.verdict != "valid":
        say(found.meaning)
    for note in found.notes:
        say(f"{note} {_said_of_picture(picture)}")
    if found.certificate is None:
        return
    if found.verdict != "valid":
        say(_("What it says, of which nothing is confirmed:"))
    for label, value in facts(found.certificate).items():
        # What was signed is English; it is translated here alone, for whoever reads.
        say(f"  {_(label) + ':':<13}{_(value)}")
    if found.issuer_name:
        say(f"  {_('known as') + ':':<13}{found.issuer_name}")
    if email is not None:
        bound = isinstance(found.certificate, Certificate) and found.certificate.bound_to(email)
        say(f"  {'e-mail:':<13}{'bound to the one given' if bound else 'NOT bound to the one given'}")
