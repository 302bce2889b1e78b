"""The figure of a question, drawn from a trace when it is shown: `picture(question)`. Pure: no torch, no front end.

A figure of `offload_lab.plots` says what it found: where a run stalled, which machine is cheapest. A question asks that of
the learner. These have the same look and none of the verdicts; their words carry every number of the picture and no more.
"""

from quizzes.figures.making import figure, picture
from quizzes.figures.picture import FigureError, Picture
from quizzes.figures.sources import SOURCES

__all__ = ["SOURCES", "FigureError", "Picture", "figure", "picture"]
