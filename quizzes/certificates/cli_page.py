"""`offload-quiz certificate page`: the static verify page of an issuer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quizzes.certificates import build_page
from quizzes.certificates.publish import publish
from quizzes.say import _


def page(
    issuer: Annotated[Path, typer.Option(help="The issuer.json of the registry.")],
    status: Annotated[
        Path | None, typer.Option(help="Its status.json; without it the page cannot tell what was revoked.")
    ] = None,
    revocations: Annotated[Path | None, typer.Option(help="Its revocations.json: since when and why.")] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("verify.html"),
) -> None:
    """Build one HTML file that verifies certificates in a browser, without server and network."""
    try:
        lists = [None if path is None else path.read_bytes() for path in (issuer, status, revocations)]
        publish({out: build_page.build(lists[0] or b"", status=lists[1], revocations=lists[2])})
    except OSError as error:
        typer.echo(
            _("{filename}: cannot be read or written ({strerror}). No page was made.").format(
                filename=error.filename, strerror=error.strerror
            ),
            err=True,
        )
        raise typer.Exit(2) from None
    except build_page.PageError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    typer.echo(str(out))
