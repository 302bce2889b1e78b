"""What keeps nbgrader's own autograde away from a course: it would run what learners wrote, and give each cell that does not
fail all of its points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from quizzes.say import _

FILE = "nbgrader_config.py"
_LINE = 'c.Autograde.sanitize_preprocessors = ["quizzes.nbgrader.refusing.RefuseToRun"]'
_TEXT = f"""# nbgrader and its formgrader read this where they work on this folder. Add what you like; without the last line,
# the button "Autograde" runs what learners wrote.
c = get_config()  # noqa: F821
{_LINE}
"""


class RefusedError(RuntimeError):
    """nbgrader's own autograde was asked for."""


class RefuseToRun(NbGraderPreprocessor):
    """Ends nbgrader's own autograde before it has run anything. Raises RefusedError."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        raise RefusedError(
            _(
                "this course is graded by offload-quiz grade, which runs nothing that learners wrote. "
                "Nothing was run here, and scores are as they were"
            )
        )


def guard(course: Path) -> str:
    """Put nbgrader's configuration into a course folder. A file that is there already is not touched; if it lacks the line,
    what is returned tells the instructor, else "". Raises OSError."""
    path = course / FILE
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(_TEXT)
    except FileExistsError:
        if _LINE in path.read_text(encoding="utf-8", errors="replace"):
            return ""
        said = _("{path} is yours and was left alone. Add this line, or nbgrader's own autograde runs code:\n    {line}")
        return said.format(path=path, line=_LINE)
    return ""


def failing(said: str) -> str:
    """A grade cell's code: the comment `said`, and an error under nbgrader's own autograde, which is then worth no points. It
    is for a course folder that lacks the file."""
    told = _("Graded by offload-quiz grade only.")
    return f'# {said}\nimport os; assert os.environ.get("NBGRADER_EXECUTION") != "autograde", {told!r}'
