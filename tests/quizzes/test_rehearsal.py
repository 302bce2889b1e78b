"""The made-up class, and the rehearsal in the instructor's guide as it stands there."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quizzes.cli import app
from quizzes.grading import judge
from quizzes.nbgrader import rehearsal
from quizzes.nbgrader.course import CourseError
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.notebook import build, read
from quizzes.question import every

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "instructor.md"
LESSONS = sorted({bank.lesson for path, bank in every().items() if path.parent.name == "keys"})


@pytest.fixture
def course(tmp_path):
    """A course folder in which the quiz of lesson 1 was released."""
    released = tmp_path / "une classe" / "release" / "quiz-01" / "quiz-01.ipynb"
    released.parent.mkdir(parents=True)
    released.write_text(json.dumps(build(handed_out("01"))), encoding="utf-8")
    return tmp_path / "une classe"


@pytest.mark.parametrize("lesson", LESSONS)
def test_right_is_right_and_first_is_understood(lesson):
    for question in handed_out(lesson).questions:
        assert judge(question, rehearsal.right(question)).correct, question.id
        assert judge(question, rehearsal.first(question)).understood, question.id


def test_four_hand_in(course):
    told = rehearsal.hand_in(course, "01")
    assert len(told) == 4 and all(name.startswith(rehearsal.PREFIX) for name in told)
    questions = handed_out("01").questions

    def answers(name):
        return read(course / "submitted" / f"rehearsal-{name}" / "quiz-01" / "quiz-01.ipynb", questions)

    assert set(answers("ada").answers) == {question.name for question in questions}
    assert set(answers("cleo").answers) == {question.name for question in questions[::2]}
    assert answers("dan").answers == {} and answers("dan").notes


def test_again_it_is_the_same_class(course):
    rehearsal.hand_in(course, "01")
    before = {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}
    rehearsal.hand_in(course, "01")
    assert {path: path.read_bytes() for path in course.rglob("*") if path.is_file()} == before


def test_it_never_mixes_with_people(course):
    (course / "submitted" / "zoé\x1b[2J" / "quiz-01").mkdir(parents=True)
    with pytest.raises(CourseError, match=r"has submissions of people .*nothing was written"):
        rehearsal.hand_in(course, "01")
    assert [path.name for path in (course / "submitted").iterdir()] == ["zoé\x1b[2J"]


@pytest.mark.parametrize("arguments, said", [(["--lesson", "02"], "Build it first"), (["--lesson", "77"], "77")])
def test_what_is_not_there_is_said(course, arguments, said):
    done = CliRunner().invoke(app, ["rehearse", "--course", str(course), *arguments])
    assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output


def test_a_file_in_the_place_of_a_folder_is_said(course):
    (course / "submitted").write_text("x")
    done = CliRunner().invoke(app, ["rehearse", "--course", str(course)])
    assert done.exit_code == 2 and "submitted" in done.output and "Traceback" not in done.output


def commands():
    """The lines of the rehearsal, as (command, a failure is right)."""
    text = GUIDE.read_text(encoding="utf-8").split("## A rehearsal in ten minutes")[1]
    (block, *_rest) = re.findall(r"(?:^    .+\n)+", text, re.M)
    for line in block.splitlines():
        command, _, otherwise = re.sub(r"\s{2,}#.*$", "", line).strip().partition(" || ")
        yield command, bool(otherwise)


def expanded(arguments, folder):
    """Words as the shell makes them: quotes, patterns, `$(…)`."""
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {arguments}"], cwd=folder, capture_output=True, timeout=60, check=True
    )
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="the guide is written for a shell, and there is no bash here")
def test_the_rehearsal_runs_as_it_is_written(tmp_path, monkeypatch):
    folder = tmp_path / "à l'école" / "rehearsal"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    said, lines = {}, list(commands())
    assert len(lines) > 12 and lines[0][0] == "mkdir rehearsal && cd rehearsal"
    for command, fails in lines:
        if command.startswith("offload-quiz "):
            arguments, _, target = command.removeprefix("offload-quiz ").partition(" > ")
            words = expanded(arguments, folder)
            done = CliRunner().invoke(app, words)
            assert (done.exit_code != 0) == fails, f"{command}\n{done.output}"
            said.setdefault(" ".join(words[:2]), []).append(done.output)
            if target:
                (folder / target).write_text(done.stdout, encoding="utf-8")
        elif command.startswith("export "):
            name, value = expanded(command.removeprefix("export "), folder)[0].split("=")
            monkeypatch.setenv(name, value)
        elif command.startswith("sed "):
            subprocess.run(["bash", "-c", command], cwd=folder, check=True, timeout=60)
    assert [output.split(":")[0] for output in said["certificate verify"]] == ["VALID", "ALTERED", "REVOKED"]
    assert "rehearsal-ada" in said["grade --course"][0] and "cannot be read as a notebook" in said["grade --course"][0]
    results = json.loads((folder / "results.json").read_text())["results"]
    scores = {result["student"]: result["score"] for result in results}
    assert scores["rehearsal-ada"] == results[0]["max_score"] and scores["rehearsal-dan"] == 0
    assert (folder / "report.html").stat().st_size > 1000 and (folder / "scores.csv").exists()
    assert (folder / "class/feedback/rehearsal-cleo/quiz-01/quiz-01.html").exists()
    assert os.getcwd() == str(folder)


def test_links_of_the_guides_lead_somewhere():
    for guide in GUIDE.parent.glob("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", guide.read_text(encoding="utf-8")):
            file, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = (GUIDE.parent / file) if file else guide
            assert path.exists(), f"{guide.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
                assert anchor in {re.sub(r"[^\w\- ]", "", title).replace(" ", "-").lower() for title in headings}, target
