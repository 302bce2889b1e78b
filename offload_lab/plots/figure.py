"""The memory plot of one run as a plotly figure: the live form, with figures under the pointer."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from offload_lab.plots.palette import DISK, LIGHT, LIMIT, STACK
from offload_lab.plots.panel import CROWDED, EDGE
from offload_lab.plots.plot import MemoryPlot
from offload_lab.plots.scale import byte_label, fullest, thinned, ticks

BUCKETS = 150
"""Half the points a trace may have. A figure that only grows makes a browser slow, then kills the tab."""


def build(kind: type, plot: MemoryPlot) -> Any:
    """A figure of `kind` (plotly's Figure or FigureWidget) that shows `plot`."""
    figure = kind(data=_traces(plot), layout=_fixed())
    figure.update_layout(changing(plot))
    return figure


def as_json(fixed: dict[str, Any], plot: MemoryPlot) -> dict[str, Any]:
    """What plotly's own JSON for `plot` would be, without the time that its checks take. `fixed` is `fixed_json()`."""
    return {"data": _traces(plot), "layout": fixed | changing(plot)}


def fixed_json(kind: type) -> dict[str, Any]:
    """The layout that does not change, with the template as a figure of `kind` spells it out."""
    layout: dict[str, Any] = kind(layout=_fixed()).to_plotly_json()["layout"]
    return layout


def update(figure: Any, plot: MemoryPlot, before: dict[str, Any]) -> dict[str, Any]:
    """Show `plot` in a figure that `build` made; in a FigureWidget, as one batch. Lines are replaced, none are added.

    `before` is what this returned for the plot before it (`changing` of the first): what is the same is not sent again.
    Numbers go as arrays, which plotly takes as they are; of a list it looks at each one.
    """
    now = changing(plot)
    with figure.batch_update():
        for trace, values in zip(figure.data, _traces(plot), strict=True):
            if not values["showlegend"] and not trace.showlegend:
                continue  # all zero, as it was
            trace.x, trace.y = np.asarray(values["x"], float), np.asarray(values["y"], float)
            if values["customdata"] is not None:
                trace.customdata = np.asarray(values["customdata"], float)
            if trace.showlegend != values["showlegend"]:
                trace.showlegend = values["showlegend"]
            if trace.line.width != values["line"]["width"]:
                trace.line.width = values["line"]["width"]
        changed = {name: value for name, value in now.items() if value != before.get(name)}
        if changed.pop("title", None) is not None:
            figure.layout.title.text = now["title"]["text"]
        if changed:
            figure.update_layout(changed)
    return now


def _traces(plot: MemoryPlot) -> list[dict[str, Any]]:
    (readings,) = plot.series.values()
    drawn = thinned(readings, BUCKETS)
    seconds = [reading.seconds - readings[0].seconds for reading in drawn]
    edge = EDGE if len(drawn) < CROWDED * BUCKETS else 0
    traces = []
    for style in (*STACK, DISK):
        values = [getattr(reading, style.kind) for reading in drawn]
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines",
            "name": style.label if style is not DISK else "optimizer state on disk, not in RAM",
            "x": seconds,
            "y": values,
            "customdata": None,
            "hovertemplate": "%{y:.3s}B",
            "showlegend": any(values),
            "line": {"color": LIGHT.ink, "width": edge},
            "fillcolor": style.colour,
            "fillpattern": {"shape": style.plotly, "fillmode": "overlay", "fgcolor": "#000", "fgopacity": 0.5, "size": 7},
        }
        if style is DISK:
            # Drawn downwards, named upwards.
            trace |= {"y": [-value for value in values], "fill": "tozeroy"}
            trace |= {"customdata": values, "hovertemplate": "%{customdata:.3s}B"}
        else:
            trace["stackgroup"] = "ram"
        traces.append(trace)
    return traces


def _fixed() -> dict[str, Any]:
    """What does not change while it runs. Colours of its own, so that it reads on a dark page as well."""
    return {
        "template": "none",
        "height": 420,
        "margin": {"l": 90, "r": 20, "t": 70, "b": 50},
        "paper_bgcolor": LIGHT.background,
        "plot_bgcolor": LIGHT.background,
        "font": {"color": LIGHT.ink, "size": 13},
        "hovermode": "x unified",
        "legend": {"traceorder": "reversed"},
        "xaxis": {"title": {"text": "seconds"}, "gridcolor": LIGHT.grid, "rangemode": "tozero"},
        "uirevision": "live",
    }


def changing(plot: MemoryPlot) -> dict[str, Any]:
    """The part of the layout that may change while it runs."""
    (name,), (readings,) = plot.series.keys(), plot.series.values()
    lines = [("limit", plot.limit_bytes, LIMIT, "dash"), ("your prediction", plot.prediction_bytes, LIGHT.ink, "dot")]
    drawn = [(f"{label} {byte_label(value)}", value, colour, dash) for label, value, colour, dash in lines if value is not None]
    top = max([fullest(readings).ram if readings else 0, *(value for _, value, _, _ in drawn), 1]) * 1.1
    low = max((reading.optimizer_disk for reading in readings), default=0) * 1.04
    marks = ticks(max(top, low))
    values = [-mark for mark in marks[1:] if mark <= low] + [mark for mark in marks if mark <= top]
    note = plot.notes.get(name, "")
    return {
        "title": {"text": f"{escape(plot.title)}<br><sup>{escape(note)}</sup>"},
        "yaxis": {
            "title": {"text": "on disk ↓   in RAM ↑" if low else "in RAM"},
            "range": [-low, top],
            "tickvals": values,
            "ticktext": [byte_label(value) for value in values],
            "gridcolor": LIGHT.grid,
            "zerolinecolor": LIGHT.ink,
        },
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": value,
                "y1": value,
                "line": {"color": colour, "dash": dash, "width": 2},
            }
            for _, value, colour, dash in drawn
        ],
        "annotations": [
            {
                "xref": "paper",
                "x": 0.01,
                "y": value,
                "yanchor": "bottom",
                "xanchor": "left",
                "text": escape(label),
                "showarrow": False,
                "bgcolor": LIGHT.background,
            }
            for label, value, _, _ in drawn
        ],
    }
