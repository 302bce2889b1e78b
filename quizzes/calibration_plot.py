"""The calibration as a figure: an SVG of our own, which every front end shows, with the table as its text. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from quizzes.calibration import Bin, bins, table
from quizzes.say import _

_SIDE, _EDGE = 260, 46


class Shown(str):
    """A text that a notebook shows as a figure above the same text."""

    figure: str

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'{self.figure}<pre style="font-size: inherit">{escape(self)}</pre>'


def shown(entries: Iterable[dict[str, Any]]) -> Shown:
    """Table and figure of the answers that have a confidence; the table alone says that there is none."""
    held = list(entries)
    text = Shown(table(held))
    found = bins(held)
    text.figure = draw(found, text) if found else ""
    return text


def draw(found: list[Bin], alternative: str) -> str:
    """Confidence across, share right up, a circle with its number of answers for each band, the line of perfect calibration.

    `alternative` is what a screen reader reads in place of the figure."""
    high = _SIDE + 2 * _EDGE

    def across(share: float) -> float:
        return _EDGE + share * _SIDE

    def up(share: float) -> float:
        return _EDGE + (1 - share) * _SIDE

    parts = [
        f'<rect x="{_EDGE}" y="{_EDGE}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="currentColor"/>',
        f'<line x1="{across(0)}" y1="{up(0)}" x2="{across(1)}" y2="{up(1)}" stroke="currentColor" stroke-dasharray="5 4"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        parts.append(f'<text x="{across(share)}" y="{high - 28}" text-anchor="middle">{share:.0%}</text>')
        parts.append(f'<text x="{_EDGE - 4}" y="{up(share) + 4}" text-anchor="end">{share:.0%}</text>')
    for one in found:
        x, y = across(one.said), up(one.right)
        # The count is beside the circle, on the side that has room.
        anchor, shift = ("end", -9) if one.said > 0.85 else ("start", 9)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="currentColor"/>')
        parts.append(f'<text x="{x + shift:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{one.count}</text>')
    said, right = escape(_("how sure you said you were")), escape(_("share right"))
    parts.append(f'<text x="{across(0.5)}" y="{high - 8}" text-anchor="middle">{said}</text>')
    parts.append(f'<text x="{_EDGE}" y="{_EDGE - 12}">{right}</text>')
    title = escape(_("Calibration: circles on the dashed line are what perfect calibration gives"))
    label = escape(f"{title}. {alternative}".replace("\n", "; "), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="{high}" height="{high}" '
        f'viewBox="0 0 {high} {high}" font-size="13" fill="currentColor"><title>{title}</title>{"".join(parts)}</svg>'
    )
