"""The preprocessor that stands where nbgrader's own would execute the notebook: it reads answers and writes scores."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor

from quizzes.grading import judge
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.notebook import assignments
from quizzes.question import Question


@lru_cache(maxsize=4)
def questions_of(lesson: str) -> dict[str, Question]:
    """Graded questions by id, read once a batch: nbgrader makes a new preprocessor for each notebook."""
    return {question.id: question for question in handed_out(lesson).questions}


class JudgeAnswers(NbGraderPreprocessor):
    """Gives each grade cell an output with the points earned, which nbgrader takes as partial credit. No kernel, no code."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        lesson = resources["nbgrader"]["assignment"].removeprefix("quiz-")
        questions = questions_of(lesson)
        answers: dict[str, Any] = {}
        for cell in nb.cells:
            if cell.cell_type == "code":
                answers.update(assignments(cell.source))
        for cell in nb.cells:
            question = questions.get(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
            if question is None or not cell.metadata.nbgrader.get("grade"):
                continue
            verdict = judge(question, answers.get(question.name))
            points = verdict.share * question.points
            told = new_output("stream", name="stdout", text=verdict.message + "\n")
            cell.outputs = [told, new_output("execute_result", data={"text/plain": repr(points)}, execution_count=1)]
        return nb, resources
