"""The points of code exercises in nbgrader's gradebook, as an assignment of their own beside the quizzes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from nbgrader.api import Grade, Gradebook, MissingEntry
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from quizzes.exercises.exercise import Exercise
from quizzes.exercises.grade import ASSIGNMENT, ExercisesError, Mark, Report
from quizzes.exercises.submission import is_student
from quizzes.nbgrader.api import COURSE_ID, url_of
from quizzes.nbgrader.session import LockedError, one_gradebook, only_grader
from quizzes.printable import clean
from quizzes.say import _


def enter(course: Path, report: Report, exercises: Sequence[Exercise], db_url: str | None = None) -> dict[str, float]:
    """Write a report into the course's gradebook; by student, the points that then stand there.

    A mark that was given by hand stays, and goes before the automatic one. An exercise that could not be judged keeps the score
    that was there, and waits for a mark by hand where none was. Who handed in no exercises is not entered. All or none are
    written. Raises ExercisesError where another grader is at work, the points of an exercise are not those of the gradebook, or
    the gradebook cannot be used.
    """
    standing: dict[str, float] = {}
    try:
        with only_grader(course), one_gradebook(url_of(course, db_url), COURSE_ID) as gradebook, warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its own session
            _assignment(gradebook, exercises)
            for result in report.results:
                if is_student(result.student) and os.path.lexists(course / "submitted" / result.student / ASSIGNMENT):
                    marks = {one.exercise: one for one in result.exercises}
                    standing[result.student] = _student(gradebook, result.student, marks)
            gradebook.keep()
    except LockedError as error:
        raise ExercisesError(str(error)) from None
    except (SQLAlchemyError, OSError) as error:
        told = _("the scores were not written into the gradebook ({why})")
        raise ExercisesError(told.format(why=clean(str(error.__cause__ or error), 300))) from None
    return standing


def _assignment(gradebook: Gradebook, exercises: Sequence[Exercise]) -> None:
    """Enter the assignment, and exercises that are new; their cells are filled in for those who were graded before."""
    gradebook.update_or_create_assignment(ASSIGNMENT)
    try:
        held = {cell.name: cell.max_score for cell in gradebook.find_notebook(ASSIGNMENT, ASSIGNMENT).grade_cells}
    except MissingEntry:
        gradebook.add_notebook(ASSIGNMENT, ASSIGNMENT)
        held = {}
    for one in exercises:
        if held.get(one.id, one.points) != one.points:
            told = _("{name} is worth {found:g} points in the gradebook and {points:g} here; the scores were not written")
            raise ExercisesError(told.format(name=one.id, found=held[one.id], points=one.points))
        if one.id not in held:
            gradebook.add_grade_cell(one.id, ASSIGNMENT, ASSIGNMENT, max_score=one.points, cell_type="code")


def _student(gradebook: Gradebook, student: str, marks: Mapping[str, Mark]) -> float:
    """Write one student's marks; the points that stand. What is not among the marks was not handed in: 0."""
    gradebook.update_or_create_student(student)
    submission = gradebook.update_or_create_submission(ASSIGNMENT, student)
    (notebook,) = submission.notebooks
    held = {grade.name: grade for grade in notebook.grades}
    for cell in gradebook.find_notebook(ASSIGNMENT, ASSIGNMENT).grade_cells:
        grade = held.get(cell.name)
        if grade is None:
            grade = Grade(cell_id=cell.id, notebook=notebook)
            gradebook.db.add(grade)
        one = marks.get(cell.name)
        if one is None or one.judged:
            grade.auto_score = 0.0 if one is None else one.score
        grade.needs_manual_grade = grade.auto_score is None and grade.manual_score is None
    gradebook.db.flush()
    gradebook.db.expire_all()
    return float(gradebook.find_submission(ASSIGNMENT, student).score)
