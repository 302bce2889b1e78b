"""Every lesson runs from top to bottom, twice, without a front end, a GPU or a network."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

from course import build
from offload_lab.demo import limit_is_enforced


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Lesson 1 run in a fresh kernel, saved, and the saved notebook run in another; in a folder with a space and an accent."""
    where = tmp_path_factory.mktemp("leçon un")
    target = where / "01.ipynb"
    target.write_text(build.build(sorted(build.targets())[0]), encoding="utf-8")
    done = []
    for _ in range(2):
        notebook = nbformat.read(target, as_version=4)
        NotebookClient(notebook, timeout=170, kernel_name="python3", resources={"metadata": {"path": str(where)}}).execute()
        nbformat.write(notebook, target)
        done.append(notebook)
    return where, done


def text(notebook, name):
    (cell,) = (cell for cell in notebook.cells if cell.id == name)
    parts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return "\n".join(parts)


@pytest.mark.parametrize("time", [0, 1], ids=["first", "second"])
def test_it_runs_and_measures_sixteen_bytes(runs, time):
    notebook = runs[1][time]
    assert not [o for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert re.search(
        r"after one step +weight +4\.00 +gradient +4\.00 +optimizer state +8\.00 += 16\.00", text(notebook, "sixteen")
    )
    losses = re.search(r"loss of step 120: ([\d.]+) and ([\d.]+)", text(notebook, "read-off"))
    assert float(losses[1]) == pytest.approx(float(losses[2]), abs=2e-5)
    assert "Not begun" in text(notebook, "make-check")
    assert "28,000,000,000" in text(notebook, "transfer")


@pytest.mark.parametrize("time", [0, 1], ids=["first", "second"])
def test_the_demonstration_says_what_happened(runs, time):
    said = text(runs[1][time], "limit")
    expected = "trained" if limit_is_enforced() else "out of memory"
    assert re.search(rf"torch\.AdamW +{expected}", said) and re.search(r"OffloadAdamW disk +trained", said)


def test_pictures_are_left_that_need_no_kernel(runs):
    for name in ("watch-start", "offload-start", "read-off", "limit"):
        (cell,) = (cell for cell in runs[1][1].cells if cell.id == name)
        html = " ".join(o.data["text/html"] for o in cell.outputs if "text/html" in o.get("data", {}))
        assert "svg" in html, name


def test_nothing_is_left_in_the_folder(runs):
    assert [path.name for path in runs[0].iterdir()] == ["01.ipynb"]
