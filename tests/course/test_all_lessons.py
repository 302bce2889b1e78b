"""What holds for every lesson: it runs to its end by itself, says no error, warns of nothing and leaves nothing."""

import ast
import copy
import re
from html import escape
from pathlib import Path

import nbformat
import pytest

from course import build, links, pages, scrubbed, site
from quizzes import question
from tests.course.warned import warned

NUMBERS = [source.name[:2] for source in build.lessons()]
OTHERS = [number for number in NUMBERS if number != "01"]  # lesson 1 is run three times by test_lessons


@pytest.mark.parametrize("number", OTHERS)
def test_it_runs_to_its_end(number, ran):
    failed = {
        name: "\n".join(output.traceback)
        for name, cell in ran(number).cells.items()
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    }
    assert not failed, "\n".join(failed.values())


@pytest.mark.parametrize("number", OTHERS)
def test_no_cell_warns(number, ran):
    assert warned(ran(number).cells.values()) == []


@pytest.mark.parametrize("number", OTHERS)
def test_its_page_shows_every_output_and_leads_somewhere(number, ran, alone):
    lesson, spare = copy.deepcopy(ran(number).notebook), copy.deepcopy(ran(number).widgets)
    file = next(source.stem for source in build.lessons() if source.name.startswith(number)) + ".html"
    folders = {str(lesson_folder): "~/course" for lesson_folder in (ran(number).folder, alone[1].parent)}
    scrubbed.scrub(lesson, spare, scrubbed.of_this_machine(folders))
    body = pages.content(lesson, spare, site.change)
    others = {f"{target.stem}.html" for target in build.targets().values()}
    whole = pages.page(body, pages.Frame("A lesson", "en"))
    assert links.faults({file: whole}, others | {pages.STYLE, "pictures/cover.svg"}) == []
    for told in (
        *folders,
        str(Path(build.__file__).parents[1]),
        str(Path.home()) + "/",
        "Traceback",
        "VBox(",
        "Jupyter Widget",
    ):
        assert told not in body, told
    asked = [q.prompt for q in question.practice(number).questions if not q.variants]
    assert asked and all(escape(prompt) in body for prompt in asked)


@pytest.mark.parametrize("number", OTHERS)
def test_nothing_is_left_in_the_folder_and_nothing_left_this_machine(number, ran, alone):
    assert [path.name for path in ran(number).folder.iterdir()] == []
    assert not alone[1].exists(), alone[1].read_text()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_lesson_has_its_shape(number):
    """Recall, predict, run and observe, explain, change, make, transfer; no cell is long; the quiz is there."""
    (source,) = (source for source in build.targets() if source.name.startswith(f"{number}_"))
    notebook = nbformat.reads(build.build(source), as_version=4)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = re.findall(r"^##? (.+)$", prose, re.M)
    for wanted in ("Recall", "Predict", "Explain", "Change", "Make", "Transfer"):
        assert any(heading.startswith(wanted) for heading in headings), f"{source.name} has no heading {wanted!r}"
    assert "What you leave with" in prose
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert any(f'Quiz("{number}")' in cell for cell in code)
    for cell in code:
        ast.parse(cell)
        assert len(cell.splitlines()) <= 45, f"{source.name}: a cell of {len(cell.splitlines())} lines wants to be two"
