"""nbgrader's own autograde, one click in formgrader, gives no learner a point and runs nobody's code."""

import json
import os
import subprocess
import sys

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.nbgrader.course import COURSE_ID, grade
from quizzes.nbgrader.refusing import FILE
from tests.hostile.classroom import RIGHT, WRONG, hand_in, with_answers

CLASS = {"all": RIGHT, "none": WRONG}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A class that was graded. Whoever runs a submission's code leaves a file in the course folder."""
    course = tmp_path_factory.mktemp("a class é")
    done = CliRunner().invoke(app, ["build", "--course", str(course), "--lesson", "01"])
    assert done.exit_code == 0 and FILE not in done.output, done.output
    blank = json.loads((course / "release" / "quiz-01" / "quiz-01.ipynb").read_bytes())
    for student, answers in CLASS.items():
        submission = with_answers(blank, answers)
        submission["cells"][1]["source"] = f"answers = {{}}\nopen({str(course / 'ran')!r}, 'w').close()"
        hand_in(course, student, json.dumps(submission).encode())
    grade(course, "01")
    assert scores(course) == {"all": 3, "none": 0}
    return course


def scores(course):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID) as gradebook:
        return {one.student.id: one.score for one in gradebook.assignment_submissions("quiz-01")}


def own_autograde(course):
    """As formgrader does it: nbgrader's command line, started in the course folder."""
    options = [f"--CourseDirectory.root={course}", f"--CourseDirectory.course_id={COURSE_ID}", "--force"]
    command = [sys.executable, "-m", "nbgrader", "autograde", "quiz-01", *options]
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(course / "config"), "HOME": str(course)}
    return subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, timeout=300)


def test_in_the_course_folder_it_refuses_and_runs_nothing(course):
    done = own_autograde(course)
    assert done.returncode != 0 and "this course is graded by offload-quiz grade" in done.stderr
    assert scores(course) == {"all": 3, "none": 0} and not (course / "ran").exists()
    assert grade(course, "01").results[0].score == 3


def test_without_the_file_it_gives_no_points(course):
    pytest.importorskip("ipykernel")
    kept = (course / FILE).rename(course / "kept")
    done = own_autograde(course)
    kept.rename(course / FILE)
    assert (course / "ran").exists(), done.stderr
    assert scores(course) == {"all": 0, "none": 0}
    grade(course, "01")
    assert scores(course) == {"all": 3, "none": 0}


def test_a_configuration_of_the_instructors_own_is_kept_and_the_line_is_named(course):
    mine = "c = get_config()\n"
    (course / FILE).write_text(mine)
    done = CliRunner().invoke(app, ["build", "--course", str(course), "--lesson", "01"])
    assert done.exit_code == 0 and "RefuseToRun" in done.output and FILE in done.output
    assert (course / FILE).read_text() == mine
