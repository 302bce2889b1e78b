"""Plotly figures of an item analysis, for an instructor's notebook."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from quizzes.analysis import Item


def items_figure(items: Sequence[Item]) -> go.Figure:
    """Facility across, discrimination up, one labelled point an item. Items without a discrimination are left out."""
    shown = [item for item in items if item.discrimination is not None]
    hover = [f"{item.question}<br>{item.learners} learners" for item in shown]
    points = go.Scatter(
        x=[item.facility for item in shown],
        y=[item.discrimination for item in shown],
        text=[item.question for item in shown],
        hovertext=hover,
        mode="markers+text",
        textposition="top center",
        # Flagged items have another shape, not another colour only.
        marker={"size": 11, "symbol": ["diamond" if any(gap.flagged for gap in item.gaps) else "circle" for item in shown]},
    )
    figure = go.Figure(points)
    figure.update_layout(title="Items (a diamond: a gap between languages)", template="plotly_white", showlegend=False)
    figure.update_xaxes(title="facility (mean share of the points)", range=[-0.05, 1.05])
    figure.update_yaxes(title="discrimination (correlation with the rest)", range=[-1.05, 1.05])
    return figure


def drawn_figure(item: Item) -> go.Figure:
    """How many learners each choice of an item drew."""
    names = sorted(item.drew)
    figure = go.Figure(go.Bar(x=names, y=[item.drew[name] for name in names]))
    figure.update_layout(title=f"{item.question}: what was chosen", template="plotly_white")
    figure.update_yaxes(title="learners")
    return figure


def misconceptions_figure(items: Sequence[Item]) -> go.Figure:
    """Misconceptions of the whole class, a bar for each language."""
    languages = sorted({language for item in items for language in item.by_language})
    ideas = sorted({idea for item in items for idea in item.misconceptions})
    figure = go.Figure()
    for language in languages:
        counts = [sum(item.by_language.get(language, {}).get(idea, 0) for item in items) for idea in ideas]
        figure.add_bar(name=language or "language not stated", x=counts, y=ideas, orientation="h")
    figure.update_layout(title="Misconceptions", template="plotly_white", barmode="group")
    figure.update_xaxes(title="answers")
    return figure
