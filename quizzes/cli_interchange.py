"""`offload-quiz export` and `offload-quiz import`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quizzes.say import _

if TYPE_CHECKING:
    from quizzes.interchange.report import Report


class Format(StrEnum):
    """A format of another program."""

    gift = "gift"
    moodle = "moodle"
    qti22 = "qti22"
    qti3 = "qti3"


_Report = Annotated[Path | None, typer.Option(help="Also write the report, as JSON, to this file.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]


def export(
    format: Annotated[Format, typer.Argument(help="What to write.")],
    out: Annotated[Path, typer.Option(help="The file to write; a folder for one file a lesson.")],
    lesson: Annotated[str, typer.Option(help='One lesson, for example "05"; else all of them.')] = "",
    keys: Annotated[bool, typer.Option("--keys", help="Graded questions WITH THEIR KEYS instead of the open ones.")] = False,
    report: _Report = None,
    force: _Force = False,
) -> None:
    """Write the open questions for another program, and say what it can't hold."""
    from quizzes.interchange.files import InterchangeError, publish
    from quizzes.interchange.formats import ENDINGS
    from quizzes.interchange.formats import export as write
    from quizzes.question import BANK, KEYS, Bank, BankError, every, graded, practice

    try:
        _free(force, report)
        folder = KEYS if keys else BANK
        if lesson:
            banks: list[Bank] = [(graded if keys else practice)(lesson)]
        else:
            banks = list(every(folder).values())
        if not banks:
            raise BankError(_("there are no graded questions here; the keys stay with the instructor's checkout"))
        if keys:
            typer.echo(_("These are graded questions with their keys: keep the files away from learners."), err=True)
        each = out.is_dir() or str(out).endswith(("/", "\\")) or not out.suffix
        prefix = "graded" if keys else "practice"
        parts = {out / f"{prefix}-{bank.lesson}{ENDINGS[format]}": [bank] for bank in banks} if each else {out: banks}
        told = []
        for path, held in parts.items():
            data, said = write(held, format.value)
            publish(path, data, force)
            typer.echo(_("{path}: {count} questions").format(path=path, count=said.questions))
            told.append(said)
        whole = told[0]
        for said in told[1:]:
            whole.questions += said.questions
            whole.entries += said.entries
        _tell(whole, report, force)
    except (InterchangeError, BankError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def import_(
    file: Annotated[Path, typer.Argument(help="A file of GIFT, Moodle XML, or QTI (an item or a package).")],
    out: Annotated[Path, typer.Option(help="The bank to write.")],
    format: Annotated[Format | None, typer.Option(help="What the file is; else it is found out.")] = None,
    lesson: Annotated[str, typer.Option(help="The number that the bank gets: two digits.")] = "99",
    title: Annotated[str, typer.Option(help="The title of the bank; else the name of the file.")] = "",
    report: _Report = None,
    force: _Force = False,
) -> None:
    """Read questions of another program into a bank. Exit status 1 where some, 2 where all had to be left out."""
    from quizzes.interchange.files import InterchangeError, publish, read_bytes
    from quizzes.interchange.formats import checked, read

    try:
        if len(lesson) != 2 or not lesson.isascii() or not lesson.isdigit():
            raise InterchangeError(_("--lesson {lesson}: two digits are needed, for example 99").format(lesson=lesson))
        _free(force, out, report)
        found = read(read_bytes(file), str(file), format.value if format else None, lesson, title)
        if found.bank is not None:
            publish(out, checked(found.bank).encode("utf-8"), force)
            typer.echo(_("{path}: {count} questions").format(path=out, count=found.report.questions))
        _tell(found.report, report, force)
    except InterchangeError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if found.bank is None:
        typer.echo(_("{file}: nothing could be taken over, and nothing was written").format(file=file), err=True)
        raise typer.Exit(2)
    if found.report.skipped():
        raise typer.Exit(1)


def _free(force: bool, *paths: Path | None) -> None:
    """Before any work: nothing that is there is replaced without --force."""
    from quizzes.interchange.files import InterchangeError, taken

    for path in paths:
        if path is not None and path.exists() and not force:
            raise InterchangeError(taken(path))


def _tell(found: Report, path: Path | None, force: bool) -> None:
    from quizzes.interchange.files import publish

    for line in found.lines():
        typer.echo(f"  {line}")
    if path is not None:
        publish(path, (json.dumps(found.to_json(), ensure_ascii=False, indent=1) + "\n").encode("utf-8"), force)


def register(app: typer.Typer) -> None:
    app.command()(export)
    app.command("import")(import_)
