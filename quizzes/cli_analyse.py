"""`offload-quiz analyse`: what a class's answers say about the questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(analyse)


def analyse(
    results: Annotated[Path, typer.Argument(help="What grade --json printed, or rows as JSON or CSV.")],
    gradebook: Annotated[Path | None, typer.Option(help="The course's gradebook.db, beside the graded answers.")] = None,
    students: Annotated[Path | None, typer.Option(help="Class list with the columns id and language.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write one HTML file with the figures.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write a line an item to this CSV file.")] = None,
) -> None:
    """Say how hard each question was, whether it tells learners apart, what it drew, and where languages differ."""
    from quizzes import analysis_report as report
    from quizzes.analysis import analyse as analyse_rows
    from quizzes.analysis_read import AnalysisError, choices_of, read
    from quizzes.question import BankError

    try:
        items = analyse_rows(read(results, gradebook, students), report.ALPHA)
        if out is not None:
            out.write_text(report.to_html(items, choices_of({item.question for item in items})), encoding="utf-8")
        if csv is not None:
            csv.write_text(report.to_csv(items), encoding="utf-8", newline="")
    except (AnalysisError, BankError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(report.to_json(items), ensure_ascii=False, allow_nan=False))
        return
    for line in report.sentences(items):
        typer.echo(line)
    if any(item.gaps for item in items):
        typer.echo(report.method())
