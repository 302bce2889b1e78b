"""The whole pack in one batch: nothing gained, nothing told, nobody stopped, and honest work keeps its full score."""

import json
import os
import socket

import pytest
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.exercises.exercise import exercises
from quizzes.exercises.grade import feedback, grade_class
from quizzes.exercises.notebook import build
from quizzes.exercises.sandbox import Limits, NoIsolation, isolation
from tests.exercises.solutions import RIGHT
from tests.hostile.pack import CELLS
from tests.hostile.pack import HONEST as FIRST

LIMITS = Limits(wall=1.5, cpu=1)
HONEST = FIRST | {name: cells[0] for name, cells in RIGHT.items()}
MOST = sum(exercise.points for exercise in exercises())


def _notebook(cells):
    notebook = json.loads(json.dumps(build(exercises())))
    for cell in notebook["cells"]:
        name = cell["id"].removeprefix("exercise-")
        if name in cells:
            cell["source"] = f"# Exercise: {name}\n{cells[name]}"
    return notebook


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """(report by student, course): every hostile cell beside two honest ones, hostile files, and honest learners."""
    try:
        isolation()
    except NoIsolation as error:
        pytest.skip(str(error))
    course = tmp_path_factory.mktemp("a class à part")
    (course / "gradebook.db").write_bytes(b"the gradebook")
    listener = socket.create_server(("127.0.0.1", 0))

    def folder(student):
        path = course / "submitted" / student / "exercises"
        path.mkdir(parents=True)
        return path / "exercises.ipynb"

    for name, cell in CELLS.items():
        cell = cell.replace("COURSE", str(course)).replace("PORT", str(listener.getsockname()[1]))
        folder(name.replace("._", "-").replace(".", "-")).write_text(json.dumps(_notebook({**HONEST, "training-bytes": cell})))
    edited = _notebook({})
    for cell in edited["cells"]:
        cell["metadata"] = {"nbgrader": {"points": 1000, "grade": True, "locked": False}, "score": 1000, "max_score": 1}
    edited["metadata"]["score"] = float("nan")
    folder("flags and points edited").write_text(json.dumps(edited))
    folder("a link").symlink_to(course / "gradebook.db")
    (course / "submitted" / "linked folder").symlink_to(course / "submitted" / "honest")
    os.mkfifo(folder("a pipe"))
    folder("<script>alert(1)").write_text(json.dumps(_notebook(HONEST)))
    folder("broken").write_bytes(b'{"cells": [')
    folder("deep").write_bytes(b"[" * 200_000)
    folder("empty").write_bytes(b"")
    folder("honest").write_text(json.dumps(_notebook(HONEST)))
    plain = _notebook(HONEST)
    plain["cells"] = [{"cell_type": "code", "source": cell["source"].splitlines(True)} for cell in plain["cells"][::-1]]
    folder("zz honest without ids").write_text(json.dumps(plain))
    with listener:
        report = grade_class(course, limits=LIMITS)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    return {result.student: result for result in report.results}, course, report


def test_the_honest_keep_their_full_score(batch):
    results, _, _ = batch
    for student in ("honest", "zz honest without ids"):
        assert results[student].score == results[student].max_score == MOST


@pytest.mark.parametrize("name", CELLS)
def test_a_hostile_cell_gains_nothing_and_costs_only_itself(batch, name):
    results, _, _ = batch
    marks = {one.exercise: one for one in results[name.replace("._", "-").replace(".", "-")].exercises}
    hostile = marks.pop("training-bytes")
    assert hostile.score == 0 and hostile.passed == 0 and hostile.notes
    assert marks.keys() | {"training-bytes"} == HONEST.keys()
    assert all(one.score == one.max_score > 0 for one in marks.values())


@pytest.mark.parametrize("student", ["flags and points edited", "a link", "linked folder", "a pipe", "broken", "deep", "empty"])
def test_a_hostile_file_gains_nothing_and_is_explained(batch, student):
    result = batch[0][student]
    assert result.score == 0 and result.max_score == MOST and (result.notes or any(one.notes for one in result.exercises))


def test_nothing_is_changed_and_nothing_told(batch, monkeypatch):
    results, course, report = batch
    assert (course / "gradebook.db").read_bytes() == b"the gradebook"
    told = json.dumps(report.to_json(), allow_nan=False)
    assert "7000000000" not in told and "84000000000" not in told and os.environ["PATH"] not in told
    assert all(character.isprintable() for character in json.loads(told)["results"][0]["student"])
    page = feedback(results["script in an error"])
    assert "<script" not in page and "&lt;script&gt;" in page and "\x1b" not in page


def test_the_command_prints_one_report(tmp_path):
    target = tmp_path / "submitted" / "mina" / "exercises"
    target.mkdir(parents=True)
    (target / "exercises.ipynb").write_text(json.dumps(_notebook(HONEST)))
    try:
        isolation()
    except NoIsolation as error:
        pytest.skip(str(error))
    done = CliRunner().invoke(app, ["exercises", "grade", "--course", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert report["results"][0]["score"] == MOST
    assert report["isolation"].startswith(("namespaces", "another user"))
