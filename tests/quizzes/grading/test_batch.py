"""A batch through nbgrader's gradebook: regrades, failures half-way, hostile folders, altered notebooks."""

import json
import random

import pytest
from nbgrader.api import Gradebook
from nbgrader.preprocessors import SaveAutoGrades

from bench.grading import answered, hand_in, mutate
from quizzes.nbgrader.course import COURSE_ID, build_assignment, grade


@pytest.fixture
def course(tmp_path):
    return tmp_path


@pytest.fixture
def honest(course):
    return answered(build_assignment(course, "01"))


def by_student(grades):
    return {result.student: result for result in grades.results}


def test_a_mark_given_by_hand_survives_a_regrade(course, honest):
    hand_in(course, "ada", json.dumps(honest).encode())
    before = grade(course, "01").results[0].score
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID) as gradebook:
        notebook = gradebook.find_submission_notebook("quiz-01", "quiz-01", "ada")
        mark = next(mark for mark in notebook.grades if mark.auto_score == 0)
        mark.manual_score = 0.75
        gradebook.db.commit()
    assert grade(course, "01").results[0].score == pytest.approx(before + 0.75)


def test_a_failure_half_way_keeps_the_old_score_and_the_others_are_graded(course, honest, monkeypatch):
    """The second hand-in is blank and would lower the score; saving breaks after its first question is in the gradebook."""
    for student in ("ada", "ben"):
        hand_in(course, student, json.dumps(honest).encode())
    before = by_student(grade(course, "01"))
    blank = (course / "release" / "quiz-01" / "quiz-01.ipynb").read_bytes()
    for student in ("ada", "ben"):
        (course / "submitted" / student / "quiz-01" / "quiz-01.ipynb").write_bytes(blank)
    calls, save = [], SaveAutoGrades._add_score

    def failing(self, cell, resources):
        calls.append(cell)
        if len(calls) == 2:
            raise RuntimeError("the disk broke")
        return save(self, cell, resources)

    monkeypatch.setattr(SaveAutoGrades, "_add_score", failing)
    after = by_student(grade(course, "01"))
    assert after["ada"].score == before["ada"].score > 0
    assert any("an earlier score stands" in note for note in after["ada"].notes)
    assert after["ben"].score == 0, "graded after the failure, and blank"
    assert not any("could not grade" in note for note in after["ben"].notes)


def test_hostile_folders_are_explained_and_nothing_outside_is_read(course, honest):
    good = json.dumps(honest).encode()
    hand_in(course, "ada", good)
    hand_in(course, "-rf", good)
    hand_in(course, "eve", good)
    (course / "submitted" / "dir" / "quiz-01" / "quiz-01.ipynb").mkdir(parents=True)
    link = course / "submitted" / "link" / "quiz-01" / "quiz-01.ipynb"
    link.parent.mkdir(parents=True)
    link.symlink_to(course / "submitted" / "ada" / "quiz-01" / "quiz-01.ipynb")
    (course / "students.csv").write_text("id\nada\ndir\nlink\n", encoding="utf-8")
    results = by_student(grade(course, "01"))
    assert results["ada"].score > 0
    for student in ("-rf", "eve", "dir", "link"):
        assert results[student].score == 0 and results[student].notes
    assert not (course / "cleaned" / "eve").exists()


def test_altered_notebooks_never_stop_the_batch_nor_gain(course, honest):
    chance = random.Random(5)
    for number in range(25):
        hand_in(course, f"m{number}", mutate(honest, chance))
    hand_in(course, "honest", json.dumps(honest).encode())
    results = by_student(grade(course, "01"))
    assert len(results) == 26
    assert 0 < results["honest"].score < results["honest"].max_score
    assert all(0 <= result.score <= results["honest"].score for result in results.values())
    assert not any("could not grade" in note for result in results.values() for note in result.notes)
