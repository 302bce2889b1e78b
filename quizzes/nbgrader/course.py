"""A course folder: make an assignment, grade a class, read the scores. One bad submission never stops the others."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, LimitOutput, SaveAutoGrades
from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from quizzes.nbgrader.judge import JudgeAnswers
from quizzes.nbgrader.notebook import assignment_name, build, filled, read_answers, write
from quizzes.question import Bank, graded

COURSE_ID = "offload-lab"
CLEANED = "cleaned"  # what nbgrader grades: fresh notebooks with the learners' answers


class CourseError(RuntimeError):
    """The instructor has to do something; the message says what."""


@dataclass
class Result:
    """One student's score, and what the instructor should know about the submission."""

    student: str
    score: float
    max_score: float
    notes: list[str] = field(default_factory=list)


@dataclass
class Grades:
    assignment: str
    results: list[Result]

    def to_json(self) -> dict[str, Any]:
        return {"assignment": self.assignment, "results": [asdict(result) for result in self.results]}


def _api(course: Path) -> NbGraderAPI:
    # nbgrader calls `alembic` by its bare name; it lies beside the interpreter, also where no environment was activated.
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    config = Config()
    config.CourseDirectory.root = str(course.resolve())
    config.CourseDirectory.course_id = COURSE_ID
    config.CourseDirectory.submitted_directory = CLEANED
    config.CourseDirectory.db_url = f"sqlite:///{course.resolve() / 'gradebook.db'}"
    # Without a root of its own nbgrader would look for an exchange folder of the whole machine.
    config.Exchange.root = str(course.resolve() / "exchange")
    config.Autograde.autograde_preprocessors = [
        JudgeAnswers,
        LimitOutput,
        SaveAutoGrades,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    return NbGraderAPI(CourseDirectory(config=config), config=config)


def build_assignment(course: Path, lesson: str) -> Path:
    """Make source and release of a lesson's quiz under `course`; return the notebook to hand out.

    Raises BankError without the keys, CourseError when nbgrader refuses.
    """
    bank = graded(lesson)
    name = assignment_name(bank)
    write(build(bank), course / "source" / name / f"{name}.ipynb")
    done = _api(course).generate_assignment(name)
    released = course / "release" / name / f"{name}.ipynb"
    if not done.get("success") or not released.exists():
        raise CourseError(f"nbgrader did not make {name}: {done.get('error') or done.get('log', '')[-800:]}")
    return released


def grade(course: Path, lesson: str) -> Grades:
    """Grade every submission in `course/submitted/<student>/quiz-<lesson>/` through nbgrader's gradebook.

    Submitted files are only read. What can't be read scores nothing and is named in the student's notes. Raises CourseError
    where the assignment was never built or nobody has submitted.
    """
    bank = graded(lesson)
    name = assignment_name(bank)
    if not (course / "release" / name).is_dir():
        raise CourseError(f"{name} was not built in {str(course)!r}; run offload-quiz build first")
    folders = sorted(path for path in (course / "submitted").glob(f"*/{name}") if path.is_dir())
    if not folders:
        raise CourseError(f"nobody has submitted: there is no {course / 'submitted'!s}/<student>/{name}/")
    api = _api(course)
    results = []
    for folder in folders:
        student = folder.parent.name
        notes = _clean(course, bank, student, folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its own session
            done = api.autograde(name, student)
        if not done.get("success"):
            notes.append(f"nbgrader could not grade it: {(done.get('error') or done.get('log', ''))[-400:].strip()}")
        results.append(_score(api, name, student, bank, notes))
    return Grades(name, results)


def _clean(course: Path, bank: Bank, student: str, folder: Path) -> list[str]:
    """Write the fresh notebook that is graded for a student; return notes."""
    name = assignment_name(bank)
    expected = folder / f"{name}.ipynb"
    notes: list[str] = []
    if not expected.is_file():
        others = sorted(path for path in folder.glob("*.ipynb") if path.is_file())
        if others:
            notes.append(f"{expected.name} is missing; {others[0].name} was read instead")
            expected = others[0]
    if expected.is_file():
        answers, more = read_answers(expected, bank.questions)
        notes += more
    else:
        answers = {}
        notes.append(f"there is no notebook in the submission; {name}.ipynb was expected")
    target = course / CLEANED / student / name
    shutil.rmtree(target, ignore_errors=True)
    write(filled(bank, answers), target / f"{name}.ipynb")
    notes += _timestamp(folder, target)
    return notes


def _timestamp(folder: Path, target: Path) -> list[str]:
    """Carry the time of submission over, as the naive UTC that nbgrader's database wants."""
    source = folder / "timestamp.txt"
    if not source.is_file():
        return []
    try:
        text = source.read_text(encoding="utf-8").strip()
        when = datetime.fromisoformat(text.removesuffix(" UTC").replace("Z", "+00:00"))
    except (OSError, ValueError):
        return ["timestamp.txt cannot be read; the submission counts as on time"]
    if when.tzinfo is not None:
        when = when.astimezone(UTC).replace(tzinfo=None)
    (target / "timestamp.txt").write_text(f"{when.isoformat(sep=' ')} UTC", encoding="utf-8")
    return []


def _score(api: NbGraderAPI, name: str, student: str, bank: Bank, notes: list[str]) -> Result:
    from nbgrader.api import MissingEntry

    most = sum(question.points for question in bank.questions)
    with api.gradebook as gradebook:
        try:
            submission = gradebook.find_submission(name, student)
        except MissingEntry:
            return Result(student, 0.0, most, notes)
        return Result(student, float(submission.score), float(submission.max_score), notes)
