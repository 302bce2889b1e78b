"""Quizzes that answer at once, graded assignments, and certificates. Knows offload_lab; offload_lab does not know it."""

from __future__ import annotations

from typing import Any

__all__ = ["OnlineQuiz", "Quiz"]


def __getattr__(name: str) -> Any:
    # Late, so that `offload-quiz certificate verify` starts without a notebook's libraries.
    if name == "Quiz":
        from quizzes.quiz import Quiz

        return Quiz
    if name == "OnlineQuiz":
        from quizzes.online.quiz import OnlineQuiz

        return OnlineQuiz
    raise AttributeError(f"module 'quizzes' has no attribute {name!r}")
