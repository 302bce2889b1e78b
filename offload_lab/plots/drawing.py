"""One picture under construction: shapes, hatched areas and text that keeps to its room, then the whole as an <svg>. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from offload_lab.plots.lettering import clean, cut, width_of, wrapped
from offload_lab.plots.palette import DARK, LIGHT, LIMIT, Style, Theme, ink_on
from offload_lab.plots.scale import ticks

WIDTH = 760
MARGIN = 14
SMALL, NORMAL, LARGE = 12, 13, 17
FONTS = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif"


class Drawing:
    """Collects elements from the top down; `below` is where the next row may begin.

    Begins with the title and with `remark`, which says whether the figures are measured, predicted or quoted.
    """

    def __init__(self, title: str, remark: str = "", width: float = WIDTH) -> None:
        self.width, self.below = width, 12.0
        self._title = clean(title)
        self._parts: list[str] = []
        self._styles: dict[Style, int] = {}
        room = width - 2 * MARGIN
        for row in wrapped(self._title, room, LARGE, bold=True):
            self.below += 19
            self.text(MARGIN, self.below, row, size=LARGE, bold=True)
        self.below += 4
        self.paragraph(remark)
        self.below += 10

    def paragraph(self, text: str, rows: int = 3) -> None:
        """Rows of explaining text over the whole width, below all that is there."""
        for row in wrapped(clean(text), self.width - 2 * MARGIN, SMALL, rows):
            self.below += 15
            self.text(MARGIN, self.below, row, role="faint")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        room: float | None = None,
        size: float = SMALL,
        role: str = "ink",
        anchor: str = "start",
        bold: bool = False,
        halo: bool = False,
    ) -> None:
        """`text` with its base line at `y`, cut to `room`. `halo`: over a seam of the background's colour."""
        shown = clean(text) if room is None else cut(clean(text), room, size, bold=bold)
        place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"' + (' font-weight="bold"' if bold else "")
        if halo:
            seam = f'fill="none" stroke="{LIGHT.background}" stroke-width="4" stroke-linejoin="round"'
            self._parts.append(f'<text class="halo" aria-hidden="true" {place} {seam}>{escape(shown)}</text>')
        self._parts.append(f'<text class="{role}" {place} fill="{getattr(LIGHT, role)}">{escape(shown)}</text>')

    def on(self, style: Style, x: float, y: float, text: str, room: float) -> bool:
        """`text` centred at `x` on an area of `style`, over a plate without hatch; nothing, and False, if it does not fit."""
        shown = clean(text)
        wide = width_of(shown, SMALL)
        if wide + 6 > room:
            return False
        if style.hatch:
            self._parts.append(
                f'<rect x="{x - wide / 2 - 2:.1f}" y="{y - 11:.1f}" width="{wide + 4:.1f}" height="14" fill="{style.colour}"/>'
            )
        place = f'x="{x:.1f}" y="{y:.1f}" font-size="{SMALL}" text-anchor="middle"'
        self._parts.append(f'<text {place} fill="{ink_on(style.colour)}">{escape(shown)}</text>')
        return True

    def block(
        self, style: Style, x: float, y: float, width: float, height: float, *, edge: float = 0.8, dashes: str = ""
    ) -> None:
        """A rectangle of one kind; `edge` is how thick its outline is."""
        outline = f' class="edge" stroke="{LIGHT.ink}" stroke-width="{edge:g}"' if edge else ""
        outline += f' stroke-dasharray="{dashes}"' if edge and dashes else ""
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
        self._parts.append(f'<rect {size} fill="{self._fill(style)}"{outline}/>')

    def area(self, style: Style, path: str, *, edge: float = 0.0) -> None:
        """A closed path of one kind."""
        outline = f' class="edge" stroke="{LIGHT.ink}" stroke-width="{edge:g}"' if edge else ""
        self._parts.append(f'<path fill="{self._fill(style)}" d="{path}"{outline}/>')

    def line(self, path: str, role: str = "edge", *, thick: float = 1.0, dashes: str = "", halo: bool = False) -> None:
        """An open path: "edge" in the colour of text, "grid" faint, "limit" in that of limits."""
        if halo:
            seam = f'stroke="{LIGHT.background}" stroke-width="{thick + 3:g}"'
            self._parts.append(f'<path class="halo" d="{path}" fill="none" {seam}/>')
        stroke = {"edge": LIGHT.ink, "grid": LIGHT.grid, "limit": LIMIT}[role]
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(f'<path class="{role}" d="{path}" fill="none" stroke="{stroke}" stroke-width="{thick:g}"{dashed}/>')

    def key(self, entries: Iterable[tuple[Style, str]]) -> None:
        """What each look stands for, in rows over the whole width, below all that is there."""
        self.below += 8
        x, top = float(MARGIN), self.below
        for style, label in entries:
            label = cut(clean(label), self.width - 2 * MARGIN - 24, SMALL)
            wide = 22 + width_of(label, SMALL) + 18
            if x > MARGIN and x + wide - 18 > self.width - MARGIN:
                x, top = float(MARGIN), top + 20
            self.block(style, x, top, 16, 12)
            self.text(x + 22, top + 10.5, label)
            x += wide
        self.below = top + 16

    def axis(
        self, left: float, width: float, top: float, bottom: float, largest: float, label: object, wanted: int = 6
    ) -> None:
        """Grid lines from `top` to `bottom` at round values of 0 … `largest`, with `label(value)` below each that has room."""
        last = -float("inf")
        for value in ticks(largest, wanted):
            x = left + (width * (value / largest) if largest > 0 else 0)
            self.line(f"M{x:.1f} {top:.1f}V{bottom:.1f}", "grid")
            words = label(value)  # type: ignore[operator]
            half = width_of(words, SMALL) / 2
            if x - half >= last + 6 and x + half <= self.width - 4:
                self.text(x, bottom + 15, words, role="faint", anchor="middle")
                last = x + half
        self.line(f"M{left:.1f} {bottom:.1f}H{left + width:.1f}")

    def flags(self, named: Sequence[tuple[float, str]], y: float, left: float) -> None:
        """The words of some vertical lines, each at its own `x` as far as they do not cover each other, right of `left`."""
        far = self.width - 4.0
        for x, words in sorted(named, reverse=True):
            wide = width_of(words, SMALL)
            right = max(min(x + wide / 2, far), left + wide)
            self.text(right, y, words, anchor="end", role="faint")
            far = right - wide - 8

    def document(self, description: Sequence[str], kind: str) -> str:
        """The <svg> element. `kind` is its class; `description` what a screen reader says beside the title."""
        height = self.below + MARGIN
        told = clean("\n".join(description))
        body = "".join(self._parts)
        # Of what is drawn, so that two pictures on one page share no name, and the same figures are the same file.
        mark = "f" + hashlib.sha256(f"{kind}\n{told}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:10]
        body = body.replace("url(#-", f"url(#{mark}-")
        return document(mark, kind, self.width, height, self._title, told, tiles(mark, self._styles), body)

    def _fill(self, style: Style) -> str:
        number = self._styles.setdefault(style, len(self._styles))
        return f"url(#-{number})" if style.hatch else style.colour


def document(mark: str, kind: str, width: float, height: float, title: str, description: str, defs: str, body: str) -> str:
    """An <svg> element with its names, its two themes and its background around `body`."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{mark}" class="{kind}" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" aria-labelledby="{mark}-title {mark}-desc" font-family="{FONTS}">'
        f'<title id="{mark}-title">{escape(title)}</title><desc id="{mark}-desc">{escape(description)}</desc>'
        f"<style>{_style(mark)}</style><defs>{defs}</defs>"
        f'<rect class="back" width="{width:g}" height="{height:g}" rx="6" fill="{LIGHT.background}"/>{body}</svg>'
    )


def tiles(mark: str, styles: dict[Style, int] | dict[Style, str]) -> str:
    """A tile for each kind: its colour, and over it its hatch."""
    return "".join(
        f'<pattern id="{mark}-{name}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" fill="{style.colour}"/>'
        + (f'<path d={quoteattr(style.hatch)} stroke="#000" stroke-opacity=".5" stroke-width="1.4"/>' if style.hatch else "")
        + "</pattern>"
        for style, name in styles.items()
    )


def _style(mark: str) -> str:
    """The dark theme. The light one stands in the attributes, for those who take style sheets away."""
    return f"@media (prefers-color-scheme: dark) {{ {' '.join(_rules(mark, DARK))} }}"


def _rules(mark: str, theme: Theme) -> list[str]:
    return [
        f"#{mark} .back {{ fill: {theme.background}; }}",
        f"#{mark} .ink {{ fill: {theme.ink}; }}",
        f"#{mark} .faint {{ fill: {theme.faint}; }}",
        f"#{mark} .grid {{ stroke: {theme.grid}; }}",
        f"#{mark} .edge {{ stroke: {theme.ink}; }}",
        f"#{mark} .halo {{ stroke: {theme.background}; }}",
    ]
