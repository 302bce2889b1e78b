"""A map of partitions over steps: what was read from disk, what was found in RAM, what was written. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from offload_lab.plots.cache_map import HIT, LOOKS, READ, WRITTEN, residency_flags
from offload_lab.plots.drawing import MARGIN, WIDTH, Drawing
from offload_lab.plots.tables import Table
from quizzes.figures.picture import Picture
from quizzes.figures.runs import Steps
from quizzes.say import _

LEFT, TALL, WIDEST = 118, 24, 130


@dataclass(frozen=True)
class Residency(Picture):
    steps: Steps

    def remark(self) -> str:
        return _(
            "Simulated. Each cell is one partition in one step: at the left it was read from disk, or found in RAM; at the "
            "right, where there is a w, written to disk."
        )

    def cells(self) -> list[list[int]]:
        """Partitions × steps: sums of READ, HIT and WRITTEN."""
        return [[int(flags) for flags in row] for row in residency_flags(self.steps.events())]

    def summary(self) -> list[str]:
        return [
            _("Partition {number}: {steps}.").format(
                number=number,
                steps="; ".join(
                    _("step {number}, {what}").format(number=step, what=_said(flags)) for step, flags in enumerate(row, 1)
                ),
            )
            for number, row in enumerate(self.cells())
        ]

    def tables(self) -> list[Table]:
        headers = ("", *(_("step {number}").format(number=step) for step in range(1, self.steps.steps + 1)))
        rows = [(_("partition {number}").format(number=number), *map(_said, row)) for number, row in enumerate(self.cells())]
        return [Table(_("What happened to each partition"), headers, rows)]

    def draw(self, drawing: Drawing) -> None:
        cells = self.cells()
        wide = min((WIDTH - LEFT - MARGIN) / self.steps.steps, WIDEST)
        top = drawing.below + 22
        for step in range(self.steps.steps):
            named = _("step {number}").format(number=step + 1)
            drawing.text(LEFT + (step + 0.5) * wide, top - 8, named, room=wide, role="faint", anchor="middle")
        for number, row in enumerate(cells):
            y = top + number * TALL
            drawing.text(LEFT - 10, y + 16, _("partition {number}").format(number=number), room=LEFT - MARGIN, anchor="end")
            for step, flags in enumerate(row):
                x = LEFT + step * wide
                for flag, left, size, word in (
                    (READ, 0.0, 0.68, _("read")),
                    (HIT, 0.0, 0.68, _("in RAM")),
                    (WRITTEN, 0.7, 0.26, _("w")),
                ):
                    if flags & flag:
                        drawing.block(LOOKS[flag], x + left * wide, y + 1, size * wide, TALL - 2)
                        drawing.on(LOOKS[flag], x + (left + size / 2) * wide, y + 16, word, size * wide)
        drawing.below = top + len(cells) * TALL + 6
        drawing.key((LOOKS[flag], word) for flag, word in _words())


def _words() -> list[tuple[int, str]]:
    return [(READ, _("read")), (HIT, _("in RAM")), (WRITTEN, _("written"))]


def _said(flags: int) -> str:
    return ", ".join(word for flag, word in _words() if flags & flag) or "-"
