"""Lessons from their sources: `course/src/NN_slug.py` (jupytext's percent format) -> `course/en/NN_slug.ipynb`,
and `course/src/instructor/*.py` -> `course/instructor/*.ipynb`.

    python -m course.build           write the notebooks that changed
    python -m course.build --check   write nothing; exit 1 and name the notebooks that are not what their source says

Both exit 1 for a notebook without a source, and 2, having named file and cell, for a source that can't be built. A notebook
that somebody has run holds their answers: it is not overwritten, which is exit 1 as well, unless `--force` says so.

Every cell names its id in its first line (`# %% [markdown] id="predict"`), so that building again changes nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import jupytext
import nbformat

HERE = Path(__file__).parent
_ID = re.compile(r"[a-z0-9-]{1,64}")


class LessonError(ValueError):
    """A source can't be built; the message names the file and the cell."""


def build(source: Path) -> str:
    """The notebook of a source, as the text of its file. Raises LessonError."""
    try:
        read = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise LessonError(f"{source.name} cannot be read: {error}") from error
    seen: set[str] = set()
    cells = []
    for number, cell in enumerate(read.cells, start=1):
        name = cell.metadata.pop("id", None)
        start = cell.source.strip().splitlines()[0][:50] if cell.source.strip() else "(empty)"
        if not isinstance(name, str) or not _ID.fullmatch(name):
            raise LessonError(f'{source.name}, cell {number} ({start}): give it an id="…" of small letters, digits and dashes')
        if name in seen:
            raise LessonError(f'{source.name}, cell {number} ({start}): id="{name}" is taken by an earlier cell')
        seen.add(name)
        make = nbformat.v4.new_markdown_cell if cell.cell_type == "markdown" else nbformat.v4.new_code_cell
        cells.append(make(cell.source, id=name, metadata=dict(cell.metadata)))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    nbformat.validate(notebook)
    return nbformat.writes(notebook, indent=1) + "\n"


def targets(root: Path = HERE) -> dict[Path, Path]:
    """Each source and the notebook that it makes: lessons, and what is for the instructor."""
    lessons = {source: root / "en" / f"{source.stem}.ipynb" for source in sorted((root / "src").glob("[0-9][0-9]_*.py"))}
    own = sorted((root / "src" / "instructor").glob("*.py"))
    return lessons | {source: root / "instructor" / f"{source.stem}.ipynb" for source in own}


def is_worked_in(notebook: Path) -> bool:
    """Whether a cell of it was run, so that it holds outputs (and answers) of somebody. False where it can't be read."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def main(arguments: list[str] | None = None, root: Path = HERE) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.build", description="Build the lessons from their sources.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a notebook is not up to date")
    parser.add_argument("--force", action="store_true", help="overwrite notebooks that somebody has run, too")
    options = parser.parse_args(arguments)
    check = options.check
    stale, kept = [], []
    planned = targets(root)
    for source, target in planned.items():
        try:
            text = build(source)
        except LessonError as error:
            print(error, file=sys.stderr)
            return 2
        if target.exists() and target.read_bytes() == text.encode():
            continue
        stale.append(target)
        if not check and not options.force and is_worked_in(target):
            kept.append(target)
            print(f"{target.name} was run and holds outputs. Keep a copy of it, then build with --force.", file=sys.stderr)
        elif not check:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
            print(f"built {target.name}")
    orphans = sorted({*(root / "en").glob("*.ipynb"), *(root / "instructor").glob("*.ipynb")} - set(planned.values()))
    for orphan in orphans:  # a lesson that was renamed leaves its old notebook behind
        print(f"{orphan.name} has no source in {root / 'src'}. Delete it, or bring its source back.", file=sys.stderr)
    if check and stale:
        print("Not up to date: " + ", ".join(path.name for path in stale) + ". Run make course.", file=sys.stderr)
    return 1 if orphans or kept or (check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
