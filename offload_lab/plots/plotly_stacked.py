"""Memory by tier as a plotly figure: one row of stacked areas a tier."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from offload_lab.plots.lettering import named
from offload_lab.plots.palette import KINDS, LIGHT, LIMIT, styles_of
from offload_lab.plots.scale import byte_label, ticks

if TYPE_CHECKING:
    from offload_lab.plots.stacked import MemoryByTier


def figure(plot: MemoryByTier) -> Any:
    """Needs plotly, and says so where it is missing."""
    from plotly.subplots import make_subplots

    from offload_lab.plots.stacked import BUCKETS, thinned

    rows = max(len(plot.tiers), 1)
    made = make_subplots(rows=rows, shared_xaxes=True, subplot_titles=[escape(named(tier.name)) for tier in plot.tiers] or None)
    styles = styles_of([kind for tier in plot.tiers for kind in tier.kinds], KINDS)
    seen: set[str] = set()
    for row, tier in enumerate(plot.tiers, start=1):
        moments = thinned([tier.total(moment) for moment in range(len(plot.seconds))], BUCKETS)
        for kind in (kind for kind in styles if kind in tier.kinds):
            style, values = styles[kind], [tier.kinds[kind][moment] for moment in moments]
            made.add_scatter(
                row=row,
                col=1,
                mode="lines",
                name=escape(named(style.label)),
                legendgroup=str(list(styles).index(kind)),
                showlegend=kind not in seen,
                stackgroup=str(row),
                x=[plot.seconds[moment] for moment in moments],
                y=values,
                customdata=[byte_label(value) for value in values],
                hovertemplate="%{customdata}",
                line={"color": LIGHT.ink, "width": 0.8},
                fillcolor=style.colour,
                fillpattern={"shape": style.plotly, "fillmode": "overlay", "fgcolor": "#000", "fgopacity": 0.5, "size": 7},
            )
            seen.add(kind)
        top = max([tier.limit or 0.0, *(tier.total(moment) for moment in moments)]) or 1.0
        marks = ticks(top, 4)
        made.update_yaxes(row=row, col=1, tickvals=marks, ticktext=[byte_label(mark) for mark in marks], gridcolor=LIGHT.grid)
        if tier.limit is not None:
            made.add_hline(y=tier.limit, row=row, col=1, line={"color": LIMIT, "dash": "dash", "width": 2})
    made.update_xaxes(gridcolor=LIGHT.grid, rangemode="tozero")
    made.update_xaxes(row=rows, col=1, title_text="seconds")
    made.update_layout(
        template="none",
        height=160 + 190 * rows,
        paper_bgcolor=LIGHT.background,
        plot_bgcolor=LIGHT.background,
        font={"color": LIGHT.ink, "size": 13},
        hovermode="x unified",
        margin={"l": 90, "r": 20, "t": 90, "b": 50},
        title={"text": f"{escape(plot.title)}<br><sup>{plot.source}</sup>"},
    )
    return made
