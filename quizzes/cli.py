"""`offload-quiz …`: build and grade quiz assignments, issue and verify certificates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from quizzes.certificates.cli import app as certificate_app
from quizzes.certificates.cli_registry import keygen
from quizzes.cli_analyse import register as register_analyse
from quizzes.cli_exercises import app as exercises_app
from quizzes.cli_lint import register as register_lint
from quizzes.cli_progress import app as progress_app
from quizzes.cli_serve import register as register_serve
from quizzes.cli_words import Spoken
from quizzes.say import _

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, cls=Spoken)
app.add_typer(certificate_app, name="certificate")
app.add_typer(exercises_app, name="exercises")
app.add_typer(progress_app, name="progress")
app.command()(keygen)
register_lint(app)
register_analyse(app)
register_serve(app)

Course = Annotated[Path, typer.Option(help="The course folder: source, release, submitted, gradebook.db.")]
Lesson = Annotated[str, typer.Option(help='The number of the lesson, for example "01".')]


@app.command()
def build(course: Course = Path("graded"), lesson: Lesson = "01") -> None:
    """Make a lesson's graded quiz: an nbgrader assignment, released without its key."""
    from quizzes.nbgrader.course import CourseError, build_assignment
    from quizzes.question import BankError

    try:
        released = build_assignment(course, lesson)
    except (CourseError, BankError) as error:
        raise _stop(error) from None
    typer.echo(_("Hand out {path}").format(path=released))
    typer.echo(
        _("Collect each as {path}").format(path=course / "submitted" / "<student>" / released.parent.name / released.name)
    )


@app.command()
def grade(
    course: Course = Path("graded"),
    lesson: Lesson = "01",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    students: Annotated[Path | None, typer.Option(help="Class list, CSV with a column id; else COURSE/students.csv.")] = None,
    db_url: Annotated[str | None, typer.Option(help="Gradebook, for example postgresql://…; else SQLite.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the scores to this CSV file.")] = None,
) -> None:
    """Grade every submission, without running any of it. A bad one is named and does not stop the others."""
    from quizzes.nbgrader.course import CourseError
    from quizzes.nbgrader.course import grade as grade_course
    from quizzes.nbgrader.export import to_csv
    from quizzes.nbgrader.roster import RosterError
    from quizzes.question import BankError

    try:
        grades = grade_course(course, lesson, students, db_url)
        if csv is not None:
            csv.write_text(
                to_csv((r.student, r.score, r.max_score, r.notes) for r in grades.results), encoding="utf-8", newline=""
            )
    except (CourseError, BankError, RosterError, OSError) as error:
        raise _stop(error) from None
    if as_json:
        typer.echo(json.dumps(grades.to_json(), ensure_ascii=False))
        return
    for result in grades.results:
        typer.echo(_("{name}: {score:g} of {most:g}").format(name=result.student, score=result.score, most=result.max_score))
        for note in result.notes:
            typer.echo(f"    {note}")


def _stop(error: Exception) -> typer.Exit:
    typer.echo(str(error), err=True)
    return typer.Exit(2)


if __name__ == "__main__":
    app()
