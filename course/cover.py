"""The picture of the landing notebook: one model, and where its bytes lie. `python -m course.cover` writes it again. Pure.

The figures are `training_bytes`' own, so that the picture and the engine cannot disagree.
"""

from __future__ import annotations

import sys
from pathlib import Path

from offload_lab.plots.drawing import MARGIN, NORMAL, Drawing
from offload_lab.plots.palette import KINDS, Style
from offload_lab.state_bytes import readable, training_bytes

FILE = Path(__file__).parent / "pictures" / "cover.svg"
PARAMETERS, CARD = 4_000_000_000, 24_000_000_000
TITLE = "A model of 4 billion parameters, and a card of 24 GB"
_WIDTH, _TALL, _APART = 620, 30, 14
_STATE = Style("state", "optimizer state", KINDS["moments"].colour, KINDS["moments"].hatch, "")


def rows() -> list[tuple[str, dict[Style, int]]]:
    """What each bar is of, and its bytes by kind; activations are left out."""
    whole, moved = training_bytes(PARAMETERS), training_bytes(PARAMETERS, optimizer="ram")
    model = {KINDS["weights"]: whole.ram["weights"], KINDS["gradients"]: whole.ram["gradients"]}
    held = sum(model.values())
    return [
        ("Trained with AdamW, all on the card", {**model, _STATE: whole.steady_bytes - held}),
        ("Offloaded, on the card", model),
        ("Offloaded, in main memory or on a disk", {_STATE: moved.steady_bytes - held}),
    ]


def words() -> list[str]:
    """The picture in sentences, for who does not see it."""
    said = [
        f"{name}: {', '.join(f'{style.label} {readable(size)}' for style, size in kinds.items())}; "
        f"together {readable(sum(kinds.values()))}."
        for name, kinds in rows()
    ]
    return [*said, f"The card has {readable(CARD)}."]


def svg() -> str:
    drawing = Drawing(TITLE, "Calculated, for bfloat16 weights; activations are left out.", _WIDTH)
    scale = (_WIDTH - 2 * MARGIN) / max(sum(kinds.values()) for _name, kinds in rows())
    edge = MARGIN + CARD * scale
    for name, kinds in rows():
        drawing.below += 18
        drawing.text(MARGIN, drawing.below, f"{name}: {readable(sum(kinds.values()))}", size=NORMAL)
        drawing.below += 6
        x = float(MARGIN)
        for style, size in kinds.items():
            drawing.block(style, x, drawing.below, size * scale, _TALL)
            drawing.on(style, x + size * scale / 2, drawing.below + 20, readable(size), size * scale)
            x += size * scale
        if KINDS["weights"] in kinds:  # only what lies on the card has the card's limit
            drawing.line(f"M{edge:.1f} {drawing.below - 4:.1f}v{_TALL + 8}", "limit", thick=3.5, dashes="7 4", halo=True)
            if x < edge:
                drawing.text(edge + 8, drawing.below + 20, f"{readable(CARD)}: here the card is full", size=NORMAL)
        drawing.below += _TALL + _APART
    drawing.key([(style, style.label) for style in rows()[0][1]])
    return drawing.document(words(), "cover-plot") + "\n"


def main() -> int:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(svg(), encoding="utf-8", newline="\n")
    print(FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
