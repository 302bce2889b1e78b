"""Timelines as a plotly figure: for zooming, with figures under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from offload_lab.plots.lettering import named
from offload_lab.plots.palette import LIGHT
from offload_lab.plots.rows import lane_styles
from offload_lab.plots.runs import Run, lane_label
from offload_lab.plots.scale import byte_label, second_label
from offload_lab.trace import Event

MOST = 5000
"""Tasks of a run that are drawn. Of more a browser makes no smooth figure."""


def figure(runs: Sequence[tuple[str, Run]], title: str, source: str) -> Any:
    """`runs`: (what goes before the name of a lane, run). Needs plotly, and says so where it is missing."""
    from plotly import graph_objects

    styles = lane_styles(*(run for _, run in runs))
    rows = [(f"{prefix}{lane_label(name)}", prefix, name, run) for name in styles for prefix, run in runs if name in run.lanes]
    traces = []
    left_out = 0
    for label, _, name, run in rows:
        share = max(MOST * len(run.lanes[name].events) // max(len(run.events), 1), 1)
        events = run.lanes[name].events[: share if len(run.events) > MOST else None]
        left_out += len(run.lanes[name].events) - len(events)
        style = styles[name]
        traces.append(
            graph_objects.Bar(
                orientation="h",
                name=escape(label),
                y=[escape(label)] * len(events),
                base=[event.start - run.start for event in events],
                x=[event.end - event.start for event in events],
                customdata=[_pointed(event) for event in events],
                hovertemplate="%{customdata[0]} %{customdata[1]}: %{customdata[2]}, %{customdata[3]}<extra></extra>",
                marker={
                    "color": style.colour,
                    "line": {"color": LIGHT.ink, "width": 0.5},
                    "pattern": {"shape": style.plotly, "fillmode": "overlay", "fgcolor": "#000", "fgopacity": 0.5, "size": 7},
                },
            )
        )
    note = escape(source) + (f"; the first {MOST:,} tasks of each run, {left_out:,} more are left out" if left_out else "")
    layout = {
        "template": "none",
        "barmode": "overlay",
        "showlegend": False,
        "height": 150 + 34 * len(rows),
        "margin": {"l": 190, "r": 20, "t": 70, "b": 50},
        "paper_bgcolor": LIGHT.background,
        "plot_bgcolor": LIGHT.background,
        "font": {"color": LIGHT.ink, "size": 13},
        "title": {"text": f"{escape(title)}<br><sup>{note}</sup>"},
        "xaxis": {"title": {"text": "seconds"}, "gridcolor": LIGHT.grid, "rangemode": "tozero"},
        "yaxis": {"autorange": "reversed"},
    }
    return graph_objects.Figure(data=traces, layout=layout)


def _pointed(event: Event) -> tuple[str, int, str, str]:
    """What the pointer shows of a task."""
    return escape(named(event.name)), event.partition, second_label(event.end - event.start), byte_label(event.nbytes)
