"""The memory plot: its data, and the forms in which it is shown."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from offload_lab.meter import Reading
from offload_lab.plots.svg import memory_svg
from offload_lab.plots.text import memory_text


@dataclass(frozen=True)
class MemoryPlot:
    """Memory over time of one or more runs. Shows itself in a notebook as a picture, in a terminal as text."""

    series: Mapping[str, Sequence[Reading]]
    title: str = "Memory over time"
    limit_bytes: int | None = None
    prediction_bytes: int | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    """What became of a run, by its name: "out of memory in step 1"."""

    def svg(self) -> str:
        return memory_svg(
            self.series,
            title=self.title,
            limit_bytes=self.limit_bytes,
            prediction_bytes=self.prediction_bytes,
            notes=self.notes,
        )

    def text(self) -> str:
        return memory_text(
            self.series,
            title=self.title,
            limit_bytes=self.limit_bytes,
            prediction_bytes=self.prediction_bytes,
            notes=self.notes,
        )

    def bundle(self, remark: str = "") -> dict[str, str]:
        """The plot as MIME types for a notebook's output; `remark` is a sentence beneath it.

        As HTML it is an image with the text twin as its alternative text: a front end shows that without trusting the
        notebook, where it refuses a bare SVG, and needs no kernel and no script for it.
        """
        svg, text = self.svg(), self.text()
        data = base64.b64encode(svg.encode()).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(text)}" style="max-width: 100%; height: auto">'
        html = f"{image}<p>{escape(remark)}</p>" if remark else image
        return {"text/html": html, "image/svg+xml": svg, "text/plain": f"{text}\n{remark}".rstrip()}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()

    def __str__(self) -> str:
        return self.text()
