"""`offload-quiz exercises …`: hand out code exercises, and grade a class of them in isolation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quizzes.say import _, _n

if TYPE_CHECKING:
    from quizzes.exercises.grade import Report

app = typer.Typer(no_args_is_help=True, help=__doc__)
Course = Annotated[Path, typer.Option(help="The course folder, with submitted/<student>/exercises/exercises.ipynb.")]


@app.command()
def build(course: Course = Path("graded")) -> None:
    """Make the notebook to hand out, without any hidden case."""
    from quizzes.exercises.exercise import ExerciseError, exercises
    from quizzes.exercises.notebook import build as build_notebook
    from quizzes.exercises.notebook import write

    path = course / "release" / "exercises" / "exercises.ipynb"
    try:
        write(build_notebook(exercises()), path)
    except (ExerciseError, OSError) as error:
        raise _stop(error) from None
    typer.echo(_("Hand out {path}").format(path=path))
    theirs = course / "submitted" / "<student>" / "exercises" / "exercises.ipynb"
    typer.echo(_("Collect each as {path}").format(path=theirs))


@app.command()
def grade(
    course: Course = Path("graded"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    feedback: Annotated[Path | None, typer.Option(help="A folder for a page of feedback per student.")] = None,
    db_url: Annotated[str | None, typer.Option(help="Gradebook, for example postgresql://…; else COURSE/gradebook.db.")] = None,
    accept: Annotated[
        bool, typer.Option("--i-accept-no-isolation", help="Run learners' code as yourself where no isolation works.")
    ] = False,
) -> None:
    """Run and grade every submission's exercises. A bad one is named and does not stop the others.

    The points go into the gradebook as an assignment of their own. Marks given there by hand stay.
    """
    from quizzes.exercises import grade as grading
    from quizzes.exercises.exercise import ExerciseError, with_keys
    from quizzes.exercises.gradebook import enter
    from quizzes.exercises.sandbox import NoIsolation
    from quizzes.exercises.submission import is_student

    try:
        report = grading.grade_class(course, accept)
        if feedback is not None:
            feedback.mkdir(parents=True, exist_ok=True)
            for result in report.results:
                if is_student(result.student):
                    (feedback / f"{result.student}.html").write_text(grading.feedback(result), encoding="utf-8")
    except (grading.ExercisesError, ExerciseError, NoIsolation, OSError) as error:
        raise _stop(error) from None
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        _say(report)
    try:
        standing = enter(course, report, with_keys(), db_url)
    except (grading.ExercisesError, ExerciseError) as error:
        raise _stop(error) from None  # after the report: what was computed is not lost
    for result in report.results:
        if result.student in standing and standing[result.student] != result.score:
            told = _("{student}: {score:g} points stand in the gradebook, with marks given by hand or of an earlier grading")
            typer.echo(told.format(student=result.student, score=standing[result.student]), err=as_json)


def _say(report: Report) -> None:
    typer.echo(_("Isolation: {level}").format(level=report.isolation))
    for result in report.results:
        scored = _("{name}: {score:g} of {most:g}")
        typer.echo(scored.format(name=result.student, score=result.score, most=result.max_score))
        for note in result.notes:
            typer.echo(f"    {note}")
        for one in result.exercises:
            line = _n(
                "{name}: {score:g} of {most:g} ({passed} of {cases} case)",
                "{name}: {score:g} of {most:g} ({passed} of {cases} cases)",
                one.cases,
            )
            typer.echo(
                "    " + line.format(name=one.exercise, score=one.score, most=one.max_score, passed=one.passed, cases=one.cases)
            )
            for note in one.notes:
                typer.echo(f"        {note}")


def _stop(error: Exception) -> typer.Exit:
    typer.echo(str(error), err=True)
    return typer.Exit(2)
