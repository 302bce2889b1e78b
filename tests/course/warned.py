"""What the cells of a lesson that was run said on standard error."""

from __future__ import annotations

from collections.abc import Iterable

from nbformat import NotebookNode

# Said once on a machine, whatever cell comes first to an update; a machine where nothing ran before says it in a lesson.
_COMPILING = "offload_lab: compiling "


def warned(cells: Iterable[NotebookNode]) -> list[tuple[str, str]]:
    """Cell and line, but for the announcement that loops are being compiled."""
    return [
        (cell.id, line)
        for cell in cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stderr"
        for line in output.text.splitlines()
        if not line.startswith(_COMPILING)
    ]
