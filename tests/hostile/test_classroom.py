"""The class of sixty in one batch through the command: each graded or explained, nothing gained, nobody else touched."""

import csv
import json
import math
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from quizzes.nbgrader.course import COURSE_ID, CourseError, build_assignment, grade
from quizzes.printable import clean
from tests.hostile.classroom import ALTERED, FILES, ODD_ANSWERS, RIGHT, WRONG, hand_in, odd_folders, with_answers

HONEST = 12
# As root every folder can be read. Without the capabilities the owner's own bits count, as for any instructor.
GRADE = """
import os, sys
if os.getuid() == 0:
    from quizzes.exercises import kernel
    kernel.drop_capabilities()
from quizzes.cli import app
app()
"""


def _tree(course):
    """Every file of every student, whatever its rights: path -> bytes (links and pipes by kind)."""
    found = {}
    for folder, _, names in os.walk(os.fsencode(course / "submitted")):
        for name in names:
            path = os.path.join(folder, name)
            ordinary = os.path.isfile(path) and not os.path.islink(path)
            found[path] = Path(os.fsdecode(path)).read_bytes() if ordinary else os.lstat(path).st_mode
    return found


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """(results by name, what is expected of odd folders, course, the CSV's rows)."""
    course = tmp_path_factory.mktemp("a class à part")
    blank = json.loads(build_assignment(course, "01").read_bytes())
    right = json.dumps(with_answers(blank, RIGHT)).encode()
    for number in range(HONEST):
        hand_in(course, f"honest-{number}", right if number % 2 else json.dumps(with_answers(blank, WRONG)).encode())
    for name, (_, change) in ALTERED.items():
        notebook = with_answers(blank, RIGHT)
        hand_in(course, name, json.dumps(change(notebook) or notebook).encode())
    for name, source in ODD_ANSWERS.items():
        hand_in(course, f"odd-{name}", json.dumps(with_answers(blank, {**WRONG, "q1": source})).encode())
    for name, data in FILES.items():
        hand_in(course, name, data)
    hand_in(course, "renamed", right, "\x1b[2Jhonest-0: 3 of 3\n.ipynb")
    for name in ("Mina", "mina", "\uac00", "\u1100\u1161"):
        hand_in(course, name, right)
    clock = course / "a time of the instructor's.txt"  # in order, and still not the student's own file
    clock.write_text("2026-01-05 10:00")
    times = {
        "time-link": None,
        "time-long": b"2" * 10_000_000,
        "time-bytes": b"\xff\0",
        "time-zone": b"2026-01-05 10:00 ../etc",
    }
    for name, data in times.items():
        path = hand_in(course, name, right).with_name("timestamp.txt")
        path.symlink_to(clock) if data is None else path.write_bytes(data)
    said = odd_folders(course, right)
    before = _tree(course)
    command = [sys.executable, "-c", GRADE, "grade", "--course", str(course), "--csv", str(course / "scores.csv")]
    done = subprocess.run([*command, "--json"], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert b"Traceback" not in done.stderr
    for name in ("unreadable-folder/quiz-01", "unreadable-student"):
        (course / "submitted" / name).chmod(0o755)
    after = _tree(course)
    assert {path: data for path, data in after.items() if path in before} == before
    results = json.loads(done.stdout)["results"]
    with open(course / "scores.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    return {one["student"]: one for one in results}, said, course, lines


def test_every_folder_is_in_the_report_once(batch):
    results, said, course, _ = batch
    handed = {clean(name) for name in os.listdir(course / "submitted")}
    assert results.keys() == handed
    assert said.keys() <= results.keys()
    assert all(0 <= one["score"] <= one["max_score"] == 3 for one in results.values())


def test_the_honest_get_what_their_answers_are_worth(batch):
    for number in range(HONEST):
        assert batch[0][f"honest-{number}"] == {
            "student": f"honest-{number}", "score": 3.0 * (number % 2), "max_score": 3.0, "notes": [],
        }  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_file_is_worth_its_answers(batch, name):
    assert batch[0][name]["score"] == ALTERED[name][0]


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_an_odd_answer_earns_nothing(batch, name):
    assert batch[0][f"odd-{name}"]["score"] == 0


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_notebook_is_explained(batch, name):
    expected = 1.0 if name == "lone-surrogate" else 0.0  # its answer stands on a line that can be read
    assert batch[0][name]["score"] == expected and batch[0][name]["notes"]


def test_an_odd_folder_is_explained(batch):
    for name, told in batch[1].items():
        assert batch[0][name]["score"] == 0 and told in " ".join(batch[0][name]["notes"]), batch[0][name]


def test_names_that_look_the_same_are_pointed_at(batch):
    for name, other in (("Mina", "mina"), ("mina", "Mina"), ("\uac00", ascii("\u1100\u1161"))):
        assert any("looks the same" in note and other in note for note in batch[0][name]["notes"])


def test_a_time_that_cannot_be_read_is_said_and_costs_nothing(batch):
    for name in ("time-link", "time-long", "time-bytes", "time-zone"):
        assert batch[0][name]["score"] == 3 and "timestamp.txt cannot be read" in " ".join(batch[0][name]["notes"])


def test_no_word_of_a_learner_can_forge_a_line_or_a_formula(batch):
    results, _, course, lines = batch
    for one in results.values():
        assert all(text.isprintable() for text in (one["student"], *one["notes"]))
    assert len(lines) == len(results) + 1 and {len(line) for line in lines} == {4}
    assert all(not line[0].startswith(("=", "+", "-", "@", "\t")) for line in lines)
    told = subprocess.run(
        [sys.executable, "-c", GRADE, "grade", "--course", str(course)], capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 0
    assert [line for line in told.stdout.splitlines() if line.startswith("honest-0:")] == ["honest-0: 0 of 3"]


# student: (column of the gradebook, what is written there, what the student then has). All answers are wrong.
FORGED = {
    "ada": ("auto_score", 1e6, 0),
    "ben": ("auto_score", math.inf, 0),
    "cai": ("auto_score", -5.0, 0),
    "dov": ("manual_score", 1e6, 0),
    "eli": ("manual_score", math.inf, 0),
    "fay": ("extra_credit", 50.0, 0),
    "gus": ("extra_credit", 0.25, 0.75),  # what an instructor may give; it is told
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A course graded once: those of FORGED have everything wrong, "right" has everything right."""
    course = tmp_path_factory.mktemp("forged")
    blank = json.loads(build_assignment(course, "01").read_bytes())
    for student in (*FORGED, "right"):
        answers = RIGHT if student == "right" else WRONG
        hand_in(course, student, json.dumps(with_answers(blank, answers)).encode())
    grade(course, "01")
    return course


@contextmanager
def _gradebook(course):
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", COURSE_ID) as gradebook:
        yield gradebook
        gradebook.db.commit()


def test_what_was_written_into_the_gradebook_beforehand_earns_nothing_unseen(small):
    with _gradebook(small) as gradebook:
        for student, (column, value, _) in FORGED.items():
            for mark in gradebook.find_submission_notebook("quiz-01", "quiz-01", student).grades:
                setattr(mark, column, value)
    results = {one.student: one for one in grade(small, "01").results}
    for student, (column, _, score) in FORGED.items():
        told = " ".join(results[student].notes)
        assert results[student].score == score, student
        assert ("given by hand or extra credit" in told) == (column != "auto_score"), student
    assert results["right"].score == 3 and results["right"].notes == []


def test_a_question_worth_a_thousand_points_in_the_gradebook_stops_before_anybody_is_graded(small):
    with _gradebook(small) as gradebook:
        gradebook.find_notebook("quiz-01", "quiz-01").grade_cells[0].max_score = 1000
    with pytest.raises(CourseError, match=r"is worth 1000 points in the gradebook and 1 in the bank.*build again"):
        grade(small, "01")
    build_assignment(small, "01")
    assert {one.student: one.score for one in grade(small, "01").results}["right"] == 3
