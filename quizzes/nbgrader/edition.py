"""The edition of a lesson's graded questions that a class is handed."""

from __future__ import annotations

from quizzes.question import Bank, graded
from quizzes.translated import translated
from quizzes.variants import draw


def handed_out(lesson: str) -> Bank:
    """The graded questions of `lesson` with numbers in their places and choices in the order in which they are printed.

    An assignment is one file for the whole class, so everybody has the same edition. It follows from the assignment's name and
    nothing else: the notebook built today and the grader of next week mean the same numbers. Its texts are in the language that
    is spoken here; ids, numbers and what is right are the same in all. Raises BankError as `graded`.
    """
    bank = translated(graded(lesson), "keys")
    return bank.model_copy(update={"questions": tuple(draw(question, f"quiz-{lesson}") for question in bank.questions)})
