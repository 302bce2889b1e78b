"""`offload-lab`: the demonstration and the planner on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from offload_lab import cli_export, cli_health, cli_measure, cli_plan, cli_plots
from offload_lab.endings import ended_cleanly, refuse

_HELP = "Train past the memory limit, and see where the memory goes."
app = typer.Typer(no_args_is_help=True, add_completion=False, help=_HELP)
app.command()(cli_measure.measure)
app.add_typer(cli_export.app, name="export")
app.command()(cli_plan.plan)
app.command()(cli_plots.trace)


def _version(wanted: bool) -> None:
    if wanted:
        from offload_lab import __version__

        typer.echo(f"offload-lab {__version__}")
        raise typer.Exit


@app.callback(help=_HELP)
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options that go before any command."""


@app.command()
def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Where to write the page. Without --json: offload-demo.html, if not given.")
    ] = None,
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Set no limit: AdamW trains as well.")] = False,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps to train; the preset's own if not given.")] = None,
    preset: Annotated[str, typer.Option(help='What to train: "full" or "lesson", which is shorter.')] = "full",
    directory: Annotated[Path | None, typer.Option(help="Where the disk tier works; the current folder if not given.")] = None,
) -> None:
    """Train one small GPT three times under one hard limit on memory: AdamW, then OffloadAdamW in RAM and on disk."""
    from offload_lab.demo import DemoError, run_demo

    page = html if html is not None else None if as_json else Path("offload-demo.html")
    # Before a minute of training, not after it.
    for folder, what in ((page.parent if page else None, "--html"), (directory, "--directory")):
        if folder is not None and not folder.is_dir():
            refuse(f"{what}: there is no folder {str(folder)!r}; make it first, or name another")
    if page is not None and page.is_dir():
        refuse(f"--html: {str(page)!r} is a folder; name a file in it")
    try:
        with (
            ended_cleanly("Stopped. No process is left running, and the demonstration's files are deleted."),
            _progress() as report,
        ):
            result = run_demo(preset=preset, steps=steps, limit=not no_limit, directory=directory, on_progress=report)
    except ValueError as error:
        refuse(str(error))
    except DemoError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(result.to_json()) if as_json else str(result))
    if page is not None:
        from offload_lab.demo_page import as_page

        try:
            page.write_text(as_page(result), encoding="utf-8")
        except OSError as error:
            typer.echo(f"The page could not be written to {str(page)!r}: {error}. Everything else is above.", err=True)
            raise typer.Exit(1) from None
        typer.echo(f"\nThe page with the plot of all three: {page.resolve()}", err=as_json)


@app.command()
def inspect(
    directory: Annotated[Path, typer.Argument(help="A directory of OffloadPolicy(directory=…).")],
    verify: Annotated[bool, typer.Option("--verify", help="Read all of the newest step and check every checksum.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a directory of optimizer state holds, and who uses it. Changes nothing; exit code 1 where it is damaged."""
    from offload_lab.inspect import inspect as look

    try:
        found = look(directory, verify)
    except FileNotFoundError as error:
        refuse(str(error))
    typer.echo(found.as_json() if as_json else found.text())
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def clean(
    directory: Annotated[Path, typer.Argument(help="A directory of OffloadPolicy(directory=…), or one above several.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete the optimizer state of runs that are over. What a live run holds, and files of others, are left alone."""
    from offload_lab.inspect import clean as clear
    from offload_lab.inspect import leftovers
    from offload_lab.storage.lock import DirectoryInUse

    try:
        found = leftovers(directory)
        if not found:
            typer.echo(f"nothing to delete in {str(directory)!r}: no optimizer state of a run that is over")
            return
        for path, nbytes in found.items():
            typer.echo(f"{nbytes:>16,} bytes  {path}")
        if not yes:
            typer.confirm(f"Delete these {len(found)} files? A run that was to be resumed from them cannot be", abort=True)
        files, nbytes = clear(directory)
    except (FileNotFoundError, DirectoryInUse) as error:
        refuse(str(error))
    typer.echo(f"{files} files deleted, {nbytes:,} bytes freed")


app.command()(cli_health.gate)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal, a line a run elsewhere; both on stderr, so that stdout is the result alone."""
    if not sys.stderr.isatty():

        def line(name: str, done: int, total: int) -> None:
            if done in (0, total):
                typer.echo(f"{name}: {'starting' if done == 0 else f'{total} steps done'}", err=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, Any] = {}

        def update(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        yield update
