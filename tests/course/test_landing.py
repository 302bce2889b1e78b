"""Where a learner stands: of answers, predictions and files that are damaged."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from course import build, landing
from course.prediction import near
from quizzes.answers import MIME
from quizzes.progress import Progress
from quizzes.question import practice

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three lessons in a folder, and no progress yet."""
    monkeypatch.setenv("OFFLOAD_LAB_PROGRESS", str(tmp_path / "progress.json"))
    for source in build.lessons()[:3]:
        (tmp_path / f"{source.stem}.ipynb").write_text(build.build(source), encoding="utf-8")
    return tmp_path


def answer(lesson, place, share, minute, **more):
    question = practice(lesson).questions[place]
    at = (NOW - timedelta(days=40) + timedelta(minutes=minute)).isoformat(timespec="microseconds")
    Progress().note(lesson, question.id, {"answer": "a", "share": share, "at": at, **more}, NOW - timedelta(days=40))


def predicted(folder, name, **answer):
    (path,) = folder.glob(f"{name[:2]}_*.ipynb")
    notebook = json.loads(path.read_text())
    entry = {"answer": answer, "share": 0, "at": NOW.isoformat()}
    record = {"version": 2, "lesson": f"prediction {name}", "answers": {name: entry}}
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    code["outputs"].append({"output_type": "display_data", "metadata": {}, "data": {MIME: record}})
    path.write_text(json.dumps(notebook))


def row(said, number):
    (line,) = [line for line in said.splitlines() if line.startswith(f"{number} · ")]
    return line.split("  ")


def test_nothing_yet(folder):
    said = landing.standing(folder, NOW)
    assert "Begin here: lesson 0 · Is your machine ready?" in said
    assert "0 of" in said and "sure" not in said


def test_answers_and_predictions_are_counted(folder):
    answer("01", 0, 1.0, 1, confidence=90)
    answer("01", 1, 0.0, 2, confidence=90)
    predicted(folder, "01-sixteen", value=12, confidence=60, found=16.0, unit="bytes")
    predicted(folder, "00-memory", value=1e9, confidence=90, found=30e9, unit="bytes_per_second")
    predicted(folder, "00-disk", value=None, confidence=None)
    said = landing.standing(folder, NOW)
    count = len(practice("01").questions)
    cells = [cell.strip() for cell in row(said, 1) if cell]
    assert cells[1:] == [f"2 of {count}", "50%", "1 of 1", "1 of 1"]
    assert [cell.strip() for cell in row(said, 0) if cell][3:] == ["1 of 2", "0 of 1"]
    assert "Go on here: lesson 1" in said
    # What was missed forty days ago is due.
    assert "1 question comes back today: lesson 1." in said
    quizzes, predictions = said.split("Your predictions")
    assert " 90 to 100 %        2    50%" in quizzes
    assert " 90 to 100 %        1     0%" in predictions and " 50 to  70 %        1   100%" in predictions
    assert "<svg" in said.html and "90 to 100 %" in said.html


def test_after_the_lesson_that_was_answered_last_comes_the_next(folder):
    for place in range(len(practice("01").questions)):
        answer("01", place, 1.0, place)
    assert "Go on here: lesson 2" in landing.standing(folder, NOW)
    for lesson in ("02", "00"):
        for place in range(len(practice(lesson).questions)):
            answer(lesson, place, 1.0, 100 + place)
    assert "Every question is answered." in landing.standing(folder, NOW)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"cells": 3}', b'{"cells": [4]}', b"\xff", b"[" * 100_000])
def test_a_damaged_notebook_is_said_and_the_others_are_shown(folder, content):
    (folder / "01_where_did_the_memory_go.ipynb").write_bytes(content)
    said = landing.standing(folder, NOW)
    assert "01_where_did_the_memory_go.ipynb could not be read" in said
    assert row(said, 0) and row(said, 2) and "1 · " not in said


def test_a_damaged_progress_file_is_said_and_left(folder):
    (folder / "progress.json").write_text("{")
    said = landing.standing(folder, NOW)
    assert "is damaged" in said and row(said, 2)
    assert (folder / "progress.json").read_text() == "{"


@pytest.mark.parametrize("value", ["12", -1, True, float("nan"), [1], None, {"a": 1}])
def test_an_edited_prediction_is_none(folder, value):
    predicted(folder, "01-sixteen", value=value, confidence="x", found=value, unit=5)
    assert "0 of 1" in row(landing.standing(folder, NOW), 1)[-2].strip() or "0 of 1" in landing.standing(folder, NOW)


def test_words_of_a_file_are_not_html(folder):
    (folder / "01_where_did_the_memory_go.ipynb").rename(folder / '01_"><img src=x>.ipynb')
    path = folder / '01_"><img src=x>.ipynb'
    notebook = json.loads(path.read_text())
    notebook["cells"][0]["source"] = ["# 1 · <img src=x onerror=alert(1)>"]
    path.write_text(json.dumps(notebook))
    assert "<img" not in landing.standing(folder, NOW).html


def test_a_folder_without_lessons_is_a_table_without_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("OFFLOAD_LAB_PROGRESS", str(tmp_path / "progress.json"))
    assert landing.standing(tmp_path, NOW).splitlines()[0].startswith("Lesson")


@pytest.mark.parametrize(
    "value, found, unit, expected",
    [
        (8, 16, "bytes", True),
        (7.9, 16, "bytes", False),
        (32, 16, "ratio", True),
        (33, 16, "count", False),
        (40, 50, "percent", True),
        (39, 50, "percent", False),
        (1, 2, "percent", True),
    ],
)
def test_near(value, found, unit, expected):
    assert near(value, found, unit) is expected
