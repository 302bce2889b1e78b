"""A class through nbgrader's own API: generate, submit, autograde, score in the gradebook. And what learners hand in."""

import base64
import json
import re

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.nbgrader.course import CourseError, build_assignment, grade
from quizzes.nbgrader.notebook import read_answers
from quizzes.question import graded

BANK = graded("01")
RIGHT = {"q1": "c", "q2": ["a", "c", "e"], "q3": "48 GB"}
PWNED = "open(PATH, 'w').write('run')"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A class of learners, honest and otherwise, graded once; every path has a space and an accent."""
    root = tmp_path_factory.mktemp("a class à part")
    released = build_assignment(root, "01")
    touched = root / "code of a learner ran"

    def submit(student, answers, change=None, name="quiz-01.ipynb", raw=None):
        notebook = json.loads(released.read_text())
        for cell in notebook["cells"]:
            source = "".join(cell["source"])
            for question, answer in answers.items():
                if source.startswith(f'answers["{question}"]'):
                    cell["source"] = f'answers["{question}"] = {answer!r}'
        if change is not None:
            notebook = change(notebook) or notebook
        path = root / "submitted" / student / "quiz-01" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(json.dumps(notebook).encode() if raw is None else raw)

    def code(source):
        return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None, "id": "x"}

    def flags(notebook):
        for cell in notebook["cells"]:
            if "nbgrader" in cell["metadata"]:
                cell["metadata"]["nbgrader"] |= {"points": 1000, "grade": True, "solution": True, "locked": False}
                cell["outputs"] = [
                    {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": "1000"}}
                ]

    def strip(notebook):
        for cell in notebook["cells"]:
            cell["metadata"] = {}

    submit("right", RIGHT)
    submit("wrong", {"q1": "a", "q2": "b, d", "q3": "96 GB"})
    submit("half", {"q1": "c", "q2": "a, c"})
    submit("untouched", {})
    submit("copied cell", RIGHT, lambda n: n["cells"].append(n["cells"][4]))
    submit("two answers", RIGHT, lambda n: n["cells"].append(code('answers["q1"] = "a"')))
    submit("deleted cells", RIGHT, lambda n: n.update(cells=[c for c in n["cells"] if "answers[" in "".join(c["source"])]))
    submit("lost metadata", RIGHT, strip)
    submit("edited flags", {"q1": "a"}, flags)
    submit(
        "attack",
        {"q1": "a"},
        lambda n: n["cells"].insert(0, code(PWNED.replace("PATH", repr(str(touched))) + "\nraise SystemExit")),
    )
    submit("syntax error", RIGHT, lambda n: n["cells"].append(code("def (")))
    submit("calls", {}, lambda n: n["cells"].append(code('answers["q1"] = str("c")')))
    submit("deep", {}, lambda n: n["cells"].append(code('answers["q1"] = ' + "[" * 5000 + "]" * 5000)))
    submit("odd values", {"q1": 3, "q2": {"a": 1}, "q3": [["48 GB"]]})
    submit("bytes", {"q1": b"c", "q2": {"a", "c", "e"}, "q3": "48 GB"})
    submit("renamed", RIGHT, name="quiz-01 (1).ipynb")
    submit(
        "old format",
        {},
        lambda n: {
            "nbformat": 3,
            "nbformat_minor": 0,
            "metadata": {},
            "worksheets": [
                {"cells": [{"cell_type": "code", "input": 'answers["q1"] = "c"', "outputs": [], "language": "python"}]}
            ],
        },
    )
    submit(
        "foreign kernel",
        RIGHT,
        lambda n: n["metadata"].update(kernelspec={"name": "julia", "display_name": "J", "language": "julia"}),
    )
    submit("broken", {}, raw=b'{"cells": [')
    submit("empty", {}, raw=b"")
    submit("a list", {}, raw=b"[1, 2]")
    submit("not text", {}, raw=bytes(range(256)))
    submit("nested", {}, raw=b"[" * 200_000)
    (root / "submitted" / "nothing" / "quiz-01").mkdir(parents=True)
    submit("late", RIGHT)
    (root / "submitted" / "late" / "quiz-01" / "timestamp.txt").write_text("2026-01-05T10:00:00+09:00")
    before = {p: p.read_bytes() for p in (root / "submitted").rglob("*") if p.is_file()}
    grades = grade(root, "01")
    assert before == {p: p.read_bytes() for p in (root / "submitted").rglob("*") if p.is_file()}
    return root, released, {result.student: result for result in grades.results}, touched


SCORES = {
    "right": 3, "wrong": 0, "half": 1 + 2 / 3, "untouched": 0, "copied cell": 3, "two answers": 2, "deleted cells": 3,
    "lost metadata": 3, "edited flags": 0, "attack": 0, "syntax error": 3, "calls": 0, "deep": 0, "odd values": 0, "bytes": 2,
    "renamed": 3, "old format": 1, "foreign kernel": 3, "broken": 0, "empty": 0, "a list": 0, "not text": 0, "nested": 0,
    "nothing": 0, "late": 3,
}  # fmt: skip


@pytest.mark.parametrize("student", SCORES)
def test_everybody_gets_what_the_answers_are_worth(course, student):
    _, _, results, _ = course
    assert results[student].score == pytest.approx(SCORES[student]) and results[student].max_score == 3


def test_nobody_is_left_out_and_the_gradebook_says_the_same(course):
    root, _, results, _ = course
    assert set(results) == set(SCORES)
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}", "offload-lab") as gradebook:
        for student, score in SCORES.items():
            submission = gradebook.find_submission("quiz-01", student)
            assert submission.score == pytest.approx(score)
            assert submission.needs_manual_grade == (student == "two answers")
        assert gradebook.find_submission("quiz-01", "late").timestamp.isoformat() == "2026-01-05T01:00:00"


def test_no_code_of_a_learner_ran(course):
    assert not course[3].exists()


@pytest.mark.parametrize(
    "student, said",
    [
        ("broken", "cannot be read"), ("nothing", "no notebook"), ("renamed", r"quiz-01 \(1\)\.ipynb was read instead"),
        ("two answers", r"conflict: q1 is answered differently in different cells"),
        ("half", "no answer to q3"), ("a list", "no notebook"),
    ],
)  # fmt: skip
def test_the_instructor_is_told(course, student, said):
    assert re.search(said, " ".join(course[2][student].notes))


def test_no_key_is_in_what_learners_receive(course):
    """A canary: every explanation, and every flag of a key, in plain text, as JSON and in base64."""
    released = course[1].read_bytes()
    for path in course[1].parent.rglob("*"):
        data = path.read_bytes()
        for question in BANK.questions:
            parts = [question.explanation, *(c.explanation for c in question.choices), *(t.explanation for t in question.traps)]
            numbers = [str(question.value.number())] if question.value else []
            misconceptions = [c.misconception for c in (*question.choices, *question.traps) if c.misconception]
            for secret in filter(None, [*parts, *numbers, *misconceptions, '"correct"', "misconception"]):
                for form in (secret.encode(), json.dumps(secret)[1:-1].encode(), base64.b64encode(secret.encode())[:-4]):
                    assert form not in data, secret
    for question in BANK.questions:
        assert json.dumps(question.prompt)[1:40].encode() in released


def test_grading_again_gives_the_same(course):
    root, _, results, _ = course
    assert {r.student: r.score for r in grade(root, "01").results} == {s: r.score for s, r in results.items()}


def test_the_commands(course, tmp_path):
    runner = CliRunner()
    told = runner.invoke(app, ["grade", "--course", str(course[0]), "--json"])
    assert told.exit_code == 0
    entry = next(r for r in json.loads(told.stdout)["results"] if r["student"] == "right")
    assert entry == {"student": "right", "score": 3.0, "max_score": 3.0, "notes": []}
    refused = runner.invoke(app, ["grade", "--course", str(tmp_path)])
    assert refused.exit_code == 2 and "offload-quiz build first" in refused.stderr
    assert runner.invoke(app, ["build", "--course", str(tmp_path), "--lesson", "99"]).exit_code == 2


def test_who_passes_gets_a_certificate_and_who_does_not_does_not(course, tmp_path):
    runner = CliRunner(env={"OFFLOAD_QUIZ_PASSPHRASE": "of this test"})
    results = tmp_path / "results.json"
    results.write_text(runner.invoke(app, ["grade", "--course", str(course[0]), "--json"]).stdout)
    key, out = tmp_path / "issuer.key", tmp_path / "out"
    assert runner.invoke(app, ["certificate", "keygen", "--out", str(key)]).exit_code == 0
    issue = ["certificate", "issue", "--key", str(key), "--results", str(results), "--lesson", "01", "--out", str(out)]
    refused = runner.invoke(app, [*issue, "--student", "half"])
    assert refused.exit_code == 2 and not list(out.glob("*"))
    assert runner.invoke(app, [*issue, "--student", "right"]).exit_code == 0
    for path in out.iterdir():
        verify = ["certificate", "verify", str(path), "--issuer", f"{key}.pub"]
        assert runner.invoke(app, verify).exit_code == 0
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        assert runner.invoke(app, verify).exit_code == 1


def test_without_submissions_or_assignment_the_instructor_is_told(tmp_path):
    with pytest.raises(CourseError, match="run offload-quiz build first"):
        grade(tmp_path, "01")
    build_assignment(tmp_path, "01")
    with pytest.raises(CourseError, match="nobody has submitted"):
        grade(tmp_path, "01")


def test_a_file_of_a_gigabyte_is_not_read(tmp_path):
    path = tmp_path / "huge.ipynb"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    assert read_answers(path, BANK.questions)[0] == {} and "was not read" in read_answers(path, BANK.questions)[1][0]
