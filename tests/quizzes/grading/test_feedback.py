"""Pages of feedback: one's own answers and what they have earned, as text, of what was graded last."""

import json
import os
import stat
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from nbgrader.api import Gradebook
from nbgrader.preprocessors import SaveAutoGrades
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.grading import judge
from quizzes.nbgrader.course import COURSE_ID, build_assignment, grade
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.feedback import Part, path_of, render
from quizzes.nbgrader.told import told
from tests.hostile.classroom import RIGHT, WRONG, code, hand_in, with_answers

BANK = handed_out("01")
SCRIPT = '"<script>alert(1)</script> **bold** [x](javascript:1) </p>&lt; \\u202e\\x1b[2J ${7*7} {{7*7}}"'


class Tags(HTMLParser):
    """The names of all elements, and all text."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.said, self.attributes = set(), [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.said.append(data)


PLAIN = {"html", "head", "meta", "title", "body", "h1", "h2", "p", "bdi"}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = tmp_path_factory.mktemp("feedback à part")
    blank = json.loads(build_assignment(course, "01").read_bytes())
    handed = {
        "right": RIGHT,
        "wrong": WRONG,
        "blank": {},
        "script": {**WRONG, "q1": SCRIPT, "q2": '["<img src=x onerror=alert(1)>"]', "q3": '"CANARY-OF-SCRIPT"'},
    }
    for student, answers in handed.items():
        hand_in(course, student, json.dumps(with_answers(blank, answers)).encode())
    copies = with_answers(blank, RIGHT)
    copies["cells"].append(code('answers["q1"] = "<b>a"'))
    hand_in(course, "copies", json.dumps(copies).encode())
    rows = ["id,name", *handed, "copies", 'ada-of-the-list,"<img src=a onerror=alert(1)>"']
    rows[1] = "right,Åda <script>alert(2)</script>\u202e"
    (course / "students.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    grade(course, "01")
    return course


def page_of(course, student):
    return path_of(course, "quiz-01", student).read_text(encoding="utf-8")


@pytest.mark.parametrize("student", ["right", "wrong", "blank", "script", "copies"])
def test_no_word_of_a_learner_is_markup(course, student):
    page = page_of(course, student)
    tags = Tags(page)
    assert tags.seen <= PLAIN and set(tags.attributes) <= {"lang", "charset", "http-equiv", "content", "name"}
    assert "default-src 'none'" in page
    assert all(character.isprintable() or character == "\n" for character in page)


def test_an_answer_and_a_name_are_shown_as_they_were_typed(course):
    assert any(
        "<script>alert(1)</script> **bold** [x](javascript:1) </p>&lt;" in said for said in Tags(page_of(course, "script")).said
    )
    assert any("Åda <script>alert(2)</script>" in said for said in Tags(page_of(course, "right")).said)
    assert any('"c"; "<b>a"' in said for said in Tags(page_of(course, "copies")).said)


def test_a_page_tells_no_more_of_the_key_than_the_answers_have_earned(course):
    right = [choice.explanation for question in BANK.questions for choice in question.choices if choice.correct]
    right += [question.explanation for question in BANK.questions if question.explanation]
    for student in ("wrong", "blank", "script"):
        said = " ".join(Tags(page_of(course, student)).said)
        for secret in right:
            assert " ".join(secret.split())[:60] not in said, (student, secret)
    blank = " ".join(Tags(page_of(course, "blank")).said)
    for question in BANK.questions:
        for part in (*question.choices, *question.traps):
            assert " ".join(part.explanation.split())[:40] not in blank
    assert blank.count("Not answered.") == len(BANK.questions)
    assert " ".join(BANK["q3"].explanation.split())[:40] in " ".join(Tags(page_of(course, "right")).said)


def _some_wrong_answers(question):
    yield from (choice.id for choice in question.choices if not choice.correct)
    if question.kind == "several":
        yield from ([choice.id] for choice in question.choices)
    if question.steps:
        yield [step.id for step in question.steps][::-1]
    if question.pairs:
        options = list(question.options())
        yield {pair.id: options[number % len(options)] for number, pair in enumerate(question.pairs)}
    if question.right:
        yield "1"


@pytest.mark.parametrize("lesson", [f"{number:02}" for number in range(13)])
def test_of_no_question_of_the_course_a_wrong_answer_is_told_what_is_right(lesson):
    for question in handed_out(lesson).questions:
        secrets = [choice.explanation for choice in question.choices if choice.correct]
        secrets += [pair.explanation for pair in question.pairs]
        secrets += [question.explanation] if question.explanation else []
        for answer in _some_wrong_answers(question):
            verdict = judge(question, answer)
            if verdict.correct:
                continue
            said = told(question, verdict, answer)
            assert not [secret for secret in secrets if secret in said], (question.id, answer)


def test_nobody_sees_another_and_only_the_instructor_reads_the_files(course):
    for student in ("right", "wrong", "blank", "copies"):
        assert "CANARY-OF-SCRIPT" not in page_of(course, student) and "alert(1)" not in page_of(course, student)
    path = path_of(course, "quiz-01", "right")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent, course / "feedback"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not path_of(course, "quiz-01", "ada-of-the-list").exists()
    assert [name for _, _, names in os.walk(course / "feedback") for name in names] == ["quiz-01.html"] * 5


def test_the_page_is_of_what_was_graded_last(tmp_path, monkeypatch):
    """Blank, then answered: nothing of the blank one is left. A mark by hand shows. A failed regrade leaves the page."""
    blank = json.loads(build_assignment(tmp_path, "01").read_bytes())
    hand_in(tmp_path, "ada", json.dumps(blank).encode())
    grade(tmp_path, "01")
    first = page_of(tmp_path, "ada")
    assert "Not answered." in first and "ada, quiz-01: 0 of 3" in first
    hand_in(tmp_path, "ada", json.dumps(with_answers(blank, RIGHT)).encode())
    runner, command = CliRunner(), ["feedback", "--course", str(tmp_path)]
    stale = runner.invoke(app, command)
    assert stale.exit_code == 0 and "ada: what lies in the submission now is not what was graded" in stale.stderr
    assert "ada, quiz-01: 0 of 3" in page_of(tmp_path, "ada")
    grade(tmp_path, "01")
    second = page_of(tmp_path, "ada")
    assert "Not answered." not in second and "ada, quiz-01: 3 of 3" in second
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", COURSE_ID) as gradebook:
        gradebook.find_grade(BANK.questions[0].id, "quiz-01", "quiz-01", "ada").manual_score = 0.25
        gradebook.db.commit()
    done = runner.invoke(app, command)
    assert (
        done.exit_code == 0 and done.stderr == "" and str(path_of(tmp_path, "quiz-01", "ada")) in done.stdout.replace("\n", "")
    )
    third = page_of(tmp_path, "ada")
    assert "ada, quiz-01: 2.25 of 3" in third and "gave these points by hand" in third
    hand_in(tmp_path, "ada", json.dumps(blank).encode())

    def failing(*_all):
        raise RuntimeError("the disk broke")

    monkeypatch.setattr(SaveAutoGrades, "_add_score", failing)
    (result,) = grade(tmp_path, "01").results
    assert result.score == 2.25 and "earlier score stands" in " ".join(result.notes)
    assert page_of(tmp_path, "ada") == third


def test_feedback_before_anything_was_graded_says_so(tmp_path):
    build_assignment(tmp_path, "01")
    done = CliRunner().invoke(app, ["feedback", "--course", str(tmp_path)])
    assert done.exit_code == 2 and "run offload-quiz grade first" in done.stderr


def test_a_page_says_whose_time_it_is():
    parts = [Part("q1", "Which?", "", 0.0, 1.0, False, True, "")]
    now = datetime(2026, 12, 24, 23, 0, tzinfo=UTC)
    page = render("quiz-01", "Ada", 0.0, 1.0, parts, ["late"], datetime(2026, 12, 24, 22, 0), "Asia/Seoul", now)
    assert "2026-12-25 07:00 +09:00 (Asia/Seoul)" in page and "has yet to decide" in page and "Your answer: none" in page
