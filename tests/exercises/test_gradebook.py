"""Exercises in the gradebook: an assignment of their own, marks by hand kept, and a machine without processes named."""

import csv
import errno
import json
import subprocess

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins.export import CsvExportPlugin
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.exercises import sandbox
from quizzes.exercises.exercise import with_keys
from quizzes.exercises.grade import ExercisesError, Mark, Report, Result, judge
from quizzes.exercises.gradebook import enter
from quizzes.nbgrader.api import COURSE_ID
from quizzes.nbgrader.session import only_grader

EXERCISES = with_keys()
FIRST, *OTHERS = EXERCISES


def report(course, **scores):
    """A report in which each student has that share of the first exercise's points and all of the others'."""
    results = []
    for student, share in scores.items():
        (course / "submitted" / student / "exercises").mkdir(parents=True, exist_ok=True)
        marks = [Mark(one.id, one.points, one.points, 1, 1) for one in OTHERS]
        marks.append(Mark(FIRST.id, (share or 0) * FIRST.points, FIRST.points, 0, 1, judged=share is not None))
        results.append(Result(student, sum(one.score for one in marks), 7.0, [], marks))
    return Report("none", results)


@pytest.fixture
def gradebook(tmp_path):
    class Opened:
        def __enter__(self):
            self.open = Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", COURSE_ID)
            return self.open

        def __exit__(self, *_):
            self.open.db.commit()
            self.open.close()

    return Opened


def scores(gradebook):
    with gradebook() as held:
        return {one.student.id: (one.score, one.max_score) for one in held.assignment_submissions("exercises")}


MOST = sum(one.points for one in EXERCISES)


def test_points_stand_in_the_gradebook_once_and_as_nbgrader_exports_them(tmp_path, gradebook):
    made = report(tmp_path, ada=1, ben=0.5)
    expected = {"ada": MOST, "ben": MOST - FIRST.points / 2}
    for _ in range(2):
        assert enter(tmp_path, made, EXERCISES) == expected
    assert scores(gradebook) == {student: (score, MOST) for student, score in expected.items()}
    with gradebook() as held:
        CsvExportPlugin(to=str(tmp_path / "grades.csv")).export(held)
    with open(tmp_path / "grades.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["student_id"], float(row["score"]), float(row["max_score"])) for row in rows} == {
        (student, score, MOST) for student, score in expected.items()
    }


def test_a_mark_by_hand_and_what_could_not_be_judged_keep_what_stands(tmp_path, gradebook):
    enter(tmp_path, report(tmp_path, ada=1, ben=1), EXERCISES)
    with gradebook() as held:
        held.find_grade(FIRST.id, "exercises", "exercises", "ada").manual_score = 0.25
    standing = enter(tmp_path, report(tmp_path, ada=0, ben=None, cai=None), EXERCISES)
    assert standing == {"ada": MOST - FIRST.points + 0.25, "ben": MOST, "cai": MOST - FIRST.points}
    with gradebook() as held:
        waiting = {one.student.id: one.needs_manual_grade for one in held.assignment_submissions("exercises")}
    assert waiting == {"ada": False, "ben": False, "cai": True}


def test_a_new_exercise_joins_and_other_points_stop_before_anything_is_written(tmp_path, gradebook):
    enter(tmp_path, report(tmp_path, ada=1), OTHERS)
    enter(tmp_path, report(tmp_path, ada=1), EXERCISES)
    assert scores(gradebook) == {"ada": (MOST, MOST)}
    dearer = [FIRST.model_copy(update={"points": 100.0}), *OTHERS]
    with pytest.raises(ExercisesError, match=r"worth .* in the gradebook and 100 here"):
        enter(tmp_path, report(tmp_path, ada=0, ben=1), dearer)
    assert scores(gradebook) == {"ada": (MOST, MOST)}


def test_who_handed_in_none_or_has_no_name_is_not_entered(tmp_path, gradebook):
    made = report(tmp_path, ada=1)
    made.results += [Result("quiz-only", 0.0, MOST), Result("<script>", 0.0, MOST)]
    assert set(enter(tmp_path, made, EXERCISES)) == {"ada"} == set(scores(gradebook))


def test_another_grader_or_a_file_that_is_no_gradebook_is_said(tmp_path):
    made = report(tmp_path, ada=1)
    with only_grader(tmp_path), pytest.raises(ExercisesError, match="wait until it has ended"):
        enter(tmp_path, made, EXERCISES)
    (tmp_path / "gradebook.db").write_bytes(b"no database" * 500)
    with pytest.raises(ExercisesError, match="were not written into the gradebook"):
        enter(tmp_path, made, EXERCISES)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EACCES])
def test_a_machine_without_a_process_to_give_is_no_fault_of_the_learner(monkeypatch, number):
    tried, waited = [], []

    def none(*_all, **_more):
        tried.append(1)
        raise OSError(number, "no process")

    monkeypatch.setattr(subprocess, "Popen", none)
    monkeypatch.setattr(sandbox.time, "sleep", waited.append)
    mark = judge(FIRST, "def f(): pass", "none")
    assert not mark.judged and mark.score == 0 and "no process could be started" in mark.notes[0]
    assert len(tried) == (1 if number == errno.EACCES else 3) == len(waited) + 1


def test_the_command_reports_a_learner_whose_code_could_not_run_and_grades_the_others(tmp_path, monkeypatch):
    from quizzes.exercises import grade as grading

    asked = []

    def run(source, function, arguments, level, *_more):
        asked.append(source)
        if "ada" in source:
            return sandbox.Outcome(level, ended="no process could be started", kind="machine")
        return sandbox.Outcome(level, [sandbox.Reply(None)] * len(arguments))

    monkeypatch.setattr(grading, "run", run)
    monkeypatch.setattr(grading, "isolation", lambda _accept: "none")
    for student in ("ada", "ben"):
        folder = tmp_path / "submitted" / student / "exercises"
        folder.mkdir(parents=True)
        source = f"# Exercise: {FIRST.id}\n# {student}"
        cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}]
        (folder / "exercises.ipynb").write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )
    done = CliRunner().invoke(app, ["exercises", "grade", "--course", str(tmp_path), "--json"])
    assert done.exit_code == 0 and len(asked) == 2, done.output
    results = {one["student"]: one for one in json.loads(done.stdout)["results"]}
    marks = {student: next(m for m in one["exercises"] if m["exercise"] == FIRST.id) for student, one in results.items()}
    assert not marks["ada"]["judged"] and "not judged" in marks["ada"]["notes"][0] and marks["ben"]["judged"]
