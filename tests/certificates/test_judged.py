"""A certificate says "judged by the service" only where the service's receipts bear its score."""

import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quizzes.certificates import did_key, ed25519
from quizzes.question import BankError, graded
from quizzes.receipts import Claims, answer_hash, sign
from tests.certificates.issuing_place import make_place, run

JUDGE, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes(range(start, start + 32))) for start in (0, 1))
DID = did_key.did_of(ed25519.public_key(JUDGE))


@pytest.fixture
def questions():
    try:
        return graded("01").questions
    except BankError as error:
        pytest.skip(f"needs the graded questions: {error}")


@pytest.fixture
def place(tmp_path, monkeypatch, questions):
    monkeypatch.setenv("OFFLOAD_QUIZ_PASSPHRASE", "for the tests")
    made = make_place(tmp_path)
    most = sum(question.points for question in questions)
    entry = {"student": "ada", "score": most, "max_score": most, "notes": []}
    (tmp_path / "results.json").write_text(json.dumps({"assignment": "quiz-01", "results": [entry]}))
    return made.path


def claims(question, number, **changes):
    made = Claims(
        "ada", "0" * 32, question.id, "", answer_hash("c"), question.points, question.points, 1, "2026-12-02T22:38:41.123456Z",
        f"n{number}",
    )  # fmt: skip
    return replace(made, **changes)


def issue(place, lines, *more):
    (place / "receipts.txt").write_text("\n".join(lines))
    common = ("--key", place / "key", "--registry", place / "reg", "--out", place / "out", "--student", "ada", "--lesson", "01")
    return run("issue", *common, "--results", place / "results.json", "--assessment", "service", *more)


def with_receipts(place, lines):
    return issue(place, lines, "--receipts", place / "receipts.txt", "--judge", DID)


def test_receipts_for_every_point_are_enough(place, questions):
    lines = [sign(claims(question, number), JUDGE) for number, question in enumerate(questions)]
    done = with_receipts(place, ["# what the notebook carried", *lines])
    assert done.exit_code == 0, done.output
    (document,) = (json.loads(path.read_text()) for path in (place / "out").glob("*.json"))
    assert "service" in [evidence.get("genre") for evidence in document["evidence"]]


@pytest.mark.parametrize(
    "spoil, told",
    [
        (lambda lines, made: lines[:-1], "are worth"),
        (lambda lines, made: [*lines[:-1], lines[0]], "are worth"),
        (lambda lines, made: [sign(each, OTHER) for each in made], "are worth 0 points"),
        (lambda lines, made: [sign(replace(each, learner="bob"), JUDGE) for each in made], "are worth 0 points"),
        (lambda lines, made: [line[:-4] + "AAAA" for line in lines], "are worth 0 points"),
        (lambda lines, made: [], "are worth 0 points"),
    ],
    ids=["one is missing", "one is there twice", "of another judge", "of another learner", "altered", "none"],
)
def test_receipts_that_do_not_bear_the_score_stop_it(spoil, told, place, questions):
    made = [claims(question, number) for number, question in enumerate(questions)]
    done = with_receipts(place, spoil([sign(each, JUDGE) for each in made], made))
    assert done.exit_code == 2 and told in done.output and "Nothing was written" in done.output
    assert not list(place.glob("out/*"))


@pytest.mark.parametrize("more", [(), ("--judge", DID)])
def test_without_receipts_or_judge_nothing_names_the_service(more, place):
    done = issue(place, [], *more)
    assert done.exit_code == 2 and "needs --receipts and --judge" in done.output


def test_a_judge_that_is_no_name_is_said(place, questions):
    lines = [sign(claims(question, number), JUDGE) for number, question in enumerate(questions)]
    done = issue(place, lines, "--receipts", place / "receipts.txt", "--judge", "did:key:nobody")
    assert done.exit_code == 2 and "--judge" in done.output
