"""What every figure is: a picture, its text twin, and the forms in which a notebook shows the two."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any, Literal

from offload_lab.plots.lettering import clean
from offload_lab.plots.tables import Table

Source = Literal["measured", "predicted", "quoted"]
SOURCES: tuple[Source, ...] = ("measured", "predicted", "quoted")


class Shown:
    """A figure. Shows itself in a notebook as a picture over its tables, in a terminal as text."""

    title: str

    def summary(self) -> list[str]:
        """What the figure says, in a few sentences; the alternative text of the picture."""
        raise NotImplementedError

    def tables(self) -> list[Table]:
        """The figures behind the picture."""
        raise NotImplementedError

    def svg(self) -> str:
        """A static picture without script, image or font, as an <svg> element with a <title> and a <desc>."""
        raise NotImplementedError

    def text(self) -> str:
        """The text twin: the title, the summary, and the tables."""
        parts = [clean(self.title), *self.summary()]
        return "\n\n".join(["\n".join(parts), *(table.text() for table in self.tables() if table.rows)])

    def bundle(self, remark: str = "") -> dict[str, str]:
        """The figure as MIME types for a notebook's output; `remark` is a sentence beneath it."""
        alternative = "\n".join([clean(self.title), *self.summary()])
        return bundled(self.svg(), alternative, self.text(), remark, self.tables())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()

    def __str__(self) -> str:
        return self.text()


def bundled(svg: str, alternative: str, text: str, remark: str = "", tables: Sequence[Table] = ()) -> dict[str, str]:
    """A picture and its text as MIME types for a notebook's output.

    As HTML it is an image with alternative text: a front end shows that without trusting the notebook, where it refuses a
    bare SVG, and needs no kernel and no script for it. Beneath it are the tables, folded, which a screen reader can walk.
    """
    data = base64.b64encode(svg.encode()).decode()
    html = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alternative)}" style="max-width: 100%; height: auto">'
    filled = "".join(table.html() for table in tables if table.rows)
    if filled:
        html += f"<details><summary>The figures as a table</summary>{filled}</details>"
    if remark:
        html += f"<p>{escape(remark)}</p>"
    return {"text/html": html, "image/svg+xml": svg, "text/plain": f"{text}\n{remark}".rstrip()}


def checked_source(source: str) -> str:
    """Raises ValueError unless `source` says what kind of figures these are: nothing predicted is shown as measured."""
    if source not in SOURCES:
        raise ValueError(f"source={source!r}: say where the figures are from, one of {', '.join(map(repr, SOURCES))}")
    return source
