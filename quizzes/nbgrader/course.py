"""A course folder: make an assignment, grade a class, read the scores. One bad submission never stops the others."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from quizzes.nbgrader.api import COURSE_ID, api, url_of
from quizzes.nbgrader.cleaned import Cleaned, Paper, clean_submission
from quizzes.nbgrader.due import Due, lateness
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.entering import enter, set_due, start_submission
from quizzes.nbgrader.feedback import is_newer, write_feedback
from quizzes.nbgrader.folder import Handed, handed_in
from quizzes.nbgrader.judge import questions_of
from quizzes.nbgrader.judged import Trust
from quizzes.nbgrader.late import configured
from quizzes.nbgrader.notebook import assignment_name, build, write
from quizzes.nbgrader.roster import Listed, is_safe, read_class
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
    late: float = 0.0
    """Seconds after the due time of this student; 0 for on time."""
    penalty: float = 0.0
    """Points that this costs; `score` is after them."""


@dataclass
class Grades:
    assignment: str
    results: list[Result]
    due: Due = field(default_factory=Due)
    notes: list[str] = field(default_factory=list)
    """On the batch as a whole."""

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
        late = [{"student": one.student, "seconds": one.late, "penalty": one.penalty} for one in self.results if one.late > 0]
        due = None if self.due.moment is None else self.due.words
        return {
            "assignment": self.assignment, "results": results, "conflicts": conflicts, "due": due, "late": late,
            "notes": self.notes,
        }  # fmt: skip


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


@dataclass(frozen=True)
class Feedback:
    """Pages that were written, and what the instructor should know about them."""

    pages: list[Path]
    notes: list[str]


@dataclass(frozen=True)
class _Batch:
    """What is the same for every student of one grading."""

    course: Path
    paper: Paper
    grader: NbGraderAPI
    gradebook: Gradebook
    students: Mapping[str, Listed] | None
    trust: Trust | None
    due: Due


def grade(
    course: Path,
    lesson: str,
    students: Path | None = None,
    db_url: str | None = None,
    trust: Trust | None = None,
    due: str | None = None,
    late: str | None = None,
) -> Grades:
    """Grade every submission in `course/submitted/<student>/quiz-<lesson>/` through nbgrader's gradebook.

    Submitted files are only read. What can't be read scores nothing and is named in the student's notes. `students` is the
    class list (CSV with a column id, see `roster.Listed`; `course/students.csv` where it exists): who is not on it is not
    graded, and named. With `trust` the score comes from the judging service's receipts (see `quizzes.nbgrader.judged`).
    `due` and `late` (see `quizzes.nbgrader.due`) hold from now on, also for later gradings.
    Raises CourseError where the assignment was never built, nobody has submitted, another grader is at work or the gradebook
    cannot be used, RosterError for a class list that cannot be read, DueError for a time or a penalty that is none.
    """
    paper = paper_of(lesson)
    name = paper.name
    released = course / "release" / name / f"{name}.ipynb"
    if not released.parent.is_dir():
        told = _("{name} was not built in {course!r}; run offload-quiz build first")
        raise CourseError(told.format(name=name, course=str(course)))
    handed = handed_in(course / "submitted", name)
    if not handed:
        told = _("nobody has submitted: there is no {folder}/<student>/{name}/")
        raise CourseError(told.format(folder=course / "submitted", name=name))
    roster = _roster(course, students)
    results = []
    questions_of.cache_clear()
    with _at_work(course, db_url) as gradebook:
        enter(gradebook, released, name)
        _check_points(gradebook, paper.bank)
        rule = set_due(gradebook, course, name, due, late)
        gradebook.keep()
        if rule.moment is None and any(one.due is not None for one in (roster or {}).values()):
            raise CourseError(_("the class list gives due times of students' own; give the class's with --due"))
        grader = api(course, db_url, configured(rule.penalty))
        batch = _Batch(course, paper, grader, gradebook, roster, trust, rule)
        for one in handed:
            results.append(_one(batch, one))
    notes = [rule.moment.note] if rule.moment is not None and rule.moment.note else []
    return Grades(name, results, rule, notes)


def _roster(course: Path, students: Path | None) -> dict[str, Listed] | None:
    listed = students or course / "students.csv"
    return read_class(listed) if students is not None or listed.is_file() else None


@contextmanager
def _at_work(course: Path, db_url: str | None) -> Iterator[Gradebook]:
    """The open gradebook, for this grader alone. Raises CourseError where another is at work or it cannot be used."""
    try:
        with only_grader(course), one_gradebook(url_of(course, db_url), COURSE_ID) as gradebook:
            yield gradebook
    except LockedError as error:
        raise CourseError(str(error)) from None
    except ImportError as error:
        told = _("the gradebook cannot be used: {package} is not installed; install it, or name another database")
        raise CourseError(told.format(package=error.name)) from None
    except SQLAlchemyError as error:
        told = _("the gradebook cannot be used ({why}); what was graded before stands")
        raise CourseError(told.format(why=clean(str(error.__cause__ or error), 300))) from None


def _one(batch: _Batch, handed: Handed) -> Result:
    """One student, graded or explained."""
    student, paper, gradebook = handed.student, batch.paper, batch.gradebook
    why = handed.refused
    if not is_safe(student):
        why = _("the folder's name is no student id")
    elif batch.students is not None and student not in batch.students:
        why = _("this id is not on the class list")
    notes = []
    if handed.twins:
        told = _("another folder has a name that looks the same: {names}")
        notes.append(told.format(names=", ".join(ascii(name) for name in handed.twins)))
    if why:
        return Result(handed.shown, 0.0, paper.most, [_("not graded: {why}").format(why=why), *notes])
    listed = (batch.students or {}).get(student)
    learner = listed.learner if listed is not None and listed.learner else student
    try:
        cleaned = clean_submission(batch.course, paper, student, learner, handed.folder, batch.trust)
    except OSError as error:
        told = _("not graded: {path} cannot be used ({why})")
        return Result(student, 0.0, paper.most, [told.format(path=error.filename, why=error.strerror), *notes])
    notes += cleaned.notes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its own session
        start_submission(gradebook, paper.name, student, batch.due, listed)
        done = batch.grader.autograde(paper.name, student)
    if done.get("success"):
        gradebook.keep()
    else:
        gradebook.db.rollback()
        told = (done.get("error") or done.get("log", ""))[-400:].strip()
        notes.append(_("nbgrader could not grade it, an earlier score stands: {told}").format(told=clean(told)))
    gradebook.db.expire_all()
    result = _score(batch, student, listed, cleaned, notes)
    if done.get("success"):  # else the page of what was graded before stands, as its score does
        try:
            write_feedback(batch.course, paper, gradebook, student, batch.due, listed, datetime.now(UTC))
        except OSError as error:
            told = _("the page of feedback was not written: {path} ({why})")
            result.notes.append(told.format(path=error.filename, why=error.strerror))
    return result


def rewrite_feedback(course: Path, lesson: str, students: Path | None = None, db_url: str | None = None) -> Feedback:
    """Write the pages of all who were graded anew, with the marks that were given by hand since. Nothing is graded.

    Raises CourseError, RosterError, DueError and BankError as `grade`, OSError where a page cannot be written.
    """
    paper = paper_of(lesson)
    roster = _roster(course, students) or {}
    written, notes = [], []
    with _at_work(course, db_url) as gradebook:
        try:
            people = [one.student.id for one in gradebook.assignment_submissions(paper.name)]
            rule = set_due(gradebook, course, paper.name, None, None)
        except MissingEntry:
            raise CourseError(_("nobody was graded yet; run offload-quiz grade first")) from None
        for student in sorted(filter(is_safe, people)):
            path = write_feedback(course, paper, gradebook, student, rule, roster.get(student), datetime.now(UTC))
            if path is None:
                continue
            written.append(path)
            if is_newer(course, paper.name, student):
                notes.append(_("{student}: what lies in the submission now is not what was graded").format(student=student))
    if not written:
        raise CourseError(_("nobody was graded yet; run offload-quiz grade first"))
    return Feedback(written, notes)


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


def _score(batch: _Batch, student: str, listed: Listed | None, cleaned: Cleaned, notes: list[str]) -> Result:
    paper = batch.paper
    try:
        submission = batch.gradebook.find_submission(paper.name, student)
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
    result = Result(student, score, float(submission.max_score), notes, cleaned.conflicts, undecided)
    if batch.due.moment is not None:
        result.late, result.penalty = (
            float(submission.total_seconds_late),
            min(score, submission.late_submission_penalty or 0.0),
        )
        result.score -= result.penalty
        notes += lateness(batch.due, submission.timestamp, submission.duedate, result.penalty)
        if listed is not None and listed.due is not None and listed.due.note:
            notes.append(listed.due.note)
    return result
