"""The gradebook in a real PostgreSQL: grade, regrade with a mark by hand, one grader at a time over two folders."""

import json
import shutil

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from bench.grading import answered, hand_in
from quizzes.cli import app
from quizzes.exercises.grade import Report
from quizzes.exercises.gradebook import enter
from quizzes.nbgrader.api import COURSE_ID, url_of
from quizzes.nbgrader.course import CourseError, build_assignment, grade
from quizzes.nbgrader.session import one_gradebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = tmp_path_factory.mktemp("a class à part")
    honest = json.dumps(answered(build_assignment(course, "01"))).encode()
    for student in ("ada", "김하나", "broken"):
        hand_in(course, student, b"[" if student == "broken" else honest)
    return course


def test_a_class_is_graded_into_postgresql_and_again(course, postgresql):
    plain = postgresql.replace("+psycopg", "")
    done = CliRunner().invoke(
        app, ["grade", "--course", str(course), "--db-url", plain, "--json", "--due", "2026-12-24T23:59 Europe/Berlin"]
    )
    assert done.exit_code == 0, done.output
    first = {one["student"]: one["score"] for one in json.loads(done.stdout)["results"]}
    assert first["ada"] == first["김하나"] > 0 == first["broken"]
    with Gradebook(postgresql, COURSE_ID) as gradebook:
        assert {one.student.id: one.score for one in gradebook.assignment_submissions("quiz-01")} == first
        mark = next(m for m in gradebook.find_submission_notebook("quiz-01", "quiz-01", "ada").grades if m.auto_score == 0)
        mark.manual_score = 0.75
        gradebook.db.commit()
    again = {one.student: one.score for one in grade(course, "01", db_url=plain).results}
    # The sum is PostgreSQL's, over rows in the order in which they now lie: the last bit is not ours to choose.
    assert again == pytest.approx(first | {"ada": first["ada"] + 0.75}, abs=1e-9)
    assert enter(course, Report("none", []), [], plain) == {}


def test_a_grader_on_another_machine_is_refused_while_one_is_at_work(course, postgresql, tmp_path):
    elsewhere = tmp_path / "a copy"
    shutil.copytree(course, elsewhere)
    with (
        one_gradebook(url_of(course, postgresql), COURSE_ID),
        pytest.raises(CourseError, match="at work in this gradebook"),
    ):
        grade(elsewhere, "01", db_url=postgresql)
    assert {one.student for one in grade(elsewhere, "01", db_url=postgresql).results} == {"ada", "김하나", "broken"}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://nobody@/postgres?host=/nowhere", "cannot be used"),
        ("no-database", "cannot be used"),
        ("magic://host/db", "cannot be used"),
        ("sqlite:////nowhere/at/all/gradebook.db", "cannot be used"),
        ("oracle://host/db", "is not installed"),
    ],
)
def test_a_database_that_is_none_is_said(course, url, said):
    if url.startswith("postgresql"):
        pytest.importorskip("psycopg")
    with pytest.raises(CourseError, match=said):
        grade(course, "01", db_url=url)
