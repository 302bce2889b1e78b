"""A graded quiz in JupyterLab, by keyboard, against a service that is killed and comes back. Leaves screenshots."""

import json

import pytest

from quizzes.online.sheet import MIME
from quizzes.receipts import check
from tests.browser.test_lab import ARTIFACTS, page, pytestmark, ready, run_all, save, saved, serve  # noqa: F401 - fixture, skip
from tests.browser.test_quiz import KERNEL, tab_to
from tests.browser.test_quiz_access import CONTRAST, names, tree
from tests.quizzes.service.running import Running, prepare
from tests.quizzes.service.small import DID


def cells(url):
    for name, source in {
        "quiz": f"from quizzes import OnlineQuiz\nquiz = OnlineQuiz('01', service='{url}')\nquiz.show()",
        "in": "print(quiz.hand_in())",
    }.items():
        yield {"cell_type": "code", "id": name, "metadata": {}, "outputs": [], "execution_count": None, "source": source}


def sheet(folder):
    outputs = [output["data"] for cell in saved(folder)["cells"] for output in cell["outputs"] if "data" in output]
    (found,) = [data[MIME] for data in outputs if MIME in data]
    return found


def test_a_graded_quiz_by_keyboard(tmp_path_factory, page, monkeypatch):  # noqa: F811
    pytest.importorskip("fastapi", reason="FastAPI comes with the extra service")
    folder, place = tmp_path_factory.mktemp("cours à lire"), tmp_path_factory.mktemp("service")
    token = prepare(place, ["ada"])["ada"]
    monkeypatch.setenv("OFFLOAD_QUIZ_TOKEN", token)
    monkeypatch.delenv("OFFLOAD_QUIZ_URL", raising=False)
    service = Running(place)
    try:
        content = {"cells": list(cells(service.url)), "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
        (folder / "lesson.ipynb").write_text(json.dumps(content))
        for address, lab_token in serve(tmp_path_factory, folder, "jupyterlab"):
            url = f"{address}/lab/tree/lesson.ipynb?token={lab_token}"
            ready(page, url)
            run_all(page)
            page.get_by_role("button", name="Send q1").wait_for(timeout=60_000)
            named = [(role, name) for role, name in names(page) if role != "none"]  # what is hidden has no role
            assert all(name.strip() for _, name in named), named
            assert {("button", f"Send q{n}") for n in range(1, 5)} <= set(named)

            # A wrong answer, by keyboard: its verdict is announced, and takes no focus.
            tab_to(page, "e.type === 'checkbox' && e.parentElement.textContent.startsWith('a)')")
            page.keyboard.press("Space")
            tab_to(page, "e.tagName === 'BUTTON' && e.textContent === 'Send q1'")
            page.keyboard.press("Enter")
            page.get_by_role("alert").filter(has_text="✘ Not yet").wait_for(timeout=60_000)
            assert len([node for role, _, node in tree(page) if role == "alert"]) == 1
            assert page.evaluate("() => document.activeElement.textContent") == "Send q1"

            # What cannot be read is asked back; a right number brings its explanation.
            box = page.get_by_label("q3, number and unit:")
            box.fill("1,2,3")
            box.press("Tab")
            page.get_by_role("button", name="Send q3").press("Enter")
            page.get_by_role("alert").filter(has_text="no attempt used").wait_for(timeout=60_000)

            # A hint says what it costs, is announced, and takes no focus either; so does how sure one is.
            box.focus()
            tab_to(page, "e.tagName === 'BUTTON' && e.textContent === 'Hint 1 to q3 (costs 25%)'")
            page.keyboard.press("Enter")
            page.get_by_role("alert").filter(has_text="Hint 1: CANARY-H1").wait_for(timeout=60_000)
            assert page.evaluate("() => document.activeElement.textContent") == "Hint 1 to q3"
            page.get_by_label("How sure are you of q1?").select_option("sure, 90 %")
            page.screenshot(path=str(ARTIFACTS / "online-quiz.png"))

            # The service dies. The answer is kept, the kernel works on, and the notebook says so.
            service.kill()
            page.get_by_role("checkbox", name="c) 16").check()
            page.get_by_role("button", name="Send q1").press("Enter")
            page.get_by_role("alert").filter(has_text="Not sent yet, kept here").wait_for(timeout=60_000)
            save(page, folder)
            assert [entry["answer"] for entry in sheet(folder)["unsent"]] == [["c"]]
            poor = [
                row for row in page.evaluate(CONTRAST, ".offload-quiz :is(p, label, button, .offload-verdict)") if row[1] < 4.5
            ]
            page.screenshot(path=str(ARTIFACTS / "online-quiz-away.png"))
            assert not poor, poor

            # It comes back: the answer is judged without a click.
            service = Running(place, service.port)
            page.get_by_role("alert").filter(has_text="CANARY-C").wait_for(timeout=120_000)
            page.screenshot(path=str(ARTIFACTS / "online-quiz-back.png"))
            save(page, folder)
            held = sheet(folder)
            assert held["unsent"] == [] and [reply["attempt"] for reply in held["replies"]] == [1, 2]
            assert [reply.get("confidence") for reply in held["replies"]] == [None, 90]
            assert {check(reply["receipt"], {DID}).learner for reply in held["replies"]} == {"ada"}
            assert token not in (folder / "lesson.ipynb").read_text() and "widgets" not in saved(folder)["metadata"]

            # Opened again without running anything it can be read; run again, it is taken up, and the receipts are handed in.
            ready(page, url)
            page.get_by_text("Your answers, lesson 01").first.wait_for(timeout=60_000)
            page.screenshot(path=str(ARTIFACTS / "online-quiz-reopened.png"))
            page.locator(".jp-CodeCell .jp-InputArea-editor").first.click()
            page.keyboard.press("Shift+Enter")
            page.keyboard.press("Shift+Enter")
            page.get_by_text("holds 2 receipts, 2 of them new").wait_for(timeout=60_000)
            assert len(json.loads((folder / "receipts.json").read_text())) == 2
    finally:
        service.kill()
