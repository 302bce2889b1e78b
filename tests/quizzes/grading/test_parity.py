"""What grade prints is what nbgrader says: in its export, in its own autograde of the same answers, and the next time."""

import csv
import json

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins.export import CsvExportPlugin
from traitlets.config import Config

from quizzes.nbgrader.course import COURSE_ID, build_assignment, grade
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.notebook import build, filled, write
from quizzes.nbgrader.session import find_scripts
from tests.hostile.classroom import RIGHT, WRONG, hand_in, with_answers

MIXED = {**RIGHT, "q3": WRONG["q3"]}
CLASS = {"all": RIGHT, "none": WRONG, "mixed": MIXED, "partly": {"q2": '"a, c"'}, "nothing": {}}
ASSERTS = {
    "q1": 'assert answers["q1"] == "c"',
    "q2": 'assert sorted(answers["q2"]) == ["a", "c", "e"]',
    "q3": 'assert answers["q3"].split() == ["48", "GB"]',
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = tmp_path_factory.mktemp("parity")
    blank = json.loads(build_assignment(course, "01").read_bytes())
    for student, answers in CLASS.items():
        path = hand_in(course, student, json.dumps(with_answers(blank, answers)).encode())
        late = student == "all"
        (path.parent / "timestamp.txt").write_text("2026-12-2" + ("6" if late else "4") + " 10:00 UTC")
    return course


def exported(course, path):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID) as gradebook:
        CsvExportPlugin(to=str(path)).export(gradebook)
    with open(path, newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def test_nbgraders_export_says_what_grade_said_with_penalties_and_again(course, tmp_path):
    first = grade(course, "01", due="2026-12-25T00:00 Europe/Berlin", late="10%/day")
    scores = {one.student: one.score for one in first.results}
    assert scores == pytest.approx({"all": 3 * 0.8, "none": 0, "mixed": 2, "partly": 2 / 3, "nothing": 0})
    rows = exported(course, tmp_path / "first.csv")
    assert {student: float(row["score"]) for student, row in rows.items()} == pytest.approx(scores)
    assert {float(row["max_score"]) for row in rows.values()} == {3}
    assert float(rows["all"]["raw_score"]) == 3 and float(rows["all"]["late_submission_penalty"]) == pytest.approx(0.6)
    again = grade(course, "01")
    assert again.to_json() == first.to_json()
    assert exported(course, tmp_path / "again.csv") == rows


def test_nbgraders_own_autograde_gives_the_same_points_for_the_same_answers(course, tmp_path):
    """The same questions with an assertion each, run by nbgrader in a kernel."""
    pytest.importorskip("ipykernel")
    ours = {one.student: one.score for one in grade(course, "01", due="none").results}
    find_scripts()
    bank = handed_out("01")
    source = build(bank)
    for cell in source.cells:
        if cell.id.endswith("-grade"):
            cell.source = ASSERTS[cell.id.removesuffix("-grade")]
    write(source, tmp_path / "source" / "quiz-01" / "quiz-01.ipynb")
    config = Config()
    config.CourseDirectory.root = str(tmp_path)
    config.CourseDirectory.course_id = COURSE_ID
    config.CourseDirectory.db_url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    config.Exchange.root = str(tmp_path / "exchange")
    own = NbGraderAPI(CourseDirectory(config=config), config=config)
    assert own.generate_assignment("quiz-01")["success"]
    literal = {name: json.loads(text) for name, text in MIXED.items()}
    write(filled(bank, literal), tmp_path / "submitted" / "mixed" / "quiz-01" / "quiz-01.ipynb")
    done = own.autograde("quiz-01", "mixed")
    assert done["success"], done
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", COURSE_ID) as gradebook:
        assert gradebook.find_submission("quiz-01", "mixed").score == ours["mixed"] == 2
