"""`offload-quiz certificate svg | png | pdf | badge | linkedin`: the faces of a certificate, for screen, paper and profiles."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from quizzes.certificates import credential, faces, linkedin, strict_json, verify
from quizzes.certificates.certificate import Certificate
from quizzes.certificates.cli_common import read, say, stop
from quizzes.certificates.fonts import FontError
from quizzes.certificates.judge import judge
from quizzes.certificates.png import LARGEST_FILE as LARGEST_PNG
from quizzes.certificates.png import PngError
from quizzes.certificates.publish import publish
from quizzes.certificates.registry import Registry, RegistryError
from quizzes.say import _

Source = Annotated[
    str, typer.Argument(metavar="FILE|ID", help="The certificate (.json, .svg or .png), or with --registry its id.")
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="The file to write, or a folder; without it, beside FILE under its id.")
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
From = Annotated[
    Path | None, typer.Option("--registry", help="The issuer's registry; then nothing is made of a revoked certificate.")
]


def svg(file: Source, out: Out = None, force: Force = False, registry: From = None) -> None:
    """Draw the certificate as an SVG that carries it whole."""
    _draw("svg", file, out, force, registry)


def png(file: Source, out: Out = None, force: Force = False, registry: From = None) -> None:
    """Draw the certificate as a PNG that carries it whole."""
    _draw("png", file, out, force, registry)


def pdf(file: Source, out: Out = None, force: Force = False, registry: From = None) -> None:
    """Set the certificate on A4, as a PDF for paper. It carries a QR code, not the certificate itself."""
    _draw("pdf", file, out, force, registry)


def badge(
    file: Source,
    out: Out = None,
    picture: Annotated[Path | None, typer.Option(help="A PNG of your own to carry the certificate, instead of ours.")] = None,
    force: Force = False,
    registry: From = None,
) -> None:
    """Make a square badge for a profile: a small PNG without the learner's name in sight, the certificate inside."""
    _draw("badge", file, out, force, registry, picture)


def linkedin_form(
    file: Source,
    out: Out = None,
    force: Force = False,
    registry: From = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print LinkedIn's add-to-profile link, and the fields to copy where its form stays empty."""
    secured = _whole(file, registry)
    certificate = credential.read(secured)
    if not isinstance(certificate, Certificate) or not certificate.base.startswith("http"):
        stop(_("{file}: it was issued without a registry, so it has no page that a profile could link to.").format(file=file))
    try:
        form = linkedin.form_of(certificate)
    except ValueError as error:
        stop(_("{file}: LinkedIn takes no such certificate: {error}.").format(file=file, error=error))
    link = linkedin.link(form)
    if as_json:
        shown = json.dumps({"link": link, "fields": form}, ensure_ascii=False)
    else:
        width = max(map(len, linkedin.LABELS.values())) + 2
        rows = [f"  {label + ':':<{width}}{form[key]}" for key, label in linkedin.LABELS.items() if key in form]
        shown = "\n".join([_("Add it to a profile:"), f"  {link}", _("Where the form stays empty, copy these fields:"), *rows])
    if out is None:
        say(shown)
    else:
        _write(_place(out, file, f"{certificate.identifier}.linkedin.txt"), f"{shown}\n".encode(), force)


def _draw(face: str, file: str, out: Path | None, force: bool, registry: Path | None, picture: Path | None = None) -> None:
    secured = _whole(file, registry)
    path = _place(out, file, secured["id"].rpartition("/")[2].removeprefix("urn:uuid:") + faces.SUFFIXES[face])
    if not force:
        _check_free(path)  # before the work, and again when writing
    own = None if picture is None else read(picture, "a PNG", LARGEST_PNG)
    try:
        made = faces.render(face, secured, now=datetime.now(UTC), picture=own)
    except faces.FaceError as error:
        stop(f"{file}: {error}")
    except PngError as error:
        stop(_("{picture}: this picture cannot carry a certificate: {error}.").format(picture=picture, error=error))
    except FontError as error:
        stop(_("{file}: {error} Nothing was written.").format(file=file, error=error))
    except ModuleNotFoundError as error:
        stop(
            _("Drawing a {face} needs {package}. Install it: pip install 'offload-lab[certificates]'").format(
                face=face, package=error.name
            )
        )
    _write(path, made, force)


def _whole(file: str, registry: Path | None) -> dict:
    """The signed credential of a file, or of an id in `registry`; whole, in its time, and by the registry valid."""
    now = datetime.now(UTC)
    try:
        if registry is not None and not Path(file).exists() and "/" not in file and "." not in file:
            data = Registry(registry).certificate(file)
        else:
            data = read(Path(file), "a certificate", verify.LARGEST_FILE if not file.endswith(".png") else LARGEST_PNG)
        published = None if registry is None else Registry(registry).read()
    except RegistryError as error:
        stop(str(error))
    found = verify.verify(data, now=now)
    if not found.valid:
        stop(f"{file}: {found.message} {_('Nothing was written.')}")
    if published is not None:
        # Test keys are let through: a face says nothing about trust, and whoever tries the course out has only such a key.
        verdict = judge(data, now=now, published=published, test_keys=True)
        if verdict.verdict != "valid":
            stop(f"{file}: {verdict.heading}. {verdict.message} {_('Nothing was written.')}")
    secured = faces.credential_in(data)
    strict_json.canonical(secured)
    return secured


def _place(out: Path | None, file: str, name: str) -> Path:
    if out is None:
        return (Path(file).parent if Path(file).exists() else Path()) / name
    return out / name if out.is_dir() else out


def _check_free(path: Path) -> None:
    if os.path.lexists(path):
        stop(_("{path}: there is a file already. Give --force to write over it, or another -o.").format(path=path))


def _write(path: Path, data: bytes, force: bool) -> None:
    if not force:
        _check_free(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        publish({path: data})
    except OSError as error:
        where = error.filename or path
        stop(_("{path}: cannot be written ({reason}). Choose another -o.").format(path=where, reason=error.strerror))
    say(str(path))


def register(app: typer.Typer) -> None:
    """Adds the commands to `app`."""
    for command in (svg, png, pdf, badge):
        app.command()(command)
    app.command("linkedin")(linkedin_form)
