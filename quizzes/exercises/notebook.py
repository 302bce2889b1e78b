"""The notebook to hand out: contracts, open cases, and a stub of each function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from quizzes.exercises.exercise import Case, Exercise
from quizzes.exercises.submission import marker
from quizzes.say import _, words


def build(exercises: Sequence[Exercise]) -> NotebookNode:
    """Only what is open: of hidden cases not even their number."""
    intro = _(
        "# Exercises\n\nWrite each function in its own cell and keep the first line of the cell. A cell is graded by itself, "
        "with the standard library only: what it needs is imported or defined in it."
    )
    cells = [new_markdown_cell(intro, id="intro")]
    for exercise in exercises:
        examples = [_example(exercise.function, case, bool(exercise.rule)) for case in exercise.cases]
        title, contract = (words(f"lesson_{exercise.lesson}", said) for said in (exercise.title, exercise.contract))
        text = f"## {title}\n\n{contract}\n```python\n" + "\n".join(examples) + "\n```"
        cells.append(new_markdown_cell(text, id=f"text-{exercise.id}"))
        stub = f"{marker(exercise)}\n{exercise.signature}\n    raise NotImplementedError"
        cells.append(new_code_cell(stub, id=f"exercise-{exercise.id}"))
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def _example(function: str, case: Case, one_of_many: bool) -> str:
    shown = _("{result}, for example").format(result=repr(case.expected)) if one_of_many else repr(case.expected)
    return f"{function}({', '.join(map(repr, case.arguments))})  # {shown}"


def write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
