"""Lesson 1 runs to its end, again in the same kernel and again in another, without a front end, a GPU or a network."""

import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from course import build
from offload_lab.demo import limit_is_enforced
from quizzes.answers import MIME
from tests.course.warned import warned


def test_the_network_is_closed_in_these_tests(alone):
    environment, log = alone
    code = "import urllib.request; urllib.request.urlopen('http://203.0.113.1', timeout=5)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "no network in this test" in done.stderr and "203.0.113.1" in log.read_text()
    log.unlink()


def lesson_1():
    (source,) = (source for source in build.targets() if source.name.startswith("01_"))
    return source


PASSES = ["first", "same kernel", "another kernel"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, alone):
    """Lesson 1 run, run again in the same kernel, saved, and the saved one run in another; in a folder with a space and an
    accent."""
    environment, _ = alone
    where = tmp_path_factory.mktemp("leçon un")
    target = where / "01.ipynb"
    target.write_text(build.build(lesson_1()), encoding="utf-8")
    done = []
    for passes in (2, 1):
        notebook = nbformat.read(target, as_version=4)
        client = NotebookClient(notebook, timeout=170, kernel_name="python3", resources={"metadata": {"path": str(where)}})
        with client.setup_kernel(env=environment):
            for _ in range(passes):
                for index, cell in enumerate(notebook.cells):
                    client.execute_cell(cell, index)
                done.append(nbformat.from_dict(notebook))
        nbformat.write(notebook, target)
    return where, dict(zip(PASSES, done, strict=True))


def text(notebook, name):
    (cell,) = (cell for cell in notebook.cells if cell.id == name)
    parts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return "\n".join(parts)


@pytest.mark.parametrize("run", PASSES)
def test_it_runs_and_measures_sixteen_bytes(runs, run):
    notebook = runs[1][run]
    assert not [o for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert re.search(
        r"after one step +weight +4\.00 +gradient +4\.00 +optimizer state +8\.00 += 16\.00", text(notebook, "sixteen")
    )
    losses = re.search(r"loss of step 30: ([\d.]+) and ([\d.]+)", text(notebook, "read-off"))
    assert float(losses[1]) == pytest.approx(float(losses[2]), abs=2e-5)
    assert "Not begun" in text(notebook, "make-check")
    assert "28,000,000,000" in text(notebook, "transfer")


@pytest.mark.parametrize("run", PASSES)
def test_no_cell_warns(runs, run):
    assert warned(runs[1][run].cells) == []


@pytest.mark.parametrize("run", PASSES)
def test_the_demonstration_says_what_happened(runs, run):
    said = text(runs[1][run], "limit")
    expected = "trained" if limit_is_enforced() else "out of memory"
    assert re.search(rf"torch\.AdamW +{expected}", said) and re.search(r"OffloadAdamW disk +trained", said)


def test_pictures_are_left_that_need_no_kernel(runs):
    for name in ("watch-start", "offload-start", "read-off", "limit"):
        (cell,) = (cell for cell in runs[1]["another kernel"].cells if cell.id == name)
        html = " ".join(o.data["text/html"] for o in cell.outputs if "text/html" in o.get("data", {}))
        assert "svg" in html, name


def test_a_skipped_prediction_is_recorded_once(runs):
    for notebook in runs[1].values():
        (cell,) = (cell for cell in notebook.cells if cell.id == "predict")
        records = [o.data[MIME] for o in cell.outputs if MIME in o.get("data", {})]
        assert [record["answers"]["01-sixteen"]["answer"]["value"] for record in records] == [None]
        assert "Your prediction: skipped" in text(notebook, "predict")


def test_nothing_is_left_in_the_folder(runs):
    assert [path.name for path in runs[0].iterdir()] == ["01.ipynb"]


def test_nothing_left_this_machine(runs, alone):
    log = alone[1]
    assert not log.exists(), log.read_text()
