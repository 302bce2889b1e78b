"""The idea behind a wrong result, where it is a known one. Pure but for reading the list of misconceptions."""

from __future__ import annotations

from quizzes.exercises.compare import difference
from quizzes.exercises.exercise import Case, Exercise
from quizzes.exercises.sandbox import Reply
from quizzes.question import misconceptions
from quizzes.say import _, words


def idea_behind(exercise: Exercise, case: Case, reply: Reply) -> str:
    """A sentence with a blank before it; "" for a result that no trap of `case` returns. It names the instructor's words only:
    nothing that a learner's code made comes in."""
    if reply.error is not None:
        return ""
    for trap in case.traps:
        if difference(reply.value, trap.returns, exercise.relative, exercise.absolute) is None:
            if not trap.misconception:
                return " " + _("The idea behind it may be: {idea}").format(idea=words("keys", trap.idea))
            known = misconceptions()[trap.misconception]
            said = _("The idea behind it may be: {idea} Read again: {heading}.")
            return " " + said.format(idea=_(known["idea"]), heading=_(known["reread"]))
    return ""
