"""A quiz answered by keyboard alone in JupyterLab, saved, opened again there and in Notebook 7. Leaves screenshots."""

import json

import pytest

from tests.browser.test_lab import ARTIFACTS, page, pytestmark, ready, records, run_all, save, saved, serve  # noqa: F401 - fixture, skip

CELL = {
    "cell_type": "code", "id": "quiz", "metadata": {}, "outputs": [], "execution_count": None,
    "source": "from quizzes import Quiz\nquiz = Quiz('01')\nquiz.show()",
}  # fmt: skip
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


@pytest.fixture
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("quiz")
    content = {"cells": [CELL], "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    (place / "lesson.ipynb").write_text(json.dumps(content))
    return place


def tab_to(page, script):  # noqa: F811
    """Press Tab until `script`, a condition on the focused element `e`, holds."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(f"() => {{ const e = document.activeElement; return !!(e && ({script})) }}"):
            return
    page.screenshot(path=str(ARTIFACTS / "quiz-stuck.png"))
    pytest.fail(f"no Tab leads to {script}")


def test_a_quiz_by_keyboard_is_saved_and_opened_again(tmp_path_factory, folder, page):  # noqa: F811
    for address, token in serve(tmp_path_factory, folder, "jupyterlab"):
        url = f"{address}/lab/tree/lesson.ipynb?token={token}"
        ready(page, url)
        run_all(page)
        page.get_by_role("checkbox").first.wait_for(timeout=20_000)
        tab_to(page, "e.type === 'checkbox' && e.parentElement.textContent.startsWith('b)')")
        page.keyboard.press("Space")
        tab_to(page, "e.type === 'checkbox' && e.parentElement.textContent.startsWith('d)')")
        page.keyboard.press("Space")  # takes the place of b
        tab_to(page, "e.tagName === 'BUTTON' && e.textContent === 'Check q1'")
        page.keyboard.press("Enter")
        page.wait_for_timeout(2000)
        page.screenshot(path=str(ARTIFACTS / "quiz-keyboard.png"))
        page.get_by_text("✔ Right").first.wait_for(timeout=5_000)
        save(page, folder)
        (record,) = records(saved(folder), "01")
        assert record["version"] == 2 and record["answers"]["l01-sixteen"]["answer"] == "d"
        page.reload()
        page.get_by_text("Your answers, lesson 01").first.wait_for(timeout=60_000)
    for address, token in serve(tmp_path_factory, folder, "notebook"):
        page.goto(f"{address}/notebooks/lesson.ipynb?token={token}")
        page.get_by_text("Your answers, lesson 01").first.wait_for(timeout=60_000)
        page.screenshot(path=str(ARTIFACTS / "quiz-notebook-7.png"))
        assert records(saved(folder), "01") == [record]
