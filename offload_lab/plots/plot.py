"""The memory plot: its data, and the forms in which it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offload_lab.plots.shown import Shown, bundled
from offload_lab.plots.svg import memory_svg
from offload_lab.plots.text import memory_text

if TYPE_CHECKING:
    from offload_lab.meter import Reading


@dataclass(frozen=True)
class MemoryPlot(Shown):
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
        """The plot as MIME types for a notebook's output; `remark` is a sentence beneath it."""
        text = self.text()
        return bundled(self.svg(), text, text, remark)
