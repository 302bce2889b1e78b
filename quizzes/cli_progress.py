"""`offload-quiz progress export|import|show`: the progress of the whole course, taken to another machine."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from quizzes.copies import spoken, told
from quizzes.progress import Progress, ProgressError
from quizzes.say import _

app = typer.Typer(no_args_is_help=True, help="Your progress in the practice quizzes: export, import, show.")

Course = Annotated[
    Path | None,
    typer.Option(
        help="The folder that has the progress file, progress.json; else OFFLOAD_LAB_PROGRESS, else your data folder."
    ),
]


def _progress(course: Path | None) -> Progress:
    if course is not None and not course.is_dir():
        raise _stop(_("{path} is not a folder; name the one that has progress.json.").format(path=course))
    return Progress(course / "progress.json") if course is not None else Progress()


@app.command()
def export(file: Annotated[Path, typer.Argument(help="A new file.")], course: Course = None) -> None:
    """Write a copy of your progress to a new file. Exit status 2 where it was not written."""
    progress = _progress(course)
    try:
        progress.export(file)
        count = len(progress.read()["answers"])
    except ProgressError as error:
        raise _stop(error) from None
    typer.echo(_("{path} holds {count} answers.").format(path=file, count=count))


@app.command(name="import")
def take_in(file: Annotated[Path, typer.Argument(help="A file that was exported.")], course: Course = None) -> None:
    """Add an exported file to your progress. Exit status 1 where answers differ, of which both are kept; 2 where nothing was
    taken."""
    progress = _progress(course)
    try:
        before = _times(progress.read())
        differ = progress.take_in(file)
        content = progress.read()
    except ProgressError as error:
        raise _stop(error) from None
    for note in progress.notes:
        typer.echo(note, err=True)
    new, answered = len(_times(content) - before), len(content["answers"])
    typer.echo(_("{count} answers were added; there are {all} questions answered.").format(count=new, all=answered))
    for question in differ:
        held = [content["answers"][question], *content["others"][question]]
        ours = {entry["at"] for entry in held if (question, entry["at"]) in before}
        where = {entry["at"]: progress.path if entry["at"] in ours else file for entry in held}
        typer.echo(told(question, held, {at: _("in {path}").format(path=path) for at, path in where.items()}))
    if differ:
        typer.echo(_("Choose in the notebook of the lesson, after the kernel has been restarted."))
        raise typer.Exit(1)


@app.command()
def show(course: Course = None) -> None:
    """Say for each lesson how much is answered and what share of it was right, what is due again, and what is in conflict."""
    from quizzes.repetition import due

    progress = _progress(course)
    try:
        content = progress.read()
    except ProgressError as error:
        raise _stop(error) from None
    if not content["answers"]:
        typer.echo(_("No answers yet in {path}.").format(path=progress.path))
        return
    lessons: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in content["answers"].values():
        lessons[str(entry.get("lesson", "?"))].append(entry)
    for lesson, entries in sorted(lessons.items()):
        share = sum(entry["share"] for entry in entries) / len(entries)
        typer.echo(
            _("Lesson {lesson}: {count} answered, {share:.0%} right").format(lesson=lesson, count=len(entries), share=share)
        )
    typer.echo(_("{count} questions are due again.").format(count=len(due(content["cards"], datetime.now(UTC)))))
    for question, others in sorted(content["others"].items()):
        answers = ", ".join(repr(spoken(entry["answer"])) for entry in (content["answers"][question], *others))
        typer.echo(_("Two copies differ in {question}: {answers}").format(question=question, answers=answers))


def _times(content: dict[str, Any]) -> set[tuple[str, str]]:
    """(question, time) of every answer that a progress file holds."""
    first = {(question, entry["at"]) for question, entry in content["answers"].items()}
    return first | {(question, entry["at"]) for question, entries in content["others"].items() for entry in entries}


def _stop(said: object) -> typer.Exit:
    typer.echo(str(said), err=True)
    return typer.Exit(2)
