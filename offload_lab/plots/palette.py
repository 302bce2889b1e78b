"""How each kind of memory and each lane looks: a colour, a hatch and a name, so that nothing is said by colour alone. Pure.

The colours are those of Okabe and Ito (2008), which people with any of the common colour-vision deficiencies tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    kind: str
    """What it draws: a field of `Reading`, a kind of bytes, a lane."""
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
FALLING, RISING = "M-2,6 L2,10 M0,0 L8,8 M6,-2 L10,2", "M-2,2 L2,-2 M0,8 L8,0 M6,10 L10,6"

KINDS = {
    **{style.label: style for style in STACK},
    "master": Style("master", "master", "#F0E442", "M4,0 V8", "|"),
    "moments": Style("moments", "moments", "#009E73", "M0,4 H8 M4,0 V8", "+"),
    "buffers": Style("buffers", "buffers", "#D55E00", FALLING, "\\"),
    "pinned rounding": Style("pinned rounding", "pinned rounding", "#999999", "M2,2 h1.6 M6,6 h1.6", "."),
    "on disk": DISK,
}
"""Bytes, by the names that the planner and the meter give them."""

LANES = {
    "backward": Style("backward", "backward", "#E69F00", "M0,4 H8", "-"),
    "accelerator": Style("accelerator", "accelerator", "#0072B2", "", ""),
    "device-to-host": Style("device-to-host", "device to host", "#CC79A7", FALLING, "\\"),
    "host-to-device": Style("host-to-device", "host to device", "#F0E442", RISING, "/"),
    "disk-read": Style("disk-read", "disk reads", "#56B4E9", RISING, "/"),
    "cpu": Style("cpu", "update", "#009E73", "", ""),
    "disk-write": Style("disk-write", "disk writes", "#D55E00", FALLING, "\\"),
}
"""Lanes from the top of a timeline to its bottom: as a gradient and its partition pass through them."""

OTHER = Style("other", "other", "#999999", "M2,2 h1.6 M6,6 h1.6", ".")
_SPARE = (
    ("#CC79A7", "M0,4 H8", "-"),
    ("#0072B2", "M4,0 V8", "|"),
    ("#F0E442", "M0,0 L8,8 M0,8 L8,0", "x"),
    ("#009E73", RISING, "/"),
    ("#E69F00", FALLING, "\\"),
    ("#56B4E9", "M0,4 H8 M4,0 V8", "+"),
    ("#D55E00", "M2,2 h1.6 M6,6 h1.6", "."),
)

LIMIT = "#D55E00"


def styles_of(names: Iterable[str], known: Mapping[str, Style]) -> dict[str, Style]:
    """A style for each name, in the order of `known`, then in that of `names`.

    A name that is not in `known` gets a spare one; after seven of those they come again, told apart by their labels alone.
    """
    given = dict.fromkeys(names)
    styles = {name: style for name, style in known.items() if name in given}
    for number, name in enumerate(name for name in given if name not in known):
        colour, hatch, shape = _SPARE[number % len(_SPARE)]
        spare = Style(name, name, colour, hatch, shape)
        styles[name] = OTHER if name == OTHER.kind else spare
    return styles


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb", from 0 (black) to 1 (white), as WCAG 2 defines it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on `colour`."""
    return "#000000" if luminance(colour) > 0.179 else "#ffffff"  # where both have a contrast of 4.58


@dataclass(frozen=True)
class Theme:
    background: str
    ink: str
    faint: str
    """Of text that explains; as legible as the rest."""
    grid: str


LIGHT = Theme("#ffffff", "#1b1b1b", "#505050", "#dcdcdc")
DARK = Theme("#1e1f22", "#ececec", "#b8b8b8", "#3d3f44")
