"""The assignment's notebook: made from graded questions, and answers read back out of it as data. Runs no code of anyone."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from quizzes.figures import picture
from quizzes.grading import judge
from quizzes.nbgrader.folder import read_file
from quizzes.printable import clean, tagless
from quizzes.question import Bank, Question
from quizzes.quiz import how_to
from quizzes.say import _
from quizzes.words import plain

LARGEST = 20_000_000  # bytes; a quiz has a few thousand
LARGEST_SOURCE = 200_000  # characters of code; Python takes a kilobyte of memory for each statement that it parses
_LONGEST = 10_001  # characters of an answer that are kept: one more than is judged
_KEPT = 20  # answers in conflict that are shown in the graded notebook; the submitted file keeps all
_SHOWN = 5  # answers in conflict that are named in one note
_LINE = re.compile(r"""^\s*answers\s*\[\s*(['"])(\w+)\1\s*\]\s*=\s*(.+?)\s*$""")


def assignment_name(bank: Bank) -> str:
    return f"quiz-{bank.lesson}"


def build(bank: Bank) -> NotebookNode:
    """The notebook that instructor and learner both have: prompts and choices, nothing of the key."""
    title = _("Quiz: {title}").format(title=tagless(bank.title))
    told = _("Write your answers between the quotes and save. They are read as text; nothing here is run when it is graded.")
    cells = [
        new_markdown_cell(f"# {title}\n\n{told}", id="intro"),
        new_code_cell("answers = {}", id="start"),
    ]
    for question in bank.questions:
        lines = [f"**{question.name}.** {tagless(question.prompt.rstrip())}", ""]
        drawn = picture(question)
        if drawn is not None:
            lines += [drawn.html(), ""]
        lines += [f"- **{choice.id})** {tagless(choice.text)}" for choice in question.choices]
        lines += [f"- **{step.id})** {tagless(step.text)}" for step in question.shown_steps()]
        if question.pairs:
            lines += [f"- **{pair.id})** {tagless(pair.left)}" for pair in question.pairs]
            lines += ["", _("What belongs to each of them:"), ""]
            lines += [f"- **{option})** {tagless(text)}" for option, text in question.options().items()]
        lines += [*([""] if lines[-1] else []), how_to(question)]
        cells.append(new_markdown_cell("\n".join(lines), id=f"{question.name}-text"))
        cells.append(new_code_cell(answer_line(question.name, ""), id=f"{question.name}-answer"))
        cells.append(
            new_code_cell(
                "# " + _("{name} is graded from the answer above.").format(name=question.name), id=f"{question.name}-grade"
            )
        )
        cells[-1].metadata.nbgrader = _metadata(question)
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def answer_line(name: str, answer: Any) -> str:
    return f'answers["{name}"] = {json.dumps(answer, ensure_ascii=False)}'


def _metadata(question: Question) -> dict[str, Any]:
    """A grade cell. The answer's own cell is nobody's to nbgrader: a solution cell would be blanked, and is not needed,
    because what is graded is a fresh notebook (see `filled`)."""
    return {
        "grade": True,
        "grade_id": question.id,
        "locked": True,
        "schema_version": 3,
        "solution": False,
        "task": False,
        "cell_type": "code",
        "points": question.points,
    }


@dataclass(frozen=True)
class Read:
    """What a submitted file says. `conflicts` are the different answers of a question of which no single one was given."""

    answers: dict[str, Any] = field(default_factory=dict)
    conflicts: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_answers(path: Path, questions: tuple[Question, ...]) -> tuple[dict[str, Any], list[str]]:
    """The answers in a submitted file, by question name, and notes for the instructor; see `read`."""
    found = read(path, questions)
    return found.answers, found.notes


def read(path: Path, questions: tuple[Question, ...]) -> Read:
    """The answers in a submitted file, by question name.

    An answer is a literal assigned to `answers["q1"]` in any code cell, wherever that cell now stands and whatever its
    metadata say. Inside one cell the last one counts, as in Python. Of two cells with different answers neither counts: that is
    a conflict, which the instructor decides. The same answer in two cells, however it is written, is one answer.
    Never raises for what a learner can put into a file.
    """
    try:
        data = read_file(path, LARGEST)
        if data is None:
            told = _("the file has more than {most:,} bytes and was not read; ask for a quiz without large outputs")
            return Read(notes=[told.format(most=LARGEST)])
        sources = _sources(json.loads(data))
    except (OSError, ValueError, RecursionError) as error:
        told = _("the file cannot be read as a notebook ({kind}); the submission is kept as it was handed in")
        return Read(notes=[told.format(kind=type(error).__name__)])
    if sources is None:
        return Read(notes=[_("the file is JSON but no notebook; the submission is kept as it was handed in")])
    named = {question.name: question for question in questions}
    given: dict[str, dict[str, Any]] = {}  # name -> form in which answers are compared -> answer
    notes: list[str] = []
    left = LARGEST_SOURCE
    for source in sources:
        left -= len(source)
        if left < 0:
            told = _("the cells hold more than {most:,} characters of code; what comes after them was not read")
            notes.append(told.format(most=LARGEST_SOURCE))
            break
        here: dict[str, Any] = {}
        for name, value in assignments(source):
            if name in named and not (isinstance(value, str) and not value.strip()):
                value = _writable(value)
                if here.get(name, value) != value and _form(named[name], here[name]) != _form(named[name], value):
                    told = _("{name} is answered more than once and differently in one cell; the last answer was taken")
                    notes.append(told.format(name=name))
                here[name] = value
        for name, value in here.items():
            given.setdefault(name, {}).setdefault(_form(named[name], value), value)
    answers = {name: next(iter(forms.values())) for name, forms in given.items() if len(forms) == 1}
    conflicts = {name: list(forms.values()) for name, forms in given.items() if len(forms) > 1}
    for name, values in conflicts.items():
        told = _(
            "conflict: {name} is answered differently in different cells ({answers}); none counts until you decide by hand"
        )
        notes.append(told.format(name=name, answers=listed(values)))
    return Read(answers, conflicts, notes)


def _form(question: Question, answer: Any) -> str:
    """Two answers of one form are the same answer: "a, c" and ["c", "a"], "48 GB" and "48  gb"."""
    verdict = judge(question, answer)
    said = verdict.answer if verdict.understood else answer
    return json.dumps(plain(said) if isinstance(said, str) else said, sort_keys=True)


def listed(answers: list[Any]) -> str:
    """Answers that are in conflict on one line, each cut to what a person reads; no word of a learner's is more than text."""
    shown = [clean(json.dumps(answer, ensure_ascii=False), 80) for answer in answers[:_SHOWN]]
    more = [_("{count} more").format(count=len(answers) - _SHOWN)] if len(answers) > _SHOWN else []
    return "; ".join(shown + more)


def _sources(content: Any) -> list[str] | None:
    """Sources of the cells that may hold answers, of notebooks of format 4 and 3: all but text, and text that is nothing but
    answers, which is an answer's cell whose kind was changed."""
    if not isinstance(content, dict):
        return None
    cells = content.get("cells")
    if cells is None and isinstance(content.get("worksheets"), list):
        cells = [c for sheet in content["worksheets"] if isinstance(sheet, dict) for c in sheet.get("cells") or []]
    if not isinstance(cells, list):
        return None
    sources = []
    for cell in cells:
        if not isinstance(cell, dict):
            continue
        source = cell.get("source", cell.get("input", ""))
        if isinstance(source, list):
            source = "".join(part for part in source if isinstance(part, str))
        if not isinstance(source, str) or "answers" not in source:
            continue
        lines = [line for line in source[:LARGEST_SOURCE].splitlines() if line.strip()]
        if cell.get("cell_type") not in ("markdown", "heading") or all(_LINE.match(line) for line in lines):
            # Half of a surrogate pair is valid JSON, and no text that Python parses.
            sources.append(source.encode("utf-8", "replace").decode("utf-8"))
    return sources


def assignments(source: str) -> list[tuple[str, Any]]:
    """`answers["name"] = literal` statements of a cell; of a cell that is no Python, those that stand on a line alone."""
    found: list[tuple[str, Any]] = []
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for line in source.splitlines():
            match = _LINE.match(line)
            if match:
                found += [(match[2], value) for value in _literal(match[3].strip())]
        return found
    for statement in statements:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.value, ast.Name)
                and target.value.id == "answers"
                and isinstance(target.slice, ast.Constant)
                and isinstance(target.slice.value, str)
            ):
                found += [(target.slice.value, value) for value in _literal(statement.value)]
    return found


def _literal(node: ast.expr | str) -> list[Any]:
    """The value of a literal as a list of one, or none."""
    try:
        return [ast.literal_eval(node)]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return []


def filled(bank: Bank, answers: dict[str, Any], conflicts: dict[str, list[Any]] | None = None) -> NotebookNode:
    """A fresh notebook of the assignment with a learner's answers in it: what is graded instead of the submitted file, so
    that no cell, flag or point that a learner changed can matter. Answers in conflict stand in it as comments."""
    notebook = build(bank)
    for cell in notebook.cells:
        name = cell.id.removesuffix("-answer")
        if not cell.id.endswith("-answer"):
            continue
        if name in answers:
            cell.source = answer_line(name, _writable(answers[name]))
        elif conflicts and name in conflicts:
            told = _("different cells answer {name} differently; none was chosen:").format(name=name)
            values = [clean(json.dumps(value, ensure_ascii=False)) for value in conflicts[name][:_KEPT]]
            cell.source = "\n".join(["# " + told, *(f"#     {value}" for value in values), answer_line(name, "")])
    return notebook


def _writable(answer: Any) -> Any:
    """An answer as it can be written down and read again. What is no text, number, list or pairs is no answer; written as
    text it is judged as such."""
    if isinstance(answer, (set, frozenset)):
        answer = sorted(part for part in answer if isinstance(part, str))
    if isinstance(answer, str):
        # Half of a surrogate pair can be typed as an escape, and cannot be written to any file.
        return answer[:_LONGEST].encode("utf-8", "replace").decode("utf-8")
    if isinstance(answer, int) and answer.bit_length() > 1000:
        return "a number of more than 300 digits"  # Python refuses to write one of some thousand digits
    if isinstance(answer, (int, float)):
        return answer
    if isinstance(answer, (list, tuple)) and all(isinstance(part, str) for part in answer):
        return [_writable(part) for part in answer[:_LONGEST]]
    if isinstance(answer, dict) and all(isinstance(part, str) for pair in answer.items() for part in pair):
        return {_writable(left): _writable(right) for left, right in answer.items()}
    return f"no answer, but a {type(answer).__name__}"


def write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
