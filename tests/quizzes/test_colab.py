"""The quiz on Colab's IPython 7.34 and ipywidgets 7.7.1, in an environment of their own and a real kernel.

OFFLOAD_LAB_COLAB names the Python of that environment. To make it:
    python -m venv colab && colab/bin/pip install -r tests/quizzes/colab.txt
    OFFLOAD_LAB_COLAB=colab/bin/python pytest tests/quizzes/test_colab.py
"""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("OFFLOAD_LAB_COLAB", "")

DRIVER = """
import asyncio, json, sys, nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
cells = json.loads(sys.argv[1])
held = new_notebook(cells=[new_code_cell(source) for source in cells])
NotebookClient(held, timeout=300, kernel_name="python3").execute()
print(json.dumps(held))
"""
BEGIN = """
import sys, types, warnings
warnings.simplefilter("error", DeprecationWarning)  # what ipywidgets does not know, it only warns of
sys.modules["google.colab"] = types.ModuleType("google.colab")
import IPython, ipywidgets
print(IPython.__version__, ipywidgets.__version__)
from quizzes import Quiz
quiz = Quiz("01")
quiz.show()
"""
CLICKS = """
for card in quiz._board.cards.values():
    card.button.click()                     # nothing chosen yet: said, and not counted
card = quiz._board.cards["q1"]
card.controls[3].value = True
card.sure.value = 90
card.button.click()
print(card.verdict.value)
quiz._board.cards["q3"].controls[0].value = "30 GB"
quiz._board.cards["q3"].button.click()
quiz.answers["q2"] = "a, b, c"
"""


def run(python, tmp_path, *cells):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OFFLOAD_LAB_PROGRESS": str(tmp_path / "progress.json")}
    environment.pop("JPY_SESSION_NAME", None)
    command = [python, "-c", DRIVER, json.dumps(cells)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    outputs = [output for cell in json.loads(done.stdout.splitlines()[-1])["cells"] for output in cell["outputs"]]
    text = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    return text, [output["data"] for output in outputs if "data" in output]


def is_answered_and_kept(python, tmp_path):
    text, data = run(python, tmp_path, BEGIN, CLICKS)
    assert "✔ Right" in text and "mount Drive" in text and str(tmp_path / "progress.json") in text
    assert any("application/vnd.jupyter.widget-view+json" in shown for shown in data)
    (record,) = [shown for shown in data if "application/vnd.offload-lab.answers+json" in shown]
    kept = record["application/vnd.offload-lab.answers+json"]["answers"]
    assert [entry["answer"] for entry in kept.values()] == ["d", "30 GB", ["a", "b", "c"]]
    assert kept["l01-sixteen"]["confidence"] == 90
    again, _ = run(python, tmp_path, BEGIN, "print(dict(quiz.answers))")  # no notebook that a kernel can read
    assert "{'q1': 'd', 'q2': ['a', 'b', 'c'], 'q3': '30 GB'}" in again
    return text


@pytest.mark.skipif(not PYTHON, reason="OFFLOAD_LAB_COLAB names no Python of Colab's versions; see this file's head")
def test_on_colabs_versions(tmp_path):
    assert "7.34.0 7.7.1" in is_answered_and_kept(PYTHON, tmp_path)


def test_on_the_versions_here_where_no_notebook_can_be_read(tmp_path):
    assert metadata.version("ipywidgets") in is_answered_and_kept(sys.executable, tmp_path)


def test_colabs_versions_are_within_what_the_package_asks_for():
    from packaging.requirements import Requirement

    asked = {r.name: r for r in map(Requirement, metadata.requires("offload-lab") or [])}
    pins = [line.split("==") for line in (Path(__file__).parent / "colab.txt").read_text().splitlines() if "==" in line]
    checked = [name for name, version in pins if name in asked and asked[name].specifier.contains(version)]
    assert "ipywidgets" in checked
