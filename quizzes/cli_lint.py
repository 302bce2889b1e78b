"""`offload-quiz lint` and `offload-quiz canary`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from quizzes.question import BANK, KEYS, BankError, every
from quizzes.say import _, _n

ROOT = Path(__file__).parent.parent


def lint() -> None:
    """Check the quality of the bank. Exit status 1 where something is to do, 2 where a file cannot be used."""
    from quizzes.lint import check

    try:
        banks = every()
    except BankError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    found = check(banks, _catalogues())
    for line in found:
        typer.echo(line)
    questions = sum(len(bank.questions) for bank in banks.values())
    said = _("{questions} questions in {files} files, {count} to do")
    typer.echo(said.format(questions=questions, files=len(banks), count=len(found)))
    if found:
        raise typer.Exit(1)


def canary(
    file: Annotated[list[Path] | None, typer.Argument(help="Look into these instead of building what ships.")] = None,
) -> None:
    """Build everything that ships, unpack it, and look for the keys. Exits 1 where one shows, 2 where it cannot be told."""
    from quizzes.canary import CanaryError, flags, private, search
    from quizzes.exercises.exercise import ExerciseError
    from quizzes.exercises.private import texts as hidden_texts

    try:
        graded = every(KEYS)
        if not graded:
            raise CanaryError(
                _("there are no keys here, so that nothing can be looked for; run it in the instructor's checkout")
            )
        open_bank = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in sorted(BANK.glob("*.yaml")))
        texts = private([question for bank in graded.values() for question in bank.questions], open_bank) | hidden_texts()
        with tempfile.TemporaryDirectory() as folder:
            shipped = file or _build(Path(folder))
            leaks = [
                leak
                for path in shipped
                for leak in search(path.name, path.read_bytes(), texts | flags() if path.name.startswith("quiz-") else texts)
            ]
    except (BankError, ExerciseError, CanaryError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    for leak in leaks:
        typer.echo(str(leak))
    said = _n(
        "{files} files looked into for {texts} private texts: {count} shows",
        "{files} files looked into for {texts} private texts: {count} show",
        len(leaks),
    )
    typer.echo(said.format(files=len(shipped), texts=len(texts), count=len(leaks)))
    if leaks:
        raise typer.Exit(1)


def _build(folder: Path) -> list[Path]:
    """Wheel, source distribution, the notebooks to hand out, the course's notebooks. Raises CanaryError."""
    from quizzes.canary import CanaryError

    source = folder / "source"
    kept = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", "__pycache__", "graded", ".*_cache")
    shutil.copytree(ROOT, source, ignore=kept)
    for kind in ("wheel", "sdist"):
        code = f"import setuptools.build_meta as b; b.build_{kind}({str(folder)!r})"
        done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise CanaryError(_("the {kind} could not be built: {stderr}").format(kind=kind, stderr=done.stderr[-800:]))
    from quizzes.nbgrader.course import CourseError, build_assignment

    released = []
    for path in sorted(KEYS.glob("[0-9][0-9]_*.yaml")):
        try:
            released.append(build_assignment(folder / "graded", path.name[:2]))
        except CourseError as error:
            raise CanaryError(str(error)) from None
    return [*folder.glob("*.whl"), *folder.glob("*.tar.gz"), *released, *sorted((ROOT / "course").glob("??/*.ipynb"))]


def _catalogues() -> dict[str, set[str]]:
    """Language -> the texts of the bank that its catalogues have."""
    from quizzes.languages import DOMAIN, known, locales, translated

    there = [name for name in known() if (locales() / name / "LC_MESSAGES").is_dir()]
    domains = [DOMAIN, "keys", *(f"lesson_{path.name[:2]}" for path in sorted(BANK.glob("[0-9][0-9]_*.yaml")))]
    return {name: {text for domain in domains for text in translated(domain, name)} for name in there}


def register(app: typer.Typer) -> None:
    app.command()(lint)
    app.command()(canary)
