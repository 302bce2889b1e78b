"""What every figure of a question is: a picture, the same numbers in words, and a table of them. Pure."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from offload_lab.plots.drawing import Drawing
from offload_lab.plots.lettering import clean
from offload_lab.plots.shown import Shown
from quizzes.numbers import render
from quizzes.question import BankError
from quizzes.say import _


class FigureError(BankError):
    """A figure cannot be drawn; the message names the parameter that is wrong, and the question where it is known."""


@dataclass(frozen=True)
class Picture(Shown):
    """Neither the picture nor the words say what to make of the numbers. `locale`: in which numbers are written."""

    title: str
    locale: str

    def draw(self, drawing: Drawing) -> None:
        """Put the shapes into `drawing`, below its title."""
        raise NotImplementedError

    def remark(self) -> str:
        """How to read the picture, in a sentence or two; stands under the title."""
        raise NotImplementedError

    def summary(self) -> list[str]:
        """Every bar of the picture with its numbers."""
        raise NotImplementedError

    def kind(self) -> str:
        """The class of the <svg>."""
        return f"question-{type(self).__name__.lower()}"

    def svg(self) -> str:
        return self._svg

    @cached_property
    def _svg(self) -> str:
        drawing = Drawing(self.title, self.remark())
        self.draw(drawing)
        return drawing.document([self.remark(), *self.summary()], self.kind())

    def alternative(self) -> str:
        """What a screen reader says in place of the picture."""
        return clean("\n".join([self.title, self.remark(), *self.summary()]))

    def text(self) -> str:
        """For where no picture can be shown: the title, how to read it, the table."""
        head = "\n".join([clean(self.title), self.remark()])
        return "\n\n".join([head, *(table.text() for table in self.tables() if table.rows)])

    def html(self) -> str:
        """An image with its alternative text, and beneath it the table, folded. One line, so that it is one block in Markdown.

        An <img> with its data inside is the one form that JupyterLab, Notebook 7 and VS Code show in a text cell as well as
        beneath a code cell: an attachment may be no SVG in JupyterLab, and Colab shows no attachments at all.
        """
        data = base64.b64encode(self.svg().encode()).decode()
        words = escape(self.alternative()).replace("\n", "&#10;")
        tables = "".join(table.html() for table in self.tables() if table.rows).replace("\n", " ")
        return (
            f'<div><img src="data:image/svg+xml;base64,{data}" alt="{words}" style="max-width: 100%; height: auto">'
            f"<details><summary>{escape(_('The figure as a table'))}</summary>{tables}</details></div>"
        )

    def bundle(self, remark: str = "") -> dict[str, str]:
        """The figure as MIME types for a notebook's output; `remark` is a sentence beneath it."""
        html = self.html() + (f"<p>{escape(remark)}</p>" if remark else "")
        return {"text/html": html, "image/svg+xml": self.svg(), "text/plain": f"{self.text()}\n{remark}".rstrip()}

    def public(self) -> dict[str, Any]:
        """What another program needs to show it: title, svg, alternative, and tables with their caption, headers and rows."""
        tables = [
            {"caption": table.caption, "headers": list(table.headers), "rows": [list(row) for row in table.rows]}
            for table in self.tables()
        ]
        return {"title": self.title, "svg": self.svg(), "alternative": self.alternative(), "tables": tables}

    def number(self, value: float) -> str:
        """`value` to a hundredth, as the locale writes it."""
        return render(round(value, 2), self.locale)

    def milliseconds(self, seconds: float) -> str:
        return _("{number} ms").format(number=self.number(seconds * 1000))

    def size(self, nbytes: float) -> str:
        """Bytes in MB below a gigabyte, else in GB."""
        if nbytes < 1e9:
            return _("{number} MB").format(number=self.number(nbytes / 1e6))
        return _("{number} GB").format(number=self.number(nbytes / 1e9))
