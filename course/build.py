"""Lessons from their sources: `course/src/NN_slug.py` (jupytext's percent format) -> `course/en/NN_slug.ipynb`, the pages
beside them (`index.py`, `glossary.py`) likewise, and `course/src/instructor/*.py` -> `course/instructor/*.ipynb`.

    python -m course.build                  write the notebooks that changed
    python -m course.build --check          write nothing; exit 1 and name the notebooks that are not what their source says
    python -m course.build --language fr    the lessons in French, into `course/fr`; what has no translation stays English,
                                            and its share is said

Both exit 1 for a notebook without a source, and 2, having named file and cell, for a source that can't be built. A notebook
that somebody has run holds their answers: it is not overwritten, which is exit 1 as well, unless `--force` says so.

Every cell names its id in its first line (`# %% [markdown] id="predict"`), so that building again changes nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jupytext
import nbformat

from course import glossary, places, repository, times
from course.heads import Head, head, placed, typed
from course.lesson_words import translated
from quizzes import languages
from quizzes.say import _, language, words

HERE = Path(__file__).parent
PAGES = "pages"
"""The catalogue of what lies beside the lessons: landing notebook, glossary."""
_ID = re.compile(r"[a-z0-9-]{1,64}")


class LessonError(ValueError):
    """A source can't be built; the message names the file and the cell."""


def is_lesson(source: Path) -> bool:
    """Whether this is a lesson's source; not a page beside the lessons, nor one for the instructor."""
    return source.parent.name == "src" and source.name[:2].isdigit()


def domain(source: Path) -> str:
    """The catalogue that a source's texts are in."""
    return f"lesson_{source.name[:2]}" if is_lesson(source) else PAGES


def cells_of(source: Path) -> list[nbformat.NotebookNode]:
    """The cells of a source, with a place in a lesson's head for its measured time; `typed` of the first is what
    stood there. Raises LessonError."""
    try:
        cells = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent").cells
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise LessonError(_("{file} cannot be read: {error}").format(file=source.name, error=error)) from error
    if is_lesson(source) and cells:
        cells[0].typed = typed(cells[0].source)
        cells[0].source = placed(cells[0].source)
    return list(cells)


def heads(root: Path = HERE, spoken: str = "en") -> list[Head]:
    """The heads of all lessons, in a language. Raises LessonError."""
    found = []
    for source in lessons(root):
        with language(spoken):
            say = partial(words, domain(source))
            told = head(f"{source.stem}.ipynb", [(cell.cell_type, cell.source) for cell in cells_of(source)], say)
        if told is None:
            raise LessonError(_('{file}: its first cell does not begin with "# 3 · A title"').format(file=source.name))
        found.append(told)
    return found


def _places(source: Path, cells: list[nbformat.NotebookNode], say: Callable[[str], str], spoken: str) -> dict[str, str]:
    try:
        measured, known = times.read(), glossary.terms()
    except (times.TimesError, glossary.GlossaryError) as error:
        raise LessonError(error) from None
    if is_lesson(source):
        return places.into_lesson(source.name[:2], say(cells[0].typed), measured) if cells and cells[0].typed else {}
    if source.parent.name != "src":
        return {}
    return places.into_page(heads(source.parent.parent, spoken), measured, known, say)


def build(source: Path, say: Callable[[str], str] = str, before: str = "", spoken: str = "en") -> str:
    """The notebook of a source, as the text of its file. Raises LessonError.

    `say` translates each text of a cell into the language `spoken`, in which places are filled too. `before` is code of a
    cell of its own, ahead of the first cell with code.
    """
    read = cells_of(source)
    with language(spoken):
        put = _places(source, read, say, spoken)
    seen: set[str] = set()
    cells = []
    for number, cell in enumerate(read, start=1):
        name = cell.metadata.pop("id", None)
        start = cell.source.strip().splitlines()[0][:50] if cell.source.strip() else "(empty)"
        if not isinstance(name, str) or not _ID.fullmatch(name):
            said = _('{file}, cell {number} ({start}): give it an id="…" of small letters, digits and dashes')
            raise LessonError(said.format(file=source.name, number=number, start=start))
        if name in seen:
            said = _('{file}, cell {number} ({start}): id="{name}" is taken by an earlier cell')
            raise LessonError(said.format(file=source.name, number=number, start=start, name=name))
        seen.add(name)
        make = nbformat.v4.new_markdown_cell if cell.cell_type == "markdown" else nbformat.v4.new_code_cell
        if before and cell.cell_type != "markdown":
            cells.append(nbformat.v4.new_code_cell(before, id="language"))
            before = ""
        text = translated(cell.cell_type, cell.source, say)
        text = places.filled(text, put) if cell.cell_type == "markdown" else text
        text = repository.filled(text)
        cells.append(make(text, id=name, metadata=dict(cell.metadata)))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    nbformat.validate(notebook)
    return nbformat.writes(notebook, indent=1) + "\n"


def built(source: Path, spoken: str) -> tuple[str, int, int]:
    """The notebook in a language, how many of its texts have no translation there, and how many it has. Raises LessonError."""
    named, known = domain(source), {}
    held = languages.translated(named, spoken)

    def say(text: str) -> str:
        known[text] = spoken == languages.PSEUDO or text in held
        with language(spoken):
            return words(named, text)

    notebook = build(source, say, f"from quizzes.say import speak\n\nlanguage = speak({spoken!r})", spoken)
    return notebook, sum(not there for there in known.values()), len(known)


def lessons(root: Path = HERE) -> list[Path]:
    """The sources of the lessons, in their order."""
    return sorted((root / "src").glob("[0-9][0-9]_*.py"))


def targets(root: Path = HERE, spoken: str = "en") -> dict[Path, Path]:
    """Each source and the notebook that it makes: lessons, the pages beside them, and in English what is for the instructor."""
    pages = sorted((root / "src").glob("[a-z]*.py"))
    found = {source: root / spoken / f"{source.stem}.ipynb" for source in (*lessons(root), *pages)}
    if spoken != "en":
        return found
    own = sorted((root / "src" / "instructor").glob("*.py"))
    return found | {source: root / "instructor" / f"{source.stem}.ipynb" for source in own}


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
    parser.add_argument("--language", default="en", help="build the lessons in this language, for instance fr")
    options = parser.parse_args(arguments)
    check, spoken = options.check, languages.negotiate(options.language)
    if spoken == "en" and not options.language.lower().startswith("en"):
        known = ", ".join(languages.known())
        print(_("--language {name}: this is none of {known}.").format(name=options.language, known=known), file=sys.stderr)
        return 2
    stale, kept = [], []
    planned = targets(root, spoken)
    for source, target in planned.items():
        try:
            text, missing, of = built(source, spoken) if spoken != "en" else (build(source), 0, 0)
        except LessonError as error:
            print(error, file=sys.stderr)
            return 2
        if spoken != "en":
            said = _("{file}: {missing} of {count} texts are not in {language} and stay English ({share:.0%}).")
            print(said.format(file=target.name, missing=missing, count=of, language=spoken, share=missing / max(of, 1)))
        if target.exists() and target.read_bytes() == text.encode():
            continue
        stale.append(target)
        if not check and not options.force and is_worked_in(target):
            kept.append(target)
            said = _("{file} was run and holds outputs. Keep a copy of it, then build with --force.")
            print(said.format(file=target.name), file=sys.stderr)
        elif not check:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
            print(_("built {file}").format(file=target.name))
    folders = {target.parent for target in planned.values()} | ({root / "en", root / "instructor"} if spoken == "en" else set())
    orphans = sorted({path for folder in folders for path in folder.glob("*.ipynb")} - set(planned.values()))
    for orphan in orphans:  # a lesson that was renamed leaves its old notebook behind
        said = _("{file} has no source in {path}. Delete it, or bring its source back.")
        print(said.format(file=orphan.name, path=root / "src"), file=sys.stderr)
    if check and stale:
        names = ", ".join(path.name for path in stale)
        print(_("Not up to date: {names}. Run make course.").format(names=names), file=sys.stderr)
    return 1 if orphans or kept or (check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
