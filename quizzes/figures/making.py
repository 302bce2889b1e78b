"""From what a question says of its figure to the picture. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from quizzes.figures.picture import FigureError, Picture
from quizzes.figures.received import Received, SentFigure
from quizzes.figures.sources import SOURCES
from quizzes.say import _, spoken

if TYPE_CHECKING:
    from quizzes.online.asked import Asked
    from quizzes.question import Question


def picture(question: Question | Asked, locale: str = "en") -> Picture | None:
    """The figure of a drawn question; None where it has none. Raises FigureError for one that cannot be drawn."""
    if question.figure is None:
        return None
    if isinstance(question.figure, SentFigure):
        return Received(question.figure.title, locale, sent=question.figure)
    try:
        return figure(question.figure.source, question.figure.parameters(), locale)
    except FigureError as error:
        raise FigureError(_("question {id}, figure: {error}").format(id=question.id, error=error)) from None


def figure(source: str, parameters: Mapping[str, Any], locale: str = "en") -> Picture:
    """The figure of that source. Raises FigureError naming the parameter that is wrong."""
    return _made(json.dumps([source, parameters], sort_keys=True, default=str), locale, spoken())


@lru_cache(maxsize=512)
def _made(written: str, locale: str, language: str) -> Picture:
    # A question is shown to a class, and graded for each of them: it is drawn once.
    source, parameters = json.loads(written)
    if source not in SOURCES:
        raise FigureError(f"source: {source!r} is not one of {', '.join(SOURCES)}")
    try:
        return SOURCES[source](parameters, locale)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise FigureError(f"{field + ': ' if field else ''}{first['msg'].removeprefix('Value error, ')}") from None
