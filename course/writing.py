"""The pages of the course: each notebook run, freed from what is this machine's, put into its frame. Needs the extra `lab`."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course import pages as shown
from course import scrubbed
from course.heads import Head
from course.running import Ran, RunError, run
from course.times import cores
from quizzes.say import _, _n, language


class WritingError(ValueError):
    """A notebook cannot become a page; the message names the notebook and the cell."""


@dataclass(frozen=True)
class Notebook:
    """A notebook of the course, not run yet. `head` is None for a page beside the lessons."""

    file: str
    text: str
    head: Head | None

    @property
    def page(self) -> str:
        return self.file.removesuffix(".ipynb") + ".html"

    @property
    def title(self) -> str:
        if self.head is not None:
            return f"{int(self.head.number)} · {self.head.title}"
        return _("Glossary") if self.file.startswith("glossary") else _("Offload Lab")


def pages(
    course: Sequence[Notebook],
    spoken: str,
    change: Callable[[str], str],
    only: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """The page of each notebook, by its file. Those of `only` are run, all where it is None; what is no lesson is run with any
    of them. `say` is told what is done. Raises WritingError."""
    made = {}
    beside = {notebook.file: notebook.text for notebook in course}
    with tempfile.TemporaryDirectory(prefix="compiled-") as cache, language(spoken):
        for place, notebook in enumerate(course):
            number = notebook.head.number if notebook.head is not None else ""
            ran = Ran(nbformat.reads(notebook.text, as_version=4), 0)
            wanted = only is None or number in only or (bool(only) and not number)
            wanted = wanted and any(cell.cell_type == "code" for cell in ran.notebook.cells)
            try:
                if wanted:
                    others = {} if number else beside
                    ran = run(notebook.text, name=notebook.file, beside=others, language=spoken, cache=Path(cache))
                made[notebook.page] = _page(course, place, spoken, change, ran, wanted)
            except (RunError, shown.PageError) as error:
                raise WritingError(_("{file}: {why}.").format(file=notebook.file, why=str(error).rstrip("."))) from None
            if wanted:
                say(_("{file}: run in {seconds:.0f} s").format(file=notebook.file, seconds=ran.seconds))
    return made


def _page(course: Sequence[Notebook], place: int, spoken: str, change: Callable[[str], str], ran: Ran, wanted: bool) -> str:
    notebook = course[place]
    scrubbed.scrub(ran.notebook, ran.widgets, scrubbed.of_this_machine(ran.folders))
    before, after = (
        shown.Link(course[other].page, course[other].title) if 0 <= other < len(course) else None
        for other in (place - 1, place + 1)
    )
    note, source = "", ""
    if notebook.head is not None:
        note, source = _note(wanted), f"notebooks/{notebook.file}"
    elif not place:
        note = _(
            "These are the notebooks of the course as pages, to read. To predict, change and answer, open them in JupyterLab."
        )
    about = notebook.head.gist if notebook.head is not None else ""
    frame = shown.Frame(notebook.title, spoken, about, before, after, note, source)
    return shown.page(shown.content(ran.notebook, ran.widgets, change), frame)


def _note(ran: bool) -> str:
    """What a reader has to know of the figures on a page."""
    if not ran:
        return _("This lesson was not run for this page, so what its cells show is missing. To run it, open the notebook.")
    machine = _n("on a {system} machine with one core", "on a {system} machine with {cores} cores", cores())
    told = _(
        "This page shows the lesson as it ran {machine}. Your figures will be others. To predict, change and answer, open the "
        "notebook."
    )
    return told.format(machine=machine.format(system=platform.system(), cores=cores()))
