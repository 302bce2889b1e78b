"""`offload-quiz certificate site`: a registry as a folder for any web host."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from quizzes.certificates import site as sites
from quizzes.certificates.cli_common import RegistryFolder, say, stop
from quizzes.certificates.registry import Registry, RegistryError
from quizzes.say import _


def site(
    folder: Annotated[Path, typer.Argument(help="The folder to build; what a build did not make there stays untouched.")],
    registry: RegistryFolder,
) -> None:
    """Build a static site of a registry: a page for each certificate, the verify page, the issuer's keys and lists.

    Building again brings it up to date. Exit 1 where a certificate of the registry is damaged and got no page.
    """
    try:
        report = sites.build(Registry(registry), folder, datetime.now(UTC))
    except (sites.SiteError, RegistryError) as error:
        stop(str(error))
    except OSError as error:
        why = _("{path}: cannot be read or written ({reason}). What stands there is whole; mend the cause and build again.")
        stop(why.format(path=error.filename or folder, reason=error.strerror))
    for sentence in (*report.notes, *report.left_out):
        say(sentence, error=True)
    counted = _("{folder}: {pages} certificates; {written} files written, {removed} removed. Upload it to where the ids lead.")
    say(counted.format(folder=folder, pages=report.pages, written=report.written, removed=report.removed))
    if report.left_out:
        raise typer.Exit(1)
