"""`offload-quiz …`: build and grade quiz assignments, issue and verify certificates."""

from __future__ import annotations

import typer

from quizzes.certificates.cli import app as certificate_app

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
app.add_typer(certificate_app, name="certificate")

if __name__ == "__main__":
    app()
