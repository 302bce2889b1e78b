"""`offload-quiz build` and `grade`: a lesson's graded quiz as an nbgrader assignment, and a class of it graded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quizzes.say import _

if TYPE_CHECKING:
    from quizzes.nbgrader.judged import Trust

Course = Annotated[Path, typer.Option(help="The course folder: source, release, submitted, gradebook.db.")]
Lesson = Annotated[str, typer.Option(help='The number of the lesson, for example "01".')]


def register(app: typer.Typer) -> None:
    app.command()(build)
    app.command()(grade)
    app.command()(feedback)


def build(course: Course = Path("graded"), lesson: Lesson = "01") -> None:
    """Make a lesson's graded quiz: an nbgrader assignment, released without its key."""
    from quizzes.nbgrader.course import CourseError, build_assignment
    from quizzes.nbgrader.refusing import guard
    from quizzes.question import BankError

    try:
        released = build_assignment(course, lesson)
        note = guard(course)
    except (CourseError, BankError, OSError) as error:
        raise stop(str(error)) from None
    typer.echo(f"Hand out {released}")
    typer.echo(f"Collect each as {course / 'submitted' / '<student>' / released.parent.name / released.name}")
    if note:
        typer.echo(note)


def grade(
    course: Course = Path("graded"),
    lesson: Lesson = "01",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    students: Annotated[Path | None, typer.Option(help="Class list, CSV with a column id; else COURSE/students.csv.")] = None,
    db_url: Annotated[str | None, typer.Option(help="Gradebook, for example postgresql://…; else SQLite.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the scores to this CSV file.")] = None,
    issuer: Annotated[
        list[str] | None,
        typer.Option(
            help="Grade by receipts of this judging service: its did:key or public key file, may be followed by "
            "` until TIME` for a key out of use. Can be given more than once."
        ),
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts at a question whose receipts count.")] = 2,
    typed_too: Annotated[
        bool, typer.Option("--typed-too", help="With --issuer: where no receipt counts, judge the typed answer.")
    ] = False,
    due: Annotated[
        str | None,
        typer.Option(help="When it is due, with a zone: `2026-12-24T23:59 Europe/Berlin`, `…+01:00`; `none` for never. Kept."),
    ] = None,
    late: Annotated[
        str | None,
        typer.Option(help="What being late costs: none, zero (all), or a share of the points, `10%/day`, `2%/hour`. Kept."),
    ] = None,
) -> None:
    """Grade every submission, without running any of it. A bad one is named and does not stop the others."""
    from quizzes.nbgrader.course import CourseError
    from quizzes.nbgrader.course import grade as grade_course
    from quizzes.nbgrader.due import DueError
    from quizzes.nbgrader.export import to_csv
    from quizzes.nbgrader.roster import RosterError
    from quizzes.question import BankError

    trust = _trust(issuer or [], attempts, typed_too)
    try:
        grades = grade_course(course, lesson, students, db_url, trust, due, late)
        if csv is not None:
            csv.write_text(
                to_csv((r.student, r.score, r.max_score, r.notes) for r in grades.results), encoding="utf-8", newline=""
            )
    except (CourseError, BankError, DueError, RosterError, OSError) as error:
        raise stop(str(error)) from None
    if as_json:
        typer.echo(json.dumps(grades.to_json(), ensure_ascii=False))
    else:
        for line in (*([grades.due.words] if grades.due.moment is not None else []), *grades.notes):
            typer.echo(line)
        for result in grades.results:
            typer.echo(
                _("{student}: {score:g} of {most:g}").format(student=result.student, score=result.score, most=result.max_score)
            )
            for note in result.notes:
                typer.echo(f"    {note}")
    open_ = [result for result in grades.results if result.undecided]
    if open_:
        told = _("In conflict, and worth 0 until you give a mark in formgrader: {which}")
        which = "; ".join(f"{result.student}: {', '.join(result.undecided)}" for result in open_)
        typer.echo(told.format(which=which), err=as_json)


def feedback(
    course: Course = Path("graded"),
    lesson: Lesson = "01",
    students: Annotated[Path | None, typer.Option(help="Class list, CSV with a column id; else COURSE/students.csv.")] = None,
    db_url: Annotated[str | None, typer.Option(help="Gradebook, for example postgresql://…; else SQLite.")] = None,
) -> None:
    """Write each graded learner's page anew, with marks that you gave by hand since. `grade` writes them as well."""
    from quizzes.nbgrader.course import CourseError, rewrite_feedback
    from quizzes.nbgrader.due import DueError
    from quizzes.nbgrader.roster import RosterError
    from quizzes.question import BankError

    try:
        done = rewrite_feedback(course, lesson, students, db_url)
    except (CourseError, BankError, DueError, RosterError, OSError) as error:
        raise stop(str(error)) from None
    for path in done.pages:
        typer.echo(path)
    for note in done.notes:
        typer.echo(note, err=True)


def _trust(issuers: list[str], attempts: int, typed_too: bool) -> Trust | None:
    """Stops for what names no issuer."""
    from quizzes.certificates.keys import KeyFileError, load_issuer
    from quizzes.nbgrader.judged import Trust
    from quizzes.nbgrader.times import moment
    from quizzes.receipts import time_text

    if not issuers:
        if typed_too:
            raise stop(_("--typed-too says what counts beside receipts; name the service that signs them with --issuer"))
        return None
    found: dict[str, str | None] = {}
    for text in issuers:
        name, until, time = text.partition(" until ")
        try:
            found[load_issuer(name.strip())] = time_text(moment(time).when) if until else None
        except (KeyFileError, ValueError) as error:
            raise stop(_("--issuer {text}: {why}").format(text=text, why=error)) from None
    return Trust(found, attempts, typed_too)


def stop(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(2)
