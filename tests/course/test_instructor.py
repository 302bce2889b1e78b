"""The instructor's notebook: fixed ids, no outputs, and what it shows when it is run from top to bottom."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from quizzes.analysis import analyse
from quizzes.analysis_example import made_up_class

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "course" / "instructor" / "item_analysis.ipynb"


def _run(monkeypatch, **variables):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    return notebook


def _said(notebook):
    return "".join(o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "stream")


def test_it_is_handed_out_without_outputs():
    notebook = json.loads(NOTEBOOK.read_text())
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook["cells"])
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


def test_without_results_it_says_that_the_class_is_made_up_and_points_at_the_translation(monkeypatch):
    notebook = _run(monkeypatch)
    said = _said(notebook)
    assert "made up" in said and "60 learners" in said
    flagged = [item for item in analyse(made_up_class()) if any(gap.flagged for gap in item.gaps)]
    assert len(flagged) == 1 and said.count("a gap; compare the translations") == 1
    figures = [o for c in notebook.cells for o in c.get("outputs", []) if "application/vnd.plotly.v1+json" in o.get("data", {})]
    assert len(figures) == 4 + len(analyse(made_up_class()))
    # A page made of it has no plotly: there each figure is a table.
    for figure in figures:
        assert "<table" in figure["data"]["text/html"] and "Figure(" not in figure["data"]["text/plain"]
    everything = " ".join(figure["data"]["text/html"] for figure in figures)
    for item in analyse(made_up_class()):
        assert f"{item.facility:.2f}" in everything and all(f"<td>{count}</td>" in everything for count in item.drew.values())


@pytest.mark.parametrize("rows, said", [("[]", "no answers"), ('[{"learner": "a", "question": "q", "share": 1}]', "too few")])
def test_a_class_of_none_and_of_one_run_to_the_end(monkeypatch, tmp_path, rows, said):
    (tmp_path / "rows.json").write_text(rows)
    text = _said(_run(monkeypatch, OFFLOAD_RESULTS=tmp_path / "rows.json"))
    assert said in text and "made up" not in text
