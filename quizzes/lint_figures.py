"""Quality of the figures of a bank: each can be drawn, with every draw of its numbers, and gives nothing away. Pure."""

from __future__ import annotations

import re
from itertools import islice

from quizzes.figures import FigureError, figure
from quizzes.question import Question
from quizzes.say import _
from quizzes.variants import figures

LARGEST = 60_000
"""Characters of one figure in a text cell; a notebook with five of them still opens at once."""
_MOST = 200  # editions of one question that are drawn
_SPOKEN = re.compile(r"\b(the|this) figure\b", re.I)


def check_figure(question: Question, secrets: list[str]) -> list[str]:
    """What is wrong with the figure of a question, a line each. `secrets`: texts that belong to its key."""
    if question.figure is None:
        return [_("figure: the prompt speaks of one, and there is none")] if _SPOKEN.search(question.prompt) else []
    if question.kind == "plot" and not _SPOKEN.search(question.prompt):
        return [_('prompt: a question of kind plot says "the figure", so that nobody overlooks it')]
    strange = question.figure.open_names() - set(question.variants)
    if strange:
        return [_("figure: {name!r} is in no variant").format(name=sorted(strange)[0])]
    private = [text for text in (question.id, *question.misconceptions, *secrets) if len(text) > 3]
    found: dict[str, None] = {}
    for chosen, wanted in islice(figures(question), _MOST):
        told = ", ".join(f"{name} = {value}" for name, value in chosen.items())
        try:
            made = figure(wanted.source, wanted.parameters())
            shown, words = made.html(), f"{made.svg()} {made.alternative()} {made.text()}"
        except FigureError as error:
            said = _("figure: it cannot be drawn with {values}: {error}") if told else _("figure: it cannot be drawn: {error}")
            found[said.format(values=told, error=error)] = None
            continue
        said = _("figure: {text!r} belongs to the key and stands in it")
        found |= {said.format(text=text[:60]): None for text in private if text in words}
        if len(shown) > LARGEST:
            said = _("figure: it has {count:,} characters, {most:,} are the most; draw fewer steps or partitions")
            found[said.format(count=len(shown), most=LARGEST)] = None
    return list(found)
