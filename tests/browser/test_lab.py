"""The first lesson in JupyterLab, in a real browser: opened, run, answered, saved, opened again. Leaves screenshots."""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from course import build
from quizzes.answers import MIME

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "test-artifacts"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not Path(CHROMIUM).exists() and not os.environ.get("CI"), reason=f"no browser at {CHROMIUM}; with CI set this fails"
    ),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab of our own over a copy of the lesson, in a folder with a space and an accent; yields (URL, folder)."""
    folder = tmp_path_factory.mktemp("cours à lire")
    source = next(path for path in build.targets() if path.name.startswith("01_"))
    (folder / "lesson.ipynb").write_text(build.build(source), encoding="utf-8")
    for address, token in serve(tmp_path_factory, folder, "jupyterlab"):
        yield f"{address}/lab/tree/lesson.ipynb?token={token}", folder


def serve(tmp_path_factory, folder, front_end):
    """Start "jupyterlab" or "notebook" over a folder; yields (address, token) once, and stops it after that."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    home = tmp_path_factory.mktemp("jupyter")
    # Not asked whether to fetch news: the question would lie over the screenshots.
    asked = home / "settings" / "@jupyterlab" / "apputils-extension"
    asked.mkdir(parents=True)
    (asked / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    log = os.open(home / "log", os.O_WRONLY | os.O_CREAT)  # the server's for as long as it lives
    server = subprocess.Popen(
        [sys.executable, "-m", front_end, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
         f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"],
        stdout=log, stderr=log, cwd=folder,
        env=os.environ | {"JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_DATA_DIR": str(home / "data"),
                          "JUPYTER_RUNTIME_DIR": str(home / "runtime"), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
                          "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
                          "OFFLOAD_LAB_PROGRESS": str(home / "progress.json")},
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    for _ in range(240):
        assert server.poll() is None, (home / "log").read_text()[-2000:]
        try:
            urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=2).read()
            break
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    else:
        pytest.fail("JupyterLab did not start:\n" + (home / "log").read_text()[-2000:])
    yield address, token
    server.terminate()
    try:
        server.wait(timeout=60)
    except subprocess.TimeoutExpired:  # it waits for kernels that are slow to end; what is tested here has been seen by then
        server.kill()
        server.wait()
    os.close(log)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    from playwright.sync_api import sync_playwright

    ARTIFACTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")),
            executable_path=CHROMIUM,
            args=FLAGS,
            viewport={"width": 1280, "height": 1600},
        )
        yield context.pages[0]
        context.close()


def ready(page, url):
    """Open the notebook and wait for its kernel."""
    page.goto(url)
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
    page.wait_for_function("() => document.body.innerText.includes('| Idle')", timeout=120_000)


def command(page, name):
    """Run one of JupyterLab's commands from its palette, by keyboard, as a person can."""
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+C")
    page.wait_for_selector(".lm-CommandPalette-input")
    page.fill(".lm-CommandPalette-input", name)
    page.keyboard.press("Enter")


def prompts(page):
    """The prompts of the code cells that are in view of the notebook's own model: numbers, '*' or ''."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]
                 .map(prompt => prompt.textContent.replace(/[^0-9*]/g, ''))"""
    )


def run_all(page):
    """Run all cells. Straight after opening, the command is sometimes lost: then it is given again."""
    for _ in range(4):
        command(page, "Run All Cells")
        deadline = time.time() + 20
        while time.time() < deadline:
            if any(prompts(page)):
                break
            page.wait_for_timeout(500)
        if any(prompts(page)):
            break
    deadline = time.time() + 400
    while time.time() < deadline:
        shown = prompts(page)
        if shown and all(prompt.isdigit() for prompt in shown):
            return
        page.wait_for_timeout(1000)
    page.screenshot(path=str(ARTIFACTS / "lesson-1-stuck.png"))
    pytest.fail(f"the lesson did not run to its end: {prompts(page)}")


def saved(folder):
    for _ in range(60):
        text = (folder / "lesson.ipynb").read_text(encoding="utf-8")
        if text.rstrip().endswith("}"):
            break
        time.sleep(0.5)  # Jupyter writes the file in place, and is at it now
    return json.loads(text)


def save(page, folder):
    before = (folder / "lesson.ipynb").stat().st_mtime_ns
    page.keyboard.press("Escape")
    page.keyboard.press("Control+S")
    for _ in range(60):
        if (folder / "lesson.ipynb").stat().st_mtime_ns != before:
            return
        page.wait_for_timeout(250)
    pytest.fail("the notebook was not saved")


def records(notebook, lesson):
    """The answer records of one lesson (or prediction) that a notebook holds."""
    outputs = [output["data"] for cell in notebook["cells"] for output in cell.get("outputs", []) if "data" in output]
    return [data[MIME] for data in outputs if MIME in data and data[MIME]["lesson"] == lesson]


def see(page, locator, name):
    locator.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    page.screenshot(path=str(ARTIFACTS / name))


def test_the_lesson_runs_answers_and_remembers(lab, page):
    url, folder = lab
    ready(page, url)
    run_all(page)
    save(page, folder)
    outputs = [output for cell in saved(folder)["cells"] for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert "= 16.00" in json.dumps(outputs)
    see(page, page.locator("text=The sixteen bytes").last, "lesson-1-sixteen.png")
    see(page, page.locator("text=The same training, offloaded").last, "lesson-1-live.png")
    see(page, page.locator("text=Read it off").last, "lesson-1-side-by-side.png")
    see(page, page.locator("text=Under a limit").last, "lesson-1-limit.png")

    # A prediction: what is none is said, and what is one is noted.
    guess = page.get_by_label("Your guess, in bytes:")
    for typed, told in (("twelve", "Not noted: 'twelve'"), ("12", "Noted: 12 bytes.")):
        guess.fill(typed)
        guess.press("Enter")
        page.get_by_text(told).first.wait_for(timeout=20_000)
    page.get_by_label("How sure are you?").select_option("rather sure")
    page.get_by_text("Your prediction: 12 bytes, 60 % sure").first.wait_for(timeout=20_000)
    see(page, guess, "lesson-1-predicted.png")

    # A wrong answer and its explanation, by mouse; then the same, right.
    radio = page.get_by_label(re.compile(r"^b\) 8: weight"))
    see(page, radio, "lesson-1-quiz.png")
    radio.check()
    check = page.get_by_role("button", name="Check").first
    check.click()
    page.get_by_text("Not yet").first.wait_for(timeout=20_000)
    page.get_by_label(re.compile(r"^d\) 16: weight")).check()
    check.click()
    page.get_by_text("✔ Right").first.wait_for(timeout=20_000)
    number = page.get_by_label("q3, number and unit:")
    number.fill("30 GB")
    number.press("Enter")
    page.get_by_role("button", name="Check").nth(2).click()
    page.get_by_text("10 bytes a parameter").first.wait_for(timeout=20_000)
    page.wait_for_timeout(1000)
    see(page, radio, "lesson-1-answered.png")
    save(page, folder)

    # The file holds the answers as data, and no widget state.
    (record,) = records(saved(folder), "01")
    answers = {key: entry["answer"] for key, entry in record["answers"].items()}
    assert answers == {"l01-sixteen": "d", "l01-gigabytes": "30 GB"}
    (record,) = records(saved(folder), "prediction 01-sixteen")
    assert record["answers"]["01-sixteen"]["answer"] == {"value": 12, "confidence": 60}
    assert "widgets" not in saved(folder)["metadata"]

    # Opened again without running anything, the answers can be read; run again in a new kernel, they are taken up.
    page.reload()
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=120_000)
    table = page.get_by_text("Your answers, lesson 01")
    for _ in range(40):
        if table.count():
            break
        page.locator(".jp-WindowedPanel-outer").first.evaluate("panel => panel.scrollBy(0, 1200)")
        page.wait_for_timeout(250)
    see(page, table, "lesson-1-reopened.png")
    assert page.get_by_text("30 GB").count()


def test_a_second_run_in_a_fresh_kernel_takes_the_answers_up(lab, page):
    _, folder = lab
    shutil.copy(folder / "lesson.ipynb", ARTIFACTS / "lesson-1-executed.ipynb")
    command(page, "Restart Kernel and Run All Cells")
    page.locator(".jp-Dialog button.jp-mod-accept").click()
    page.wait_for_timeout(3000)
    deadline = time.time() + 400
    while time.time() < deadline and not all(prompt.isdigit() for prompt in prompts(page)):
        page.wait_for_timeout(1000)
    save(page, folder)
    content = saved(folder)
    outputs = [output for cell in content["cells"] for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    cells = {cell["id"]: cell for cell in content["cells"]}
    assert "30 GB" in json.dumps([o for o in cells["quiz"]["outputs"] if "text/html" in o.get("data", {})])
    assert "You predicted 12 bytes, 60 % sure. Measured: 16.00 bytes." in json.dumps(
        cells["sixteen"]["outputs"], ensure_ascii=False
    )
    see(page, page.locator("text=The same training, offloaded").last, "lesson-1-with-prediction.png")
