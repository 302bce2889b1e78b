"""A class graded by receipts: what a receipt is worth, what is none, and that nobody stops the batch."""

import json

import pytest
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.nbgrader.course import build_assignment, grade
from quizzes.nbgrader.judged import Trust
from tests.hostile.classroom import hand_in, with_answers
from tests.hostile.receipts import CASES, CORRECT, DID, OLD_DID, RETIRED, receipt


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = tmp_path_factory.mktemp("receipts à part")
    blank = json.loads(build_assignment(course, "01").read_bytes())
    for student, (typed, more, _score, _note) in CASES.items():
        notebook = with_answers(blank, {name: repr(answer) for name, answer in typed.items()})
        path = hand_in(course, student, json.dumps(notebook).encode())
        more(path.parent)
    return course


@pytest.fixture(scope="module")
def graded_by_receipts(course):
    command = ["grade", "--course", str(course), "--json", "--issuer", DID, "--issuer", f"{OLD_DID} until {RETIRED}"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return {one["student"]: one for one in json.loads(done.stdout)["results"]}


@pytest.mark.parametrize("student", CASES)
def test_a_submission_is_worth_its_good_receipts(graded_by_receipts, student):
    _typed, _more, score, note = CASES[student]
    found = graded_by_receipts[student]
    assert found["score"] == score, found
    told = " ".join(found["notes"])
    assert all(text.isprintable() for text in found["notes"])
    assert note in told if note else not told.replace("neither a receipt that counts nor an answer for q1, q2, q3", ""), told


def test_many_bad_receipts_are_told_in_a_few_lines(graded_by_receipts):
    notes = graded_by_receipts["many"]["notes"]
    assert len(notes) < 15 and any("491 more receipts do not count" in note for note in notes)


def test_without_an_issuer_typed_answers_count_and_receipts_are_pointed_at(course):
    results = {one.student: one for one in grade(course, "01").results}
    assert results["honest"].score == 0 and "do not count without --issuer" in " ".join(results["honest"].notes)
    assert results["receipts thrown away"].score == 3


def test_typed_answers_can_be_let_in_where_no_receipt_counts(course):
    results = {one.student: one for one in grade(course, "01", trust=Trust({DID: None}, typed_too=True)).results}
    assert results["receipts thrown away"].score == 3
    assert results["typed beside a wrong one"].score == 0, "a receipt counts before what is typed"
    assert results["of another"].score == 0


def test_of_a_receipt_and_answers_in_conflict_the_receipt_counts(tmp_path):
    blank = json.loads(build_assignment(tmp_path, "01").read_bytes())
    blank["cells"] += [{"cell_type": "code", "source": f'answers["{n}"] = {a!r}'} for n in CORRECT for a in ("a", "b")]
    path = hand_in(tmp_path, "ada", json.dumps(blank).encode())
    (path.parent / "receipts.txt").write_text(receipt("ada"))
    (result,) = grade(tmp_path, "01", trust=Trust({DID: None}, typed_too=True)).results
    assert result.score == 1 and set(result.undecided) == {"q2", "q3"}
    (result,) = grade(tmp_path, "01", trust=Trust({DID: None})).results
    assert result.score == 1 and result.undecided == ()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--issuer", "did:key:zzz"], "did:key:zzz"),
        (["--issuer", f"{DID} until yesterday"], "is no time"),
        (["--issuer", f"{DID} until 2026-06-01T00:00"], "no time zone"),
        (["--typed-too"], "--issuer"),
    ],
)
def test_what_names_no_issuer_stops_before_anybody_is_graded(course, arguments, said):
    done = CliRunner().invoke(app, ["grade", "--course", str(course), *arguments])
    assert done.exit_code == 2 and said in done.stderr and not done.stdout
