"""Plotly figures of an item analysis, for an instructor's notebook; their numbers as tables where nothing draws them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape, unescape
from typing import Any

import plotly.graph_objects as go

from offload_lab.plots.tables import Table
from quizzes.analysis import Item
from quizzes.printable import clean
from quizzes.say import _, _n


class Figure(go.Figure):
    """A plotly figure with the table of its numbers beside it.

    JupyterLab draws the first; a page that nbconvert wrote, GitHub and a terminal have no plotly and show the second.
    """

    _table: Table | None = None
    _ipython_display_ = None  # plotly's own sends the figure alone

    def with_table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Figure:
        self._table = Table(unescape(str(self.layout.title.text or "")), headers, rows)
        return self

    def _repr_mimebundle_(self, *given: Any, **named: Any) -> dict[str, Any]:
        bundle = {"application/vnd.plotly.v1+json": json.loads(self.to_json())}
        if self._table is not None:
            bundle |= {"text/html": self._table.html(), "text/plain": self._table.text()}
        return bundle


def _counted(learners: int) -> str:
    return _n("{count} learner", "{count} learners", learners).format(count=learners)


def items_figure(items: Sequence[Item]) -> Figure:
    """Facility across, discrimination up, one labelled point an item. Items without a discrimination are left out."""
    shown = [item for item in items if item.discrimination is not None]
    hover = [f"{escape(item.question)}<br>{escape(_counted(item.learners))}" for item in shown]
    points = go.Scatter(
        x=[item.facility for item in shown],
        y=[item.discrimination for item in shown],
        hovertext=hover,
        mode="markers",
        # Flagged items have another shape, not another colour only.
        marker={"size": 11, "symbol": ["diamond" if any(gap.flagged for gap in item.gaps) else "circle" for item in shown]},
    )
    figure = Figure(points)
    figure.update_layout(
        title=escape(_("Items (a diamond: a gap between languages)")), template="plotly_white", showlegend=False, height=560
    )
    for item in shown:  # turned, or neighbours would write over each other
        figure.add_annotation(
            x=item.facility,
            y=item.discrimination,
            text=escape(item.question),
            textangle=-50,
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
        )
    figure.update_xaxes(title=escape(_("facility (mean share of the points)")), range=[-0.05, 1.05])
    figure.update_yaxes(title=escape(_("discrimination (correlation with the rest)")), range=[-1.05, 1.05])
    rows = [[item.question, f"{item.facility:.2f}", f"{item.discrimination:.2f}"] for item in shown]
    return figure.with_table([_("question"), _("facility"), _("discrimination")], rows)


def facility_figure(items: Sequence[Item]) -> Figure:
    """Facility of every item as a bar, in the order of the quiz, with the number of learners."""
    names = [escape(item.question) for item in items]
    few = [f" ({escape(_('too few'))})" if item.too_few else "" for item in items]
    figure = Figure(
        go.Bar(
            x=[item.facility for item in items],
            y=names,
            orientation="h",
            text=[f"{item.facility:.2f}, n = {item.learners}{said}" for item, said in zip(items, few, strict=True)],
        )
    )
    figure.update_layout(title=escape(_("Facility")), template="plotly_white", height=140 + 34 * len(items))
    figure.update_xaxes(title=escape(_("mean share of the points")), range=[0, 1.05])
    figure.update_yaxes(autorange="reversed", automargin=True)
    rows = [[item.question, f"{item.facility:.2f}", str(item.learners)] for item in items]
    return figure.with_table([_("question"), _("facility"), _("learners")], rows)


def drawn_figure(item: Item, choices: Mapping[str, bool] | None = None) -> Figure:
    """How many learners each choice of an item drew. `choices` (id -> whether right) adds those that drew nobody; a right one
    is named and striped, not only coloured."""
    choices = choices or {}
    names = sorted({*item.drew, *choices})
    figure = Figure(
        go.Bar(
            x=[_shown(name) + (f" ({escape(_('right'))})" if choices.get(name) else "") for name in names],
            y=[item.drew.get(name, 0) for name in names],
            marker={"pattern": {"shape": ["/" if choices.get(name) else "" for name in names]}},
        )
    )
    figure.update_layout(title=escape(_("{question}: what was chosen").format(question=item.question)), template="plotly_white")
    figure.update_xaxes(type="category")
    figure.update_yaxes(title=escape(_("learners")), rangemode="tozero")
    rows = [
        [clean(name, 40) + (f" ({_('right')})" if choices.get(name) else ""), str(item.drew.get(name, 0))] for name in names
    ]
    return figure.with_table([_("answer"), _("learners")], rows)


def _shown(typed: str) -> str:
    # A learner typed it: plotly reads some HTML in labels.
    return escape(clean(typed, 40))


def languages_figure(items: Sequence[Item]) -> Figure:
    """Share of wholly right answers in each language, an item a line; a flagged gap is joined by a thick line and named."""
    figure = Figure()
    points: dict[str, dict[str, float]] = {}
    for item in items:
        for gap in item.gaps:
            for language, share in zip((gap.first, gap.second), gap.facilities, strict=True):
                points.setdefault(language, {})[escape(item.question)] = share
            if gap.flagged:
                figure.add_scatter(
                    x=list(gap.facilities),
                    y=[escape(item.question)] * 2,
                    mode="lines",
                    line={"width": 5, "color": "black"},
                    name=escape(_("gap: read both texts")),
                    legendgroup="gap",
                    showlegend=not any(trace.legendgroup == "gap" for trace in figure.data),
                )
    by_language = [found for _language, found in sorted(points.items())]
    for number, (language, found) in enumerate(sorted(points.items())):
        symbol = ("circle", "square", "diamond", "cross", "x", "star")[number % 6]
        marker = {"size": 12, "symbol": symbol}
        figure.add_scatter(x=list(found.values()), y=list(found), mode="markers", name=escape(language), marker=marker)
    figure.update_layout(
        title=escape(_("Wholly right answers by language")), template="plotly_white", height=180 + 34 * len(items)
    )
    figure.update_xaxes(title=escape(_("share of wholly right answers")), range=[-0.05, 1.05])
    order = [escape(item.question) for item in items]
    figure.update_yaxes(autorange="reversed", automargin=True, type="category", categoryorder="array", categoryarray=order)
    rows = []
    for item in items:
        shares = [found.get(escape(item.question)) for found in by_language]
        rows.append([item.question, *("" if share is None else f"{share:.0%}" for share in shares)])
    return figure.with_table([_("question"), *sorted(points)], rows)


def misconceptions_figure(items: Sequence[Item]) -> Figure:
    """Misconceptions of the whole class, a bar for each language."""
    languages = sorted({language for item in items for language in item.by_language})
    ideas = sorted({idea for item in items for idea in item.misconceptions})
    figure = Figure()
    counted = [
        {idea: sum(item.by_language.get(language, {}).get(idea, 0) for item in items) for idea in ideas}
        for language in languages
    ]
    for language, counts in zip(languages, counted, strict=True):
        name = language or escape(_("language not stated"))
        figure.add_bar(name=name, x=list(counts.values()), y=list(counts), orientation="h")
    figure.update_layout(
        title=escape(_("Misconceptions")), template="plotly_white", barmode="group", height=180 + 30 * len(ideas)
    )
    figure.update_xaxes(title=escape(_("answers")))
    figure.update_yaxes(automargin=True)
    rows = [[idea, *(str(counts[idea]) for counts in counted)] for idea in ideas]
    return figure.with_table([_("misconception"), *(language or _("language not stated") for language in languages)], rows)
