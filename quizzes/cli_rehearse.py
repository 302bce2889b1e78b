"""`offload-quiz rehearse`: a made-up class hands in a quiz, so that an instructor can try everything before people come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quizzes.cli_grade import Lesson, stop
from quizzes.say import _


def register(app: typer.Typer) -> None:
    app.command()(rehearse)


def rehearse(
    course: Annotated[Path, typer.Option(help="A course folder for the rehearsal alone, in which the quiz was built.")],
    lesson: Lesson = "01",
) -> None:
    """Let four made-up learners hand in a lesson's quiz: right, careless, half done, and a file that is no notebook."""
    from quizzes.nbgrader.course import CourseError
    from quizzes.nbgrader.rehearsal import hand_in
    from quizzes.question import BankError

    try:
        people = hand_in(course, lesson)
    except (CourseError, BankError, OSError) as error:
        raise stop(str(error)) from None
    for name, does in people.items():
        typer.echo(f"{name}: {does}")
    typer.echo(_("Handed in below {path}. Now: offload-quiz grade").format(path=course / "submitted"))
