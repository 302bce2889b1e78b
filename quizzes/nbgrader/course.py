"""A course folder: make an assignment, grade a class, read the scores. One bad submission never stops the others."""

from __future__ import annotations

import math
import os
import shutil
import sys
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, LimitOutput, SaveAutoGrades
from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.folder import Handed, handed_in, notebook_in, timestamp_in
from quizzes.nbgrader.judge import JudgeAnswers, questions_of
from quizzes.nbgrader.notebook import assignment_name, build, filled, read_answers, write
from quizzes.nbgrader.roster import is_safe, read_roster
from quizzes.nbgrader.session import LockedError, one_gradebook, only_grader
from quizzes.nbgrader.times import to_utc
from quizzes.printable import clean
from quizzes.question import Bank
from quizzes.say import _

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


def _api(course: Path, db_url: str | None = None) -> NbGraderAPI:
    # nbgrader calls `alembic` by its bare name; it lies beside the interpreter, also where no environment was activated.
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    config = Config()
    config.CourseDirectory.root = str(course.resolve())
    config.CourseDirectory.course_id = COURSE_ID
    config.CourseDirectory.submitted_directory = CLEANED
    config.CourseDirectory.db_url = db_url or f"sqlite:///{course.resolve() / 'gradebook.db'}"
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
    bank = handed_out(lesson)
    name = assignment_name(bank)
    write(build(bank), course / "source" / name / f"{name}.ipynb")
    done = _api(course).generate_assignment(name)
    released = course / "release" / name / f"{name}.ipynb"
    if not done.get("success") or not released.exists():
        raise CourseError(f"nbgrader did not make {name}: {done.get('error') or done.get('log', '')[-800:]}")
    return released


def grade(course: Path, lesson: str, students: Path | None = None, db_url: str | None = None) -> Grades:
    """Grade every submission in `course/submitted/<student>/quiz-<lesson>/` through nbgrader's gradebook.

    Submitted files are only read. What can't be read scores nothing and is named in the student's notes. `students` is the
    class list (CSV with a column id; `course/students.csv` where it exists): who is not on it is not graded, and named.
    Raises CourseError where the assignment was never built, nobody has submitted or another grader is at work, RosterError
    for a class list that cannot be read.
    """
    bank = handed_out(lesson)
    name = assignment_name(bank)
    if not (course / "release" / name).is_dir():
        raise CourseError(f"{name} was not built in {str(course)!r}; run offload-quiz build first")
    handed = handed_in(course / "submitted", name)
    if not handed:
        raise CourseError(f"nobody has submitted: there is no {course / 'submitted'!s}/<student>/{name}/")
    listed = students or course / "students.csv"
    roster = read_roster(listed) if students is not None or listed.is_file() else None
    api = _api(course, db_url)
    results = []
    questions_of.cache_clear()
    try:
        with only_grader(course), one_gradebook(api.coursedir.db_url, COURSE_ID) as gradebook:
            _check_points(gradebook, bank)
            for one in handed:
                results.append(_one(course, bank, api, gradebook, one, roster))
    except LockedError as error:
        raise CourseError(str(error)) from None
    return Grades(name, results)


def _one(
    course: Path, bank: Bank, api: NbGraderAPI, gradebook: Gradebook, handed: Handed, roster: frozenset[str] | None
) -> Result:
    """One student, graded or explained."""
    student = handed.student
    most = sum(question.points for question in bank.questions)
    why = handed.refused
    if not is_safe(student):
        why = _("the folder's name is no student id")
    elif roster is not None and student not in roster:
        why = _("this id is not on the class list")
    notes = []
    if handed.twins:
        told = _("another folder has a name that looks the same: {names}")
        notes.append(told.format(names=", ".join(ascii(name) for name in handed.twins)))
    if why:
        return Result(handed.shown, 0.0, most, [_("not graded: {why}").format(why=why), *notes])
    try:
        notes += _clean(course, bank, student, handed.folder)
    except OSError as error:
        told = _("not graded: {path} cannot be used ({why})")
        return Result(student, 0.0, most, [told.format(path=error.filename, why=error.strerror), *notes])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its own session
        done = api.autograde(assignment_name(bank), student)
    if done.get("success"):
        gradebook.keep()
    else:
        gradebook.db.rollback()
        told = (done.get("error") or done.get("log", ""))[-400:].strip()
        notes.append(_("nbgrader could not grade it, an earlier score stands: {told}").format(told=clean(told)))
    gradebook.db.expire_all()
    return _score(gradebook, assignment_name(bank), student, most, notes)


def _clean(course: Path, bank: Bank, student: str, folder: Path) -> list[str]:
    """Write the fresh notebook that is graded for a student; return notes."""
    name = assignment_name(bank)
    path, notes = notebook_in(folder, name)
    answers: dict[str, Any] = {}
    if path is not None:
        answers, more = read_answers(path, bank.questions)
        notes += more
    target = course / CLEANED / student / name
    shutil.rmtree(target, ignore_errors=True)
    write(filled(bank, answers), target / f"{name}.ipynb")
    notes += _timestamp(folder, target)
    return notes


def _timestamp(folder: Path, target: Path) -> list[str]:
    """Carry the time of submission over, as the naive UTC that nbgrader's database wants."""
    try:
        text = timestamp_in(folder)
        if text is None:
            return []
        when = to_utc(text)
    except (OSError, ValueError):
        return [_("timestamp.txt cannot be read; the submission counts as on time")]
    (target / "timestamp.txt").write_text(f"{when.isoformat(sep=' ')} UTC", encoding="utf-8")
    return []


def _check_points(gradebook: Gradebook, bank: Bank) -> None:
    """Raise CourseError where the gradebook's maxima aren't the bank's: the bank was edited after the build, or the gradebook
    was. Every student's grading would fail on it half-way."""
    name = assignment_name(bank)
    points = {question.id: question.points for question in bank.questions}
    try:
        cells = gradebook.find_notebook(name, name).grade_cells
    except MissingEntry:
        return  # nobody was graded yet; nbgrader enters the assignment from its source
    for cell in cells:
        if cell.name in points and cell.max_score != points[cell.name]:
            told = _(
                "{question} of {name} is worth {found:g} points in the gradebook and {points:g} in the bank. "
                "Nothing was graded. If the gradebook is right, correct the bank; if the bank is, run offload-quiz build again"
            )
            raise CourseError(told.format(question=cell.name, name=name, found=cell.max_score, points=points[cell.name]))


def _score(gradebook: Gradebook, name: str, student: str, most: float, notes: list[str]) -> Result:
    try:
        submission = gradebook.find_submission(name, student)
    except MissingEntry:
        return Result(student, 0.0, most, notes)
    score = float(submission.score)
    if not math.isfinite(score) or not 0 <= score <= submission.max_score:
        told = _("the gradebook says {score} of {most}; grade it by hand in formgrader")
        notes.append(told.format(score=score, most=submission.max_score))
        score = 0.0
    by_hand = [
        mark for part in submission.notebooks for mark in part.grades if mark.manual_score is not None or mark.extra_credit
    ]
    if by_hand:
        told = _("marks given by hand or extra credit in the gradebook count here, for {count} questions")
        notes.append(told.format(count=len(by_hand)))
    return Result(student, score, float(submission.max_score), notes)
