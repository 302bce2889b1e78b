"""What a learner is told of the points: how a partly right answer counts, and what a verdict and its hints came to. Pure."""

from __future__ import annotations

from quizzes.grading import Verdict
from quizzes.question import Question
from quizzes.say import _, _n


def rule(question: Question) -> str:
    """How a partly right answer counts, in one sentence; "" where an answer is right or wrong. As `quizzes.grading` counts."""
    if question.kind == "several":
        return _("Each right choice earns its share, each wrong one takes the same away; choosing all of them earns nothing.")
    if question.kind == "order":
        return _("You earn the share of steps that follow directly on the step that they should follow.")
    if question.kind == "match":
        return _("Each right pair earns its share, each wrong one takes the same away; a pair left out does neither.")
    if any(choice.credit for choice in question.choices):
        return _("A wrong choice that is partly right earns a part of the points.")
    return ""


def reread(heading: str) -> str:
    """What to read again after a wrong answer: a heading of the lesson."""
    return _("Read again: {heading}.").format(heading=_(heading))


def headline(verdict: Verdict) -> str:
    """The verdict in a few words, a sign first: never by colour alone."""
    if not verdict.understood:
        return _("Not counted: no attempt used")
    if verdict.hints:
        right = _n(
            "✔ Right, {share:.0%} of the points after {hints} hint",
            "✔ Right, {share:.0%} of the points after {hints} hints",
            verdict.hints,
        )
        wrong = _n(
            "✘ Not yet ({share:.0%} of the points after {hints} hint)",
            "✘ Not yet ({share:.0%} of the points after {hints} hints)",
            verdict.hints,
        )
        said = right if verdict.correct else wrong
        return said.format(share=verdict.share, hints=verdict.hints)
    return _("✔ Right") if verdict.correct else _("✘ Not yet ({share:.0%} of the points)").format(share=verdict.share)
