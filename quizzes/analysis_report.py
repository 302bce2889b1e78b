"""An item analysis as sentences, as JSON, as CSV and as one HTML file that needs no network. No learner is named in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from quizzes.analysis import FEW, Gap, Item
from quizzes.nbgrader.export import safe
from quizzes.say import _, spoken

ALPHA = 0.01


def method(alpha: float = ALPHA) -> str:
    """How gaps between languages are tested, in words."""
    return _(
        "Gaps between languages: Fisher's exact test, two-sided, on wholly right answers; Holm's correction over every pair of "
        "languages of every question, at most {alpha:g} for one false flag in all. A gap can lie in the classes as well as in "
        "the translation: it says which two texts to read side by side."
    ).format(alpha=alpha)


def sentences(items: Sequence[Item]) -> list[str]:
    """What an instructor should look at, a line each; that there is nothing to analyse where there is not."""
    if not items:
        return [_("There are no answers to analyse.")]
    lines = []
    for item in items:
        told = _("{question}: {learners} learners, facility {facility:.2f}, discrimination {discrimination}")
        shown = _("none") if item.discrimination is None else f"{item.discrimination:.2f}"
        lines.append(told.format(question=item.question, learners=item.learners, facility=item.facility, discrimination=shown))
        if item.too_few:
            lines.append("    " + _("too few learners to judge by: under {few}").format(few=FEW))
        else:
            lines += [f"    {line}" for line in _warnings(item)]
        lines += [f"    {gap_line(gap)}" for gap in item.gaps]
    return lines


def _warnings(item: Item) -> list[str]:
    if item.facility == 1.0:
        return [_("everybody is right: it tells nobody apart")]
    if item.facility == 0.0:
        return [_("nobody is right: is the key right, and the text clear?")]
    if item.discrimination is not None and item.discrimination < 0:
        return [_("who does well elsewhere does worse here: is the key right?")]
    return []


def gap_line(gap: Gap) -> str:
    """One gap between two languages, and what to do about it."""
    told = _("{first} {share:.2f}, {second} {other:.2f} wholly right (p = {p:.2g}): {verdict}")
    if gap.too_few:
        verdict = _("too few to tell")
    elif gap.flagged:
        verdict = _("a gap; compare the translations")
    else:
        verdict = _("no more than chance gives")
    share, other = gap.facilities
    return told.format(first=gap.first, share=share, second=gap.second, other=other, p=gap.p, verdict=verdict)


def to_json(items: Sequence[Item], alpha: float = ALPHA) -> dict[str, Any]:
    """Finite numbers and text only."""
    return {
        "method": method(alpha),
        "alpha": alpha,
        "items": [{**asdict(item), "too_few": item.too_few} for item in items],
    }


def to_csv(items: Sequence[Item]) -> str:
    """A line an item; what came from a learner cannot become a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["question", "learners", "facility", "discrimination", "drew", "misconceptions", "gaps"])
    for item in items:
        discrimination = "" if item.discrimination is None else item.discrimination
        counts = ["; ".join(f"{name}: {count}" for name, count in part.items()) for part in (item.drew, item.misconceptions)]
        gaps = "; ".join(gap_line(gap) for gap in item.gaps if gap.flagged)
        writer.writerow([safe(item.question), item.learners, item.facility, discrimination, *map(safe, counts), safe(gaps)])
    return text.getvalue()


def to_html(items: Sequence[Item], choices: Mapping[str, Mapping[str, bool]], note: str = "") -> str:
    """One page with every figure; plotly is inside it."""
    from quizzes import analysis_plots as plots

    figures = [("", plots.facility_figure(items)), ("", plots.items_figure(items))] if items else []
    if any(item.gaps for item in items):
        figures.append((method(), plots.languages_figure(items)))
    if any(item.misconceptions for item in items):
        figures.append(("", plots.misconceptions_figure(items)))
    figures += [("", plots.drawn_figure(item, choices.get(item.question))) for item in items if item.drew]
    title = escape(_("Item analysis"))
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    parts = [f'<!doctype html><html lang="{spoken()}">{head}<body><h1>{title}</h1>']
    parts += [f"<p><strong>{escape(note)}</strong></p>"] if note else []
    parts.append(f"<pre>{escape(chr(10).join(sentences(items)))}</pre>")
    for number, (said, figure) in enumerate(figures):
        parts.append(f"<p>{escape(said)}</p>" if said else "")
        parts.append(figure.to_html(full_html=False, include_plotlyjs=number == 0))
    return "\n".join([*parts, "</body></html>\n"])
