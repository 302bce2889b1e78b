"""What a learner is told of a graded answer: as much of the key as the answer has earned, no more. Pure.

Right: the explanation. Wrong: the points, why what was chosen is wrong and the idea behind it; never which choice, number,
word, order or pair would have been right. Not answered: nothing.
"""

from __future__ import annotations

from typing import Any

from quizzes.grading import Verdict
from quizzes.question import Question
from quizzes.say import _


def told(question: Question, verdict: Verdict, answer: Any) -> str:
    """The text for `answer`, of which `verdict` is the verdict; lines of plain text, which a learner's words may be part of."""
    if answer is None or (isinstance(answer, (str, list, dict)) and not answer):
        return _("Not answered.")
    if not verdict.understood:
        return _("This could not be read as an answer. {how}").format(how=verdict.message)
    if verdict.correct:
        return verdict.message
    lines = [_("{score:g} of {most:g} points.").format(score=verdict.share * question.points, most=question.points)]
    if question.kind in ("number", "text", "order"):
        lines.append(verdict.message)
    else:
        chosen = verdict.answer if isinstance(verdict.answer, list) else [verdict.answer]
        lines += [
            _("Not so ({name}): {why}").format(name=choice.id, why=_(choice.explanation))
            for choice in question.choices
            if choice.id in chosen and not choice.correct
        ]
    if question.reread:
        lines.append(_("Read again: {heading}.").format(heading=question.reread))
    return "\n".join(lines)
