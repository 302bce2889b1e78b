"""The learner's side of the pipes: run the text of a cell, then answer one case after another. Standard library only.

Nothing here is trusted: a learner's code shares this process and can change all of it. It only ever sees arguments; what is
expected of a result stays with the parent, which reads the lines that come out as data.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def serve() -> None:
    """Read lines from fd 0, write lines to fd 1. Learners' print goes to fd 2, which the parent reads up to a limit."""
    jobs = os.fdopen(os.dup(0), encoding="utf-8")
    results = os.dup(1)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    start = json.loads(jobs.readline())
    _say(results, _load(start))
    for line in jobs:
        _say(results, _answer(json.loads(line)))


_space: dict[str, Any] = {"__name__": "exercise", "__builtins__": __builtins__}


def _load(start: dict[str, Any]) -> dict[str, Any]:
    try:
        exec(compile(start["source"], "<your cell>", "exec"), _space)
    except BaseException as error:  # whatever a learner raises is told, SystemExit too
        return {"token": start["token"], "error": _told(error)}
    if not callable(_space.get(start["function"])):
        return {"token": start["token"], "error": f"there is no function {start['function']}"}
    _space["__function__"] = _space[start["function"]]
    return {"token": start["token"], "value": None}


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"token": case["token"], "value": _plain(_space["__function__"](*case["arguments"]))}
    except BaseException as error:
        return {"token": case["token"], "error": _told(error)}


def _plain(value: Any) -> Any:
    """Tuples and bytes as lists; whatever has `tolist` (a tensor, an array) as what that gives. Others raise TypeError."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (list, tuple, bytes, bytearray):
        return [_plain(item) for item in value]
    if type(value) is dict:
        if not all(type(key) is str for key in value):
            raise TypeError("a dict that is returned has strings as keys")
        return {key: _plain(item) for key, item in value.items()}
    if callable(getattr(value, "tolist", None)):
        return _plain(value.tolist())
    raise TypeError(f"a result is made of numbers, strings, lists and dicts, not of {type(value).__name__}")


def _told(error: BaseException) -> str:
    # The tail of the traceback that lies in the learner's own cell: which line it was.
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "<your cell>":
            line = step.tb_lineno
        step = step.tb_next
    where = f" (line {line} of the cell)" if line else ""
    return f"{type(error).__name__}: {str(error)[:300]}{where}"


def _say(results: int, message: dict[str, Any]) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(results, data) :]


if __name__ == "__main__":
    sys.exit("started by jail.py")
