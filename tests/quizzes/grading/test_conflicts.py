"""Copies of an answer that differ: nothing is chosen, nothing is lost, and the instructor's mark decides."""

import json

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.nbgrader.course import COURSE_ID, build_assignment, grade
from quizzes.nbgrader.notebook import read
from quizzes.question import graded
from tests.hostile.classroom import RIGHT, code, hand_in, with_answers

QUESTIONS = graded("01").questions


def notebook_of(path, *cells):
    path.write_text(json.dumps({"cells": [code(cell) for cell in cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('answers["q1"] = "c"', 'answers["q1"] = " C "'),
        ('answers["q2"] = "a, c, e"', 'answers["q2"] = ["e", "c", "a", "a"]'),
        ('answers["q3"] = "48 GB"', "answers['q3'] = '48  gb'"),
        ('answers["q1"] = ""', 'answers["q1"] = "c"'),
        ('answers["q1"] = "  "', 'answers["q1"] = "c"'),
        ('answers["q1"] = "zz"', 'answers["q1"] = "zz"'),
    ],
)
def test_one_answer_written_twice_is_one_answer(tmp_path, one, other):
    for cells in ((one, other), (other, one)):
        found = read(notebook_of(tmp_path / "n.ipynb", *cells), QUESTIONS)
        assert not found.conflicts and not found.notes and len(found.answers) == 1


@pytest.mark.parametrize(
    "other", ['"a"', '["c", "a"]', "1", "True", "None", '{"c": "c"}', '"zz"', '"\\u202e\\x1b[2J"', "0x" + "f" * 9000]
)
def test_two_answers_are_a_conflict_in_any_order(tmp_path, other):
    cells = ['answers["q1"] = "c"', f'answers["q1"] = {other}', 'answers["q1"] = "c"']
    for order in (cells, cells[::-1], [cells[1], cells[0]]):
        found = read(notebook_of(tmp_path / "n.ipynb", *order), QUESTIONS)
        assert "q1" not in found.answers and len(found.conflicts["q1"]) == 2
        assert '"c"' in found.notes[0] and found.notes[0].isprintable()


def test_inside_one_cell_the_last_counts_and_it_is_said(tmp_path):
    path = notebook_of(tmp_path / "n.ipynb", 'answers["q1"] = "a"\nanswers["q1"] = "c"')
    found = read(path, QUESTIONS)
    assert found.answers == {"q1": "c"} and "in one cell" in found.notes[0] and not found.conflicts


def test_a_conflict_waits_for_a_mark_by_hand_which_a_regrade_keeps(tmp_path):
    blank = json.loads(build_assignment(tmp_path, "01").read_bytes())
    conflicted = with_answers(blank, RIGHT)
    conflicted["cells"].append(code('answers["q1"] = "a"'))
    hand_in(tmp_path, "ada", json.dumps(conflicted).encode())
    hand_in(tmp_path, "ben", json.dumps(with_answers(blank, RIGHT)).encode())
    command = ["grade", "--course", str(tmp_path)]
    told = CliRunner().invoke(app, [*command, "--json"])
    report = json.loads(told.stdout)
    assert told.exit_code == 0 and "formgrader: ada: q1" in told.stderr
    assert report["conflicts"] == [{"student": "ada", "question": "q1", "answers": ["c", "a"], "decided": False}]
    assert [one["score"] for one in report["results"]] == [2, 3]
    graded_notebook = (tmp_path / "autograded" / "ada" / "quiz-01" / "quiz-01.ipynb").read_text()
    assert r"\"c\"" in graded_notebook and r"\"a\"" in graded_notebook

    def marks():
        with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", COURSE_ID) as gradebook:
            submission = gradebook.find_submission("quiz-01", "ada")
            (mark,) = [mark for mark in submission.notebooks[0].grades if mark.name == QUESTIONS[0].id]
            return submission.needs_manual_grade, mark.auto_score, mark.score

    assert marks() == (True, None, 0)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", COURSE_ID) as gradebook:
        gradebook.find_grade(QUESTIONS[0].id, "quiz-01", "quiz-01", "ada").manual_score = 0.5
        gradebook.db.commit()
    again = CliRunner().invoke(app, [*command, "--json"])
    report = json.loads(again.stdout)
    assert report["results"][0]["score"] == 2.5 and report["conflicts"][0]["decided"] and again.stderr == ""
    assert marks() == (False, None, 0.5)
    # Handed in anew without the copy: the answer is judged, and the mark by hand still stands above it.
    hand_in(tmp_path, "ada", json.dumps(with_answers(blank, RIGHT)).encode())
    assert grade(tmp_path, "01").results[0].score == 2.5 and marks()[1] == 1
