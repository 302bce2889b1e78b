"""The preprocessors that stand where nbgrader's own would execute the notebook: answers are read and scores written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades

from quizzes.grading import judge
from quizzes.nbgrader.cleaned import known_of
from quizzes.nbgrader.edition import handed_out
from quizzes.nbgrader.notebook import assignments, listed
from quizzes.nbgrader.told import told
from quizzes.question import Question
from quizzes.say import _, _n

OPEN = "offload_lab_open"
"""In a grade cell's metadata: the instructor has to decide."""


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
            known = known_of(nb, question.id)
            points, said = _points(question, known, answers.get(question.name))
            if "conflict" in known:
                cell.metadata[OPEN] = True
            spoken = new_output("stream", name="stdout", text=said + "\n")
            cell.outputs = [spoken, new_output("execute_result", data={"text/plain": repr(points)}, execution_count=1)]
        return nb, resources


def _points(question: Question, known: dict[str, Any], answer: Any) -> tuple[float, str]:
    """The points of an answer, and what the learner is told."""
    if "judged" in known:
        said = _("Judged online at attempt {attempt}: {score:g} of {most:g} points.")
        said = said.format(attempt=known["attempt"], score=known["judged"], most=question.points)
        if known.get("hints"):
            after = _n(
                "{count} hint was taken, and its cost is in the points.",
                "{count} hints were taken, and their cost is in the points.",
                known["hints"],
            )
            said += " " + after.format(count=known["hints"])
        return float(known["judged"]), said
    if "no_receipt" in known:
        return 0.0, _("No receipt of the judging service counts for this question.")
    if "conflict" in known:
        said = _("Different cells answer this differently: {answers}. Neither counts until your instructor has decided.")
        return 0.0, said.format(answers=listed(known["conflict"]))
    verdict = judge(question, answer)
    return verdict.share * question.points, told(question, verdict, answer)


class SaveGrades(SaveAutoGrades):
    """Where the instructor has to decide there is no score yet; a mark that was given by hand is the decision."""

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._add_score(cell, resources)
        if not cell.metadata.get(OPEN):
            return
        grade = self.gradebook.find_grade(
            cell.metadata["nbgrader"]["grade_id"], self.notebook_id, self.assignment_id, self.student_id
        )
        grade.auto_score = None
        grade.needs_manual_grade = grade.manual_score is None
        self.gradebook.db.commit()
