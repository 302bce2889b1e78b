"""Steps in a column, and which of them nothing orders: the pairs that are expected beside a learner's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from course.recorded import Step
from offload_lab.plots.drawing import MARGIN, Drawing
from offload_lab.plots.palette import LANES, LIMIT, Style
from offload_lab.plots.shown import Shown
from offload_lab.plots.tables import Table
from quizzes.say import _, _n

Pair = tuple[int, int]
_ROW, _COLUMN, _MOST = 24.0, 26.0, 10
_MISSING = Style("missing", "missing", LIMIT, "M0,0 L8,8 M0,8 L8,0", "x")


@dataclass(frozen=True)
class Pairs(Shown):
    """`expected` and `theirs`: pairs (earlier, later) of numbers of `steps`. A pair that names no step is told, not drawn."""

    title: str
    steps: Sequence[Step]
    expected: Collection[Pair]
    theirs: Collection[Pair]

    def rows(self) -> list[tuple[Pair, bool, bool]]:
        """Of each pair: is it expected, is it theirs."""
        return [(pair, pair in self.expected, pair in self.theirs) for pair in sorted({*self.expected, *self.theirs})]

    def summary(self) -> list[str]:
        missing, many = len({*self.expected} - {*self.theirs}), len({*self.theirs} - {*self.expected})
        return [
            _n("{count} pair is missing.", "{count} pairs are missing.", missing).format(count=missing),
            _n("{count} pair is not expected.", "{count} pairs are not expected.", many).format(count=many),
        ]

    def tables(self) -> list[Table]:
        yes, no = _("yes"), _("no")
        rows = [(f"{pair}", yes if wanted else no, yes if given else no) for pair, wanted, given in self.rows()]
        return [Table(_("Pairs that nothing orders"), (_("pair"), _("expected"), _("yours")), rows)]

    def svg(self) -> str:
        drawing = Drawing(self.title, " ".join(self.summary()))
        styles = {(True, True): LANES["cpu"], (True, False): _MISSING, (False, True): LANES["disk-read"]}
        words = (_("expected, and yours"), _("expected, and missing"), _("yours, and not expected"))
        named = {key: (styles[key], told) for key, told in zip(styles, words, strict=True)}
        shown = [row for row in self.rows() if min(row[0]) >= 0 and max(row[0]) < len(self.steps)]
        top, left = drawing.below + 8, drawing.width - MARGIN - _COLUMN * min(max(len(shown), 1), _MOST)
        for number, step in enumerate(self.steps):
            y = top + number * _ROW
            drawing.text(MARGIN, y + 15, f"{number}  {step.name}", room=left - MARGIN - 110)
            after = ", ".join(map(str, step.after)) or "-"
            drawing.text(left - 12, y + 15, _("after {numbers}").format(numbers=after), role="faint", anchor="end", room=100)
            drawing.line(f"M{MARGIN} {y + _ROW - 3:.1f}H{drawing.width - MARGIN}", "grid")
        for column, ((one, other), wanted, given) in enumerate(shown[:_MOST]):
            style, x = styles[wanted, given], left + column * _COLUMN
            first, last = sorted((one, other))
            drawing.line(f"M{x + 8:.1f} {top + first * _ROW + 10:.1f}V{top + last * _ROW + 10:.1f}", thick=2)
            for end in (first, last):
                drawing.block(style, x, top + end * _ROW + 2, 16, 16)
        drawing.below = top + len(self.steps) * _ROW + 4
        drawing.key([named[key] for key in named if any((wanted, given) == key for _pair, wanted, given in shown)])
        if len(shown) > _MOST:
            drawing.paragraph(_("The first {count} pairs are drawn; the table has all.").format(count=_MOST))
        return drawing.document(self.summary(), "pairs-plot")
