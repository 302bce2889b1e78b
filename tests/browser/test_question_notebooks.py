"""An assignment and a quiz with figures, as JupyterLab and Notebook 7 show them. Leaves screenshots."""

import json

import nbformat
from nbformat.v4 import new_code_cell

from quizzes.figures import picture
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.notebook import build
from tests.browser.test_lab import ARTIFACTS, page, pytestmark, ready, run_all, serve  # noqa: F401 - fixture, skip

IMAGES = """() => [...document.querySelectorAll('img[src^="data:image/svg+xml"]')].map(image => ({
    width: image.naturalWidth, alt: image.alt, wide: image.getBoundingClientRect().width,
    table: !!image.parentElement.querySelector('details table th[scope=row]'),
}))"""


def test_notebooks_show_the_picture_its_words_and_its_table(tmp_path_factory, page):  # noqa: F811
    folder = tmp_path_factory.mktemp("devoir noté")
    notebook = build(handed_out("08"))
    notebook.cells.append(new_code_cell("from quizzes import Quiz\nquiz = Quiz('04')\nquiz.show()", id="quiz"))
    (folder / "lesson.ipynb").write_text(nbformat.writes(notebook))
    (drawn,) = (picture(question) for question in handed_out("08").questions if question.figure is not None)
    for address, token in serve(tmp_path_factory, folder, "jupyterlab"):
        ready(page, f"{address}/lab/tree/lesson.ipynb?token={token}")
        (image,) = page.evaluate(IMAGES)
        assert image["width"] == 760 and image["wide"] > 300 and image["table"] and image["alt"] == drawn.alternative()
        page.get_by_role("img", name="million bfloat16 parameters").screenshot(path=str(ARTIFACTS / "question-lab.png"))
        run_all(page)
        page.get_by_role("img", name="One step over time").first.wait_for(timeout=60_000)
        assert [image["width"] for image in page.evaluate(IMAGES)] == [760] * 3
    for address, token in serve(tmp_path_factory, folder, "notebook"):
        page.goto(f"{address}/notebooks/lesson.ipynb?token={token}")
        page.get_by_role("img", name="million bfloat16 parameters").wait_for(timeout=60_000)
        assert page.evaluate(IMAGES)[0] == image
    assert json.loads((folder / "lesson.ipynb").read_text())["nbformat"] == 4
