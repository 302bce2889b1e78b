"""How each kind of memory looks: a colour, a hatch and a name, so that nothing is said by colour alone. Pure.

The colours are those of Okabe and Ito (2008), which people with any of the common colour-vision deficiencies tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    kind: str
    """The field of `Reading` it draws."""
    label: str
    colour: str
    hatch: str
    """What is drawn over the colour, as an SVG path in a tile of 8 × 8."""
    plotly: str
    """The hatch that plotly has for it."""


STACK = (
    Style("weights", "weights", "#0072B2", "", ""),
    Style("gradients", "gradients", "#E69F00", "M-2,2 L2,-2 M0,8 L8,0 M6,10 L10,6", "/"),
    Style("optimizer_ram", "optimizer state", "#009E73", "M2,2 h1.6 M6,6 h1.6", "."),
    Style("activations", "activations", "#CC79A7", "M0,4 H8", "-"),
)
DISK = Style("optimizer_disk", "on disk", "#56B4E9", "M0,0 L8,8 M0,8 L8,0", "x")

LIMIT = "#D55E00"


@dataclass(frozen=True)
class Theme:
    background: str
    ink: str
    faint: str
    """Of text that explains; as legible as the rest."""
    grid: str


LIGHT = Theme("#ffffff", "#1b1b1b", "#505050", "#dcdcdc")
DARK = Theme("#1e1f22", "#ececec", "#b8b8b8", "#3d3f44")
