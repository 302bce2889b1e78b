"""`receipts.json`: the receipts that a learner hands in beside the notebook, as a JSON list of texts."""

from __future__ import annotations

import json
from pathlib import Path

from quizzes.answers import notebook_path
from quizzes.certificates.publish import publish
from quizzes.say import _

NAME = "receipts.json"
LARGEST = 8 << 20
_TRIES = 5


def hand_in(receipts: list[str], path: Path | None = None) -> str:
    """Add `receipts` to the file at `path` (a folder: the file of that name in it; None: beside the notebook, else here). The
    file is replaced in one step. Returns a sentence on what is in it, or why nothing was written."""
    if path is None:
        notebook = notebook_path()
        path = notebook.parent if notebook is not None else Path.cwd()
    path = path.expanduser()
    place = path / NAME if path.is_dir() else path
    if not receipts:
        return _("There is no receipt yet, so nothing was written: no answer of this quiz is judged.")
    try:
        before = held = _read(place)
        # Another notebook may write its own at the same moment: each looks again until its receipts are there.
        for _again in range(_TRIES):
            if held is None:
                said = _("{path} is no list of receipts; nothing was written. Move it away, or name another file.")
                return said.format(path=place)
            if set(receipts) <= set(held):
                break
            both = list(dict.fromkeys([*held, *receipts]))
            publish({place: json.dumps(both, indent=1).encode("ascii") + b"\n"})
            held = _read(place)
    except OSError as error:
        said = _("{path} was not written: {why}. Name another place: quiz.hand_in(path).")
        return said.format(path=place, why=error.strerror or error)
    said = _("{path} holds {count} receipts, {new} of them new. Hand it in beside the notebook.")
    new = len(set(receipts) - set(before or ()))
    return said.format(path=place, count=len(held or ()), new=new)


def _read(place: Path) -> list[str] | None:
    """The receipts that stand there; None where the file is none of ours. Raises OSError."""
    try:
        with place.open("rb") as file:
            content = json.loads(file.read(LARGEST))
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, list) and all(isinstance(one, str) for one in content) else None
