"""A lesson run from top to bottom, timed, in a folder and with belongings of its own: nothing of whoever runs it is read.

Needs the extra `lab`.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from quizzes.say import _

ROOT = Path(__file__).parent.parent
PATIENCE = 600
"""Seconds that one cell may take."""


class RunError(RuntimeError):
    """A lesson did not run to its end; the message names the cell and what it said."""


@dataclass(frozen=True)
class Ran:
    """`seconds` are those of all cells, from the first's start to the last's end; starting the kernel is not among them."""

    notebook: nbformat.NotebookNode
    seconds: float


def run(text: str, patience: float = PATIENCE) -> Ran:
    """Run the notebook in `text`, in a new kernel and an empty folder. Raises RunError."""
    notebook = nbformat.reads(text, as_version=4)
    with tempfile.TemporaryDirectory(prefix="lesson-") as folder:
        client = NotebookClient(notebook, timeout=patience, kernel_name="python3", resources={"metadata": {"path": folder}})
        # The learner's own answers and the figures of another machine must not get into what is shown to others.
        with tempfile.TemporaryDirectory(prefix="belongings-") as own:
            path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            kept = {
                "OFFLOAD_LAB_PROGRESS": f"{own}/progress.json",
                "OFFLOAD_LAB_HARDWARE": f"{own}/hardware.json",
                "XDG_CACHE_HOME": f"{own}/cache",
                "PYTHONPATH": path,
            }
            seconds = 0.0
            with client.setup_kernel(env={**os.environ, **kept}):
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
    return Ran(notebook, seconds)
