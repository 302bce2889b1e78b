"""A lesson run from top to bottom, timed, in a folder and with belongings of its own: nothing of whoever runs it is read.

Needs the extra `lab`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from quizzes.say import _

ROOT = Path(__file__).parent.parent
PATIENCE = 600
"""Seconds that one cell may take."""
_SETTINGS, _CATALOGUES = "OFFLOAD_LAB_", "OFFLOAD_LAB_LOCALES"


class RunError(RuntimeError):
    """A lesson did not run to its end; the message names the cell and what it said."""


@dataclass(frozen=True)
class Ran:
    """`seconds` are those of all cells, from the first's start to the last's end; starting the kernel is not among them.

    `widgets` are those that the cells made, by their ids. `folders` are those that it ran in, by what a reader may be told
    in their place.
    """

    notebook: nbformat.NotebookNode
    seconds: float
    widgets: dict[str, Any] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)


def widgets(client: NotebookClient) -> dict[str, Any]:
    """The widgets that the cells of a client's notebook made, by their ids, as a notebook's metadata keep them."""
    return {key: {"model_name": state.get("_model_name"), "state": state} for key, state in client.widget_state.items()}


def run(
    text: str,
    patience: float = PATIENCE,
    name: str = "lesson.ipynb",
    beside: Mapping[str, str] | None = None,
    language: str = "en",
    cache: Path | None = None,
) -> Ran:
    """Run the notebook in `text`, in a new kernel and a folder with nothing but itself, as the file `name`, and the notebooks
    `beside` it. `cache`: a folder that outlives it, so that what is compiled once a machine isn't compiled in each lesson.
    Raises RunError."""
    notebook = nbformat.reads(text, as_version=4)
    with tempfile.TemporaryDirectory(prefix="lesson-") as folder, tempfile.TemporaryDirectory(prefix="belongings-") as own:
        for file, content in {**(beside or {}), name: text}.items():
            (Path(folder) / file).write_text(content, encoding="utf-8", newline="\n")
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        # The learner's own answers, settings and the figures of another machine must not get into what is shown to others.
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_SETTINGS) or key == _CATALOGUES}
        kept |= {
            "OFFLOAD_LAB_PROGRESS": f"{own}/progress.json",
            "OFFLOAD_LAB_HARDWARE": f"{own}/hardware.json",
            "OFFLOAD_LAB_LANG": language,
            "OFFLOAD_LAB_LOCALE": language,
            "XDG_CACHE_HOME": str(cache or f"{own}/cache"),
            # Few learners have DeepSpeed, which compiles for minutes on a cold cache.
            "OFFLOAD_LAB_PEERS": f"{own}/peers",
            "JPY_SESSION_NAME": str(Path(folder) / name),
            "PYTHONPATH": path,
        }
        client = NotebookClient(
            notebook,
            timeout=patience,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            # Else it warns that its sockets on this machine are plain, and shows its own inside when it is interrupted. What a
            # cell raises comes another way.
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
        seconds = 0.0
        with client.setup_kernel(env=kept):
            for index, cell in enumerate(notebook.cells):
                begun = time.perf_counter()
                try:
                    client.execute_cell(cell, index)
                except CellTimeoutError:
                    said = _("cell {cell} was not done after {seconds:g} s")
                    raise RunError(said.format(cell=cell.id, seconds=patience)) from None
                except DeadKernelError:
                    raise RunError(_("the kernel died in cell {cell}").format(cell=cell.id)) from None
                except CellExecutionError as error:
                    said = _("cell {cell} ended with {error}: {why}")
                    raise RunError(said.format(cell=cell.id, error=error.ename, why=error.evalue)) from None
                seconds += time.perf_counter() - begun
    return Ran(notebook, seconds, widgets(client), {folder: "~/course", own: "~"})
