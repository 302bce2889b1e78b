"""Grading a class: seconds a submission beside nbgrader's own autograde, and what altered notebooks gain.

`python -m bench.grading --json [--mutated 2000] [--timed 4] [--seed 0]`
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from quizzes.nbgrader.course import build_assignment, grade
from quizzes.nbgrader.notebook import answer_line

Cells = list[dict[str, Any]]
ANSWERS = {"q1": "c", "q2": ["a", "c"], "q3": "7"}  # right, half right, wrong


def answered(released: Path) -> dict[str, Any]:
    """The released notebook with ANSWERS in it."""
    notebook: dict[str, Any] = json.loads(released.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for name, answer in ANSWERS.items():
            if "".join(cell["source"]).startswith(f'answers["{name}"]'):
                cell["source"] = answer_line(name, answer)
    return notebook


def mutate(notebook: dict[str, Any], chance: random.Random) -> bytes:
    """The file after one to four alterations, none of which writes another answer."""
    notebook = json.loads(json.dumps(notebook))
    cells: Cells = notebook["cells"]
    for _ in range(chance.randint(1, 4)):
        cell = chance.choice(cells) if cells else {"metadata": {}}
        kind = chance.randrange(9)
        if kind == 0 and cells:
            cells.remove(cell)
        elif kind == 1:
            cells.insert(chance.randint(0, len(cells)), json.loads(json.dumps(cell)))
        elif kind == 2:
            chance.shuffle(cells)
        elif kind == 3:
            cell["metadata"] = {}
        elif kind == 4:
            cell["metadata"] = {"nbgrader": {"grade": True, "points": 1e9, "solution": True, "grade_id": "x"}}
        elif kind == 5:
            cell["cell_type"] = chance.choice(["raw", "markdown", "code", 7])
        elif kind == 6:
            notebook["metadata"] = chance.choice([{}, {"kernelspec": {"name": "ir"}}, []])
        elif kind == 7:
            notebook["nbformat"] = chance.choice([1, 3, 4, 9, "4"])
        else:
            cell["outputs"] = [{"output_type": "execute_result", "data": {"text/plain": "1e9"}, "metadata": {}}]
    data = json.dumps(notebook).encode()
    if chance.random() < 0.15:
        data = chance.choice([data[: chance.randrange(len(data))], b"", b"\xff" + data, b"[" * 20_000, b"null"])
    return data


def hand_in(course: Path, student: str, data: bytes) -> None:
    path = course / "submitted" / student / "quiz-01" / "quiz-01.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)


def own_autograde(course: Path, students: int) -> float:
    """Seconds a submission of nbgrader's own autograde, which starts a kernel for each notebook."""
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.course_id = "offload-lab"
    config.CourseDirectory.db_url = f"sqlite:///{course / 'gradebook.db'}"
    config.Exchange.root = str(course / "exchange")
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    begin = time.perf_counter()
    for number in range(students):
        done = api.autograde("quiz-01", f"s{number}")
        if not done["success"]:
            raise SystemExit(f"nbgrader's own autograde failed: {done.get('error') or done.get('log')}")
    return (time.perf_counter() - begin) / students


def measure(mutated: int, timed: int, seed: int) -> dict[str, float | int]:
    """The five figures. `aborted` counts submissions without a result, `gained` scores above the unaltered one."""
    root = Path(tempfile.mkdtemp(prefix="bench-grading-"))
    try:
        course = root / "timed"
        honest = answered(build_assignment(course, "01"))
        for number in range(timed):
            hand_in(course, f"s{number}", json.dumps(honest).encode())
        shutil.copytree(course, root / "own")
        begin = time.perf_counter()
        reference = grade(course, "01").results[0].score
        ours = (time.perf_counter() - begin) / timed
        theirs = own_autograde(root / "own", timed)
        chance = random.Random(seed)
        many = root / "mutated"
        build_assignment(many, "01")
        for number in range(mutated):
            hand_in(many, f"m{number}", mutate(honest, chance))
        results = grade(many, "01").results if mutated else []
        return {
            "seconds_per_submission": round(ours, 4),
            "speedup_vs_nbgrader": round(theirs / ours, 1),
            "mutated": mutated,
            "aborted": mutated - sum(not any("could not grade" in note for note in r.notes) for r in results),
            "gained": sum(not 0 <= r.score <= reference for r in results),
        }
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--mutated", type=int, default=2000)
    parser.add_argument("--timed", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
        figures = measure(given.mutated, given.timed, given.seed)
    if given.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
