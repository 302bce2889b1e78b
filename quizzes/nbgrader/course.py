"""A course folder: make an assignment, grade a class, read the scores. One bad submission never stops the others."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from sqlalchemy.exc import SAWarning

from quizzes.nbgrader.api import COURSE_ID, api
from quizzes.nbgrader.cleaned import Cleaned, Paper, clean_submission
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.folder import Handed, handed_in
from quizzes.nbgrader.judge import questions_of
from quizzes.nbgrader.judged import Trust
from quizzes.nbgrader.notebook import assignment_name, build, write
from quizzes.nbgrader.roster import is_safe, read_roster
from quizzes.nbgrader.session import LockedError, one_gradebook, only_grader
from quizzes.printable import clean
from quizzes.question import Bank, graded, version
from quizzes.say import _


class CourseError(RuntimeError):
    """The instructor has to do something; the message says what."""


@dataclass
class Result:
    """One student's score, and what the instructor should know about the submission."""

    student: str
    score: float
    max_score: float
    notes: list[str] = field(default_factory=list)
    conflicts: dict[str, list[Any]] = field(default_factory=dict)
    """By question name, answers in conflict, of which none counts by itself."""
    undecided: tuple[str, ...] = ()
    """Names of questions in conflict for which no mark was given by hand."""


@dataclass
class Grades:
    assignment: str
    results: list[Result]

    def to_json(self) -> dict[str, Any]:
        """`results` has an object a student, `conflicts` one a question with different answers."""
        results = [
            {"student": one.student, "score": one.score, "max_score": one.max_score, "notes": one.notes} for one in self.results
        ]
        conflicts = [
            {"student": one.student, "question": name, "answers": answers, "decided": name not in one.undecided}
            for one in self.results
            for name, answers in one.conflicts.items()
        ]
        return {"assignment": self.assignment, "results": results, "conflicts": conflicts}


def build_assignment(course: Path, lesson: str) -> Path:
    """Make source and release of a lesson's quiz under `course`; return the notebook to hand out.

    Raises BankError without the keys, CourseError when nbgrader refuses.
    """
    bank = handed_out(lesson)
    name = assignment_name(bank)
    write(build(bank), course / "source" / name / f"{name}.ipynb")
    done = api(course).generate_assignment(name)
    released = course / "release" / name / f"{name}.ipynb"
    if not done.get("success") or not released.exists():
        raise CourseError(f"nbgrader did not make {name}: {done.get('error') or done.get('log', '')[-800:]}")
    return released


def paper_of(lesson: str) -> Paper:
    """Raises BankError."""
    plain = {question.id: question for question in graded(lesson).questions}
    return Paper(handed_out(lesson), plain, {name: version(question) for name, question in plain.items()})


def grade(
    course: Path, lesson: str, students: Path | None = None, db_url: str | None = None, trust: Trust | None = None
) -> Grades:
    """Grade every submission in `course/submitted/<student>/quiz-<lesson>/` through nbgrader's gradebook.

    Submitted files are only read. What can't be read scores nothing and is named in the student's notes. `students` is the
    class list (CSV with a column id; `course/students.csv` where it exists): who is not on it is not graded, and named. With
    `trust` the score comes from the judging service's receipts (see `quizzes.nbgrader.judged`).
    Raises CourseError where the assignment was never built, nobody has submitted or another grader is at work, RosterError
    for a class list that cannot be read.
    """
    paper = paper_of(lesson)
    name = paper.name
    if not (course / "release" / name).is_dir():
        raise CourseError(f"{name} was not built in {str(course)!r}; run offload-quiz build first")
    handed = handed_in(course / "submitted", name)
    if not handed:
        raise CourseError(f"nobody has submitted: there is no {course / 'submitted'!s}/<student>/{name}/")
    listed = students or course / "students.csv"
    roster = read_roster(listed) if students is not None or listed.is_file() else None
    grader = api(course, db_url)
    results = []
    questions_of.cache_clear()
    try:
        with only_grader(course), one_gradebook(grader.coursedir.db_url, COURSE_ID) as gradebook:
            _check_points(gradebook, paper.bank)
            for one in handed:
                results.append(_one(course, paper, grader, gradebook, one, roster, trust))
    except LockedError as error:
        raise CourseError(str(error)) from None
    return Grades(name, results)


def _one(
    course: Path,
    paper: Paper,
    grader: NbGraderAPI,
    gradebook: Gradebook,
    handed: Handed,
    roster: frozenset[str] | None,
    trust: Trust | None,
) -> Result:
    """One student, graded or explained."""
    student = handed.student
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
        return Result(handed.shown, 0.0, paper.most, [_("not graded: {why}").format(why=why), *notes])
    try:
        cleaned = clean_submission(course, paper, student, student, handed.folder, trust)
    except OSError as error:
        told = _("not graded: {path} cannot be used ({why})")
        return Result(student, 0.0, paper.most, [told.format(path=error.filename, why=error.strerror), *notes])
    notes += cleaned.notes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its own session
        done = grader.autograde(paper.name, student)
    if done.get("success"):
        gradebook.keep()
    else:
        gradebook.db.rollback()
        told = (done.get("error") or done.get("log", ""))[-400:].strip()
        notes.append(_("nbgrader could not grade it, an earlier score stands: {told}").format(told=clean(told)))
    gradebook.db.expire_all()
    return _score(gradebook, paper, student, cleaned, notes)


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


def _score(gradebook: Gradebook, paper: Paper, student: str, cleaned: Cleaned, notes: list[str]) -> Result:
    try:
        submission = gradebook.find_submission(paper.name, student)
    except MissingEntry:
        return Result(student, 0.0, paper.most, notes)
    score = float(submission.score)
    if not math.isfinite(score) or not 0 <= score <= submission.max_score:
        told = _("the gradebook says {score} of {most}; grade it by hand in formgrader")
        notes.append(told.format(score=score, most=submission.max_score))
        score = 0.0
    marks = [mark for part in submission.notebooks for mark in part.grades]
    by_hand = {mark.name for mark in marks if mark.manual_score is not None or mark.extra_credit}
    if by_hand:
        told = _("marks given by hand or extra credit in the gradebook count here, for {count} questions")
        notes.append(told.format(count=len(by_hand)))
    decided = {mark.name for mark in marks if mark.manual_score is not None}
    undecided = tuple(name for name in cleaned.conflicts if paper.bank[name].id not in decided)
    return Result(student, score, float(submission.max_score), notes, cleaned.conflicts, undecided)
