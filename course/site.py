"""The course as pages for any web server: `python -m course.site` runs every lesson and writes the folder `site`.

    python -m course.site                    every lesson, run from top to bottom; takes minutes
    python -m course.site --only 02 05       run these lessons; the others are there to read, without what their cells show
    python -m course.site --language fr      the course in French, into `site-fr`
    python -m course.site --to ~/pages       into another folder: a new one, an empty one, or one that this command made

The pages need no script and nothing of another host, so they open without a network and from a disk. Every link is checked.
Exit 1 names a lesson and the cell in which it ended, or the links that lead nowhere; 2 a folder that is not ours, or a lesson
that there is not. Then nothing was written: the folder is as it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from posixpath import join, normpath

from course import build, links, writing
from course.published import FolderError, check, publish
from course.writing import Notebook, WritingError
from quizzes import languages
from quizzes.say import _, language

STYLE = Path(__file__).parent / "site.css"
PICTURES = Path(__file__).parent / "pictures"


class LinkError(ValueError):
    """Links lead nowhere; the message has a line for each, with its page."""


def notebooks(spoken: str, root: Path = build.HERE) -> list[Notebook]:
    """The landing notebook, the lessons in their order, the glossary. Raises build.LessonError."""
    heads = {head.file: head for head in build.heads(root, spoken)}
    made = {
        target.name: build.build(source) if spoken == "en" else build.built(source, spoken)[0]
        for source, target in build.targets(root, spoken).items()
        if target.parent.name != "instructor"
    }
    order = sorted(made, key=lambda file: (file != "index.ipynb", file not in heads, file))
    with language(spoken):
        return [Notebook(file, made[file], heads.get(file)) for file in order]


def change(link: str) -> str:
    """What a link of a notebook in `course/en` is on its page: other notebooks are pages, the pictures lie beside them."""
    path, mark, place = link.partition("#")
    if not path or ":" in path or path.startswith("/"):
        return link
    found = normpath(join("language", path))
    if found.startswith("language/"):
        found = found.removeprefix("language/")
        found = found.removesuffix(".ipynb") + ".html" if found.endswith(".ipynb") else found
    elif not found.startswith("pictures/"):
        return link
    return found + mark + place


def files(course: Sequence[Notebook], spoken: str, only: Sequence[str] | None, say: Callable[[str], None]) -> dict[str, bytes]:
    """All files of the site, by their paths in it. `only` are the numbers of the lessons that are run, all where it is None.
    Raises LinkError, WritingError."""
    assets = {f"pictures/{path.name}": path.read_bytes() for path in sorted(PICTURES.glob("*.svg"))}
    style = STYLE.read_text(encoding="utf-8")
    assets[STYLE.name] = style.encode()
    assets |= {f"notebooks/{notebook.file}": notebook.text.encode() for notebook in course}

    def linked(pages: dict[str, str]) -> dict[str, str]:
        wrong = links.faults(pages, assets, {STYLE.name: style})
        if wrong:
            raise LinkError("\n".join(wrong))
        return pages

    # What a lesson's text links to is known in a second, before minutes of running.
    linked(writing.pages(course, spoken, change, ()))
    pages = linked(writing.pages(course, spoken, change, only, say))
    return assets | {name: text.encode() for name, text in pages.items()}


def main(arguments: list[str] | None = None, root: Path = build.HERE) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.site", description="Write the course as pages for any web server.")
    parser.add_argument("--only", nargs="+", metavar="LESSON", help="run only these lessons, for instance 02")
    parser.add_argument("--language", default="en", help="write the course in this language, for instance fr")
    parser.add_argument("--to", metavar="FOLDER", type=Path, help="the folder to write; `site` where it is left out")
    options = parser.parse_args(arguments)
    spoken = languages.negotiate(options.language)
    if spoken == "en" and not options.language.lower().startswith("en"):
        known = ", ".join(languages.known())
        print(_("--language {name}: this is none of {known}.").format(name=options.language, known=known), file=sys.stderr)
        return 2
    numbers = [source.name[:2] for source in build.lessons(root)]
    unknown = [name for name in options.only or () if name not in numbers]
    if unknown:
        said = _("There is no lesson {names}; there are {known}.")
        print(said.format(names=", ".join(unknown), known=", ".join(numbers)), file=sys.stderr)
        return 2
    target = (options.to or Path("site" if spoken == "en" else f"site-{spoken}")).expanduser()
    try:
        check(target)
        made = files(notebooks(spoken, root), spoken, options.only, partial(print, flush=True))
        publish(made, target)
    except FolderError as error:
        print(error, file=sys.stderr)
        return 2
    except (LinkError, WritingError, build.LessonError) as error:
        print(error, file=sys.stderr)
        print(_("Nothing was written: {path} is as it was.").format(path=target), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(_("Stopped. Nothing was written: {path} is as it was.").format(path=target), file=sys.stderr)
        return 130
    pages = sum(name.endswith(".html") for name in made)
    print(_("{count} pages, every link checked: {path}").format(count=pages, path=target / "index.html"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
