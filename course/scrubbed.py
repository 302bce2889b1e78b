"""Outputs of a notebook without what belongs to the machine that ran it: its folders, its name. Pure but for asking."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

_SHOWN = ("text/", "image/svg+xml")
_SHORT = 4
"""A machine whose name has fewer letters is called like something that a lesson may say."""


def of_this_machine(folders: Mapping[str, str]) -> dict[str, str]:
    """What must not be read on a page, and what is said in its place; the longest first. `folders` are those of the run."""
    root = str(Path(__file__).parent.parent)
    known = {**folders, root: "~/offload-lab"}
    if sys.prefix != sys.base_prefix:
        known[sys.prefix] = "~/offload-lab/.venv"
    known[str(Path.home())] = "~"
    known |= {str(Path(path).resolve()): told for path, told in known.items()}
    names = socket.gethostname(), socket.gethostname().split(".")[0]
    known |= {name: "this-machine" for name in names if len(name) >= _SHORT and name != "localhost"}
    known |= {escape(path): told for path, told in known.items()}
    return dict(sorted(((path, told) for path, told in known.items() if path != "/"), key=lambda pair: -len(pair[0])))


def scrubbed(text: str, known: Mapping[str, str]) -> str:
    """`text` with each of `known` replaced where it stands alone: "/people/me" is not in "/people/mean"."""
    if not known:
        return text
    found = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, known))})(?![\w-])")
    return found.sub(lambda match: known[match[0]], text)


def scrub(notebook: NotebookNode, widgets: Mapping[str, Any], known: Mapping[str, str]) -> None:
    """Replace in all that the notebook's cells have shown, in place; what their writers wrote stays."""
    for holder, key in (*_outputs(notebook), *_values(widgets)):
        if isinstance(holder[key], str):
            holder[key] = scrubbed(holder[key], known)


def _outputs(notebook: NotebookNode) -> Iterator[tuple[Any, str]]:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                yield output, "text"
            yield from ((output.data, kind) for kind in output.get("data", {}) if kind.startswith(_SHOWN))


def _values(widgets: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    for widget in widgets.values():
        state = widget.get("state", {})
        yield from ((state, key) for key in ("value", "description", "placeholder") if key in state)
