"""`offload-quiz …`: build and grade quiz assignments, issue and verify certificates."""

from __future__ import annotations

import typer

from quizzes.certificates.cli import app as certificate_app
from quizzes.certificates.cli_registry import keygen
from quizzes.cli_analyse import register as register_analyse
from quizzes.cli_exercises import app as exercises_app
from quizzes.cli_grade import register as register_grade
from quizzes.cli_interchange import register as register_interchange
from quizzes.cli_lint import register as register_lint
from quizzes.cli_progress import app as progress_app
from quizzes.cli_rehearse import register as register_rehearse
from quizzes.cli_serve import register as register_serve
from quizzes.cli_words import Spoken

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, cls=Spoken)
app.add_typer(certificate_app, name="certificate")
app.add_typer(exercises_app, name="exercises")
app.add_typer(progress_app, name="progress")
app.command()(keygen)
register_grade(app)
register_lint(app)
register_analyse(app)
register_interchange(app)
register_serve(app)
register_rehearse(app)


if __name__ == "__main__":
    app()
