"""A class of sixty, a third of it hostile: what each student hands in for the quiz of lesson 1, and what it is worth."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

RIGHT = {"q1": '"c"', "q2": '["a", "c", "e"]', "q3": '"48 GB"'}
WRONG = {"q1": '"a"', "q2": '"b, d"', "q3": '"96 GB"'}
Notebook = dict[str, Any]


def code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}


def with_answers(notebook: Notebook, answers: dict[str, str]) -> Notebook:
    """A copy with `answers` (name -> Python source) in the cells that ask for them."""
    made = copy.deepcopy(notebook)
    for cell in made["cells"]:
        for name, source in answers.items():
            if "".join(cell["source"]).startswith(f'answers["{name}"]'):
                cell["source"] = f'answers["{name}"] = {source}'
    return made


def _each(change: Callable[[dict[str, Any]], Any]) -> Callable[[Notebook], None]:
    def change_all(notebook: Notebook) -> None:
        for cell in notebook["cells"]:
            change(cell)

    return change_all


def _graded(change: dict[str, Any]) -> Callable[[Notebook], None]:
    return _each(lambda cell: cell["metadata"].get("nbgrader", {}).update(change) if "nbgrader" in cell["metadata"] else None)


def _version_3(notebook: Notebook) -> Notebook:
    cells = [{"cell_type": "code", "input": c["source"], "outputs": [], "language": "python"} for c in notebook["cells"]]
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]}


def _minor(number: int, ids: bool, major: int = 4) -> Callable[[Notebook], None]:
    def change(notebook: Notebook) -> None:
        notebook.update(nbformat=major, nbformat_minor=number)
        for cell in notebook["cells"]:
            if not ids:
                cell.pop("id", None)

    return change


def _output(cell: dict[str, Any]) -> None:
    if cell["cell_type"] == "code":
        cell["outputs"] = [
            {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": "1000"}}
        ]


# name: (what the answers are worth, how the file of right answers is changed). Nobody of these loses or gains by it.
ALTERED: dict[str, tuple[float, Callable[[Notebook], Any]]] = {
    "copied-cell": (3, lambda n: n["cells"].append(copy.deepcopy(n["cells"][3]))),
    "copied-grade-cells": (3, lambda n: n["cells"].extend(copy.deepcopy(n["cells"]))),
    "same-cell-ids": (3, _each(lambda cell: cell.update(id="same"))),
    "lost-metadata": (3, _each(lambda cell: cell.update(metadata={}))),
    "no-metadata-at-all": (3, lambda n: n.update(metadata=None)),
    "foreign-kernel": (3, lambda n: n["metadata"].update(kernelspec={"name": "ir", "language": "R", "display_name": "R"})),
    "points-1000": (3, _graded({"points": 1000, "schema_version": 99})),
    "points-negative": (3, _graded({"points": -5})),
    "grade-ids-swapped": (3, _graded({"grade_id": "q1"})),
    "not-graded-flags": (3, _graded({"grade": False, "locked": False, "solution": True})),
    "grade-cells-deleted": (3, lambda n: n.update(cells=[c for c in n["cells"] if "nbgrader" not in c["metadata"]])),
    "retyped-raw": (3, _each(lambda cell: cell.update(cell_type="raw"))),
    "retyped-markdown": (3, _each(lambda cell: cell.update(cell_type="markdown"))),
    "shuffled": (3, lambda n: n["cells"].reverse()),
    "format-3": (3, _version_3),
    "format-4.0": (3, _minor(0, ids=False)),
    "format-4.4-with-ids": (3, _minor(4, ids=True)),
    "format-4.5-without-ids": (3, _minor(5, ids=False)),
    "format-5": (3, _minor(0, ids=True, major=5)),
    "large-output": (3, lambda n: n["cells"][2].update(outputs=[{"output_type": "stream", "text": "9" * 19_000_000}])),
    "claims-1000-points": (3, _each(_output)),
    "many-cells": (3, lambda n: n["cells"].extend({"cell_type": "code", "source": "1"} for _ in range(50_000))),
}

# name: the source of the answer to q1, beside wrong answers to the others. None is the right choice, so none earns.
ODD_ANSWERS = {
    "surrogate": '"\\ud800"',
    "null": '"c\\x00"',
    "true": "True",
    "none": "None",
    "huge-int": "0x" + "f" * 9000,
    "huge-ints": "[0x" + "f" * 9000 + "]",
    "huge-tuple": "(0x" + "f" * 9000 + ",)",
    "infinite": "1e400",
    "not-a-number": "1e400 - 1e400",
    "list-in-list": '[["c"]]',
    "every-choice": '["a", "b", "c", "d"]',
    "dict": '{"c": "c"}',
    "dict-of-ints": "{1: 0x" + "f" * 9000 + "}",
    "call": 'str("c")',
    "class": '"".__class__.__base__.__subclasses__()',
    "deep": "[" * 190 + "]" * 190,
    "deeper": "-" * 60_000 + "1",
    "sum": "+".join(["1"] * 50_000),
    "long": '"' + "c" * 150_000 + '"',
    "script": '"<script>alert(1)</script>"',
    "escape": '"\\x1b[2J\\nada: 3 of 3"',
}

NAN = b'{"cells": [], "metadata": {"score": NaN, "max": -Infinity}, "nbformat": 4, "nbformat_minor": 5}'
TWICE = b'{"cells": [{"cell_type": "code", "source": "answers[\\"q1\\"] = \\"c\\""}], "cells": []}'
# name: the bytes of the file. None holds an answer that counts.
FILES = {
    "empty": b"",
    "cut-off": b'{"cells": [',
    "nested": b"[" * 200_000,
    "nested-objects": b'{"cells":' * 100_000,
    "nan-literals": NAN,
    "duplicate-keys": TWICE,
    "null-bytes": b"\0" * 4096,
    "huge-number": b'{"nbformat": ' + b"9" * 9000 + b', "cells": []}',
    "cells-no-list": b'{"cells": {"source": 1}, "nbformat": 4}',
    "cells-of-anything": b'{"cells": [1, null, [], "x", {"source": 5, "cell_type": "code"}, {"source": [1, {}]}]}',
    "lone-surrogate": b'{"cells": [{"cell_type": "code", "source": "answers[\\"q1\\"] = \\"c\\" # \\ud800 ("}]}',
    "megabytes-of-code": json.dumps({"cells": [code('answers["q9"] = 1\n' + "a\n" * 3_000_000)]}).encode(),
    "utf-16": '{"cells": []}'.encode("utf-16"),
    "not-text": bytes(range(256)),
}


def hand_in(course: Path, student: str, data: bytes, name: str = "quiz-01.ipynb") -> Path:
    path = course / "submitted" / student / "quiz-01" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def odd_folders(course: Path, right: bytes) -> dict[str, str]:
    """Hand in what is not simply a file; name as the report shows it -> a part of what the instructor is told."""
    said: dict[str, str] = {}

    def quiz(student: str, told: str) -> Path:
        said[student] = told
        folder = course / "submitted" / student / "quiz-01"
        folder.mkdir(parents=True)
        return folder / "quiz-01.ipynb"

    secret = course / "secret.ipynb"
    secret.write_bytes(right)
    quiz("a-link", "is a link and was not read").symlink_to(secret)
    quiz("a-dangling-link", "is a link and was not read").symlink_to("/nowhere")
    os.mkfifo(quiz("a-pipe", "no notebook"))
    quiz("a-folder", "no notebook").mkdir()
    path = quiz("unreadable-file", "cannot be read")
    path.write_bytes(right)
    path.chmod(0)
    path = quiz("unreadable-folder", "not graded: the folder cannot be read")
    path.write_bytes(right)
    path.parent.chmod(0)
    path = quiz("unreadable-student", "not graded: the folder cannot be read")
    path.write_bytes(right)
    path.parent.parent.chmod(0)
    (course / "submitted" / "linked-folder").symlink_to(course / "submitted" / "honest-1")
    said["linked-folder"] = "is a link to another place"
    (course / "submitted" / "file-for-folder").mkdir()
    (course / "submitted" / "file-for-folder" / "quiz-01").write_bytes(right)
    said["file-for-folder"] = "is no folder"
    for student in ("=cmd|'calc'!A0", "..", "..hidden", "a\nhonest-1: 3 of 3", "<script>", "a,b", "-2+3", "\u202eevil"):
        if student != "..":
            hand_in(course, student, right)
            said["".join(c if c.isprintable() else "�" for c in student)] = "not graded: the folder's name is no student id"
    os.makedirs(os.fsencode(course / "submitted") + b"/\xff\xfe/quiz-01")
    said["��"] = "not graded: the folder's name is no student id"
    return said
