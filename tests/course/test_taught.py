"""What the predictions of the course came to: near, high and low, how sure; none, few, and files that are damaged."""

import json

import pytest

from course import build
from course.landing import Guess
from course.taught import Made, taught, told
from quizzes.answers import MIME


@pytest.fixture
def folder(tmp_path):
    """Two lessons in a folder, as they are handed out."""
    for source in build.lessons()[:2]:
        (tmp_path / f"{source.stem}.ipynb").write_text(build.build(source), encoding="utf-8")
    return tmp_path


def predicted(folder, name, **answer):
    (path,) = folder.glob(f"{name[:2]}_*.ipynb")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    entry = {"answer": answer, "share": 0, "at": "2026-05-01T12:00:00+00:00"}
    record = {"version": 2, "lesson": f"prediction {name}", "answers": {name: entry}}
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    code["outputs"].append({"output_type": "display_data", "metadata": {}, "data": {MIME: record}})
    path.write_text(json.dumps(notebook), encoding="utf-8")


def made(value, found, confidence=None, unit="count", lesson="03"):
    return Made(lesson, Guess(value, confidence, found, unit))


def test_none_is_said_and_what_to_do(folder):
    said = taught(folder)
    assert said.startswith("There is no prediction to look back on") and "run this cell again" in said and not said.figure


def test_skipped_and_not_compared_are_counted(folder):
    predicted(folder, "00-memory", value=None, confidence=None)
    predicted(folder, "01-sixteen", value=12, confidence=60)
    said = taught(folder)
    assert "no prediction to look back on" in said and "1 prediction has nothing beside it yet" in said
    assert "1 was skipped." in said


def test_a_damaged_notebook_is_said_and_the_others_are_read(folder):
    predicted(folder, "01-sixteen", value=12, confidence=90, found=16.0, unit="bytes")
    (folder / "05_x.ipynb").write_text("{", encoding="utf-8")
    said = taught(folder)
    assert "05_x.ipynb could not be read" in said and "1 prediction was compared; 1 came near. 0 too high, 1 too low." in said
    assert " 90 to 100 %        1   100%" in said and "<svg" in said._repr_html_()


def test_which_way_off_and_how_far():
    said = told([made(10, 2, 90), made(1, 8, 60), made(3, 3, 60), made(100, 2, unit="seconds", lesson="04")])
    assert "4 predictions were compared; 1 came near. 2 too high, 1 too low." in said
    assert "counts: 1 of 3 near, typically off by a factor of 5.0" in said
    assert "times: 0 of 1 near, typically off by a factor of 50.0" in said
    furthest = said.partition("Furthest off:\n")[2].splitlines()[:3]
    assert furthest[0] == "lesson 4: you said 100 s, it was 2.00 s"
    assert [line[:8] for line in furthest] == ["lesson 4", "lesson 3", "lesson 3"] and "you said 1, it was 8.00" in furthest[1]
    assert "With fewer than 20, all this can be chance." in said


def test_all_near_and_never_sure():
    said = told([made(4, 5)])
    assert "Furthest" not in said and "you said how sure you were" in said and not said.figure


def test_a_percentage_is_near_by_points_whatever_its_factor():
    assert "1 came near" in told([made(2, 9, unit="percent")]) and "Furthest" not in told([made(2, 9, unit="percent")])
