"""nbgrader's late penalties, by a share of the points for each day or hour that has begun."""

from __future__ import annotations

import math
from typing import Any

from nbgrader.plugins import BasePlugin
from traitlets import Float, Integer

from quizzes.nbgrader.due import Penalty


class LateByTime(BasePlugin):
    """A plugin of nbgrader's `AssignLatePenalties`."""

    percent = Float(0.0, help="Percent of the points earned that each unit of lateness costs.").tag(config=True)
    every = Integer(86_400, help="Seconds of a unit.").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Points taken from `score`; None for none."""
        return cost(self.percent, self.every, score, total_seconds_late)


def cost(percent: float, every: int, score: float, seconds: float) -> float | None:
    """Points that `seconds` of lateness cost, at most `score`. None where lateness costs nothing."""
    if not percent or seconds <= 0 or not score > 0:
        return None
    # In hundredths first: 3 units of 10 % are 30 %, not 30.000000000000004 %.
    return score * min(100.0, percent * math.ceil(seconds / every)) / 100.0


def configured(penalty: Penalty) -> dict[str, dict[str, Any]]:
    """The configuration of nbgrader's classes, by name, that makes this penalty."""
    return {
        "AssignLatePenalties": {"plugin_class": LateByTime},
        "LateByTime": {"percent": penalty.percent, "every": penalty.every},
    }
