"""What the build puts into a notebook where its source has a place: a lesson's time, the list of lessons, the glossary. Pure.

A place is `{run_all}` in a lesson's head, and `{lessons}`, `{count}`, `{hours}`, `{terms}` and `{glossary}` in a page, as a
source without a number is called. Places are filled after the text was translated, so that a new lesson or another time makes
no translation stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from course import times
from course.glossary import Term, markdown
from course.heads import RUN_ALL, Head
from quizzes.say import _, _n

Times = Mapping[str, tuple[float, int]]


def into_lesson(number: str, typed: str, measured: Times) -> dict[str, str]:
    """The places of a lesson in whose head its writer `typed` how long it runs."""
    return {RUN_ALL: times.said(measured.get(number), typed)}


def into_page(heads: Sequence[Head], measured: Times, known: Sequence[Term], say: Callable[[str], str]) -> dict[str, str]:
    """The places of a page. `known` are the terms of the glossary, which `say` translates."""
    minutes = sum(head.minutes or 0 for head in heads)
    return {
        "{lessons}": table(heads, measured),
        "{count}": str(len(heads)),
        "{hours}": f"{minutes / 60:.0f}",
        "{glossary}": markdown(known, heads, say),
        "{terms}": str(sum(term.lesson in {head.number for head in heads} for term in known)),
    }


def table(heads: Sequence[Head], measured: Times) -> str:
    """The lessons as a table in Markdown: a row each, with a link beside which nothing else must be known."""
    titles = (_("Lesson"), _("What you do"), _("Builds on"), _("Your time"), _("Run all"))
    rows = [_row(titles), _row(["---"] * len(titles))]
    for head in heads:
        time = measured.get(head.number)
        rows.append(
            _row(
                [
                    f"[{int(head.number)} · {_safe(head.title)}]({head.file})",
                    _safe(head.gist),
                    ", ".join(str(int(number)) for number in head.needs) or "–",
                    _n("{count} minute", "{count} minutes", head.minutes).format(count=head.minutes) if head.minutes else "–",
                    times.short(time[0]) if time else "–",
                ]
            )
        )
    return "\n".join(rows)


def filled(text: str, places: Mapping[str, str]) -> str:
    """`text` with what belongs into its places."""
    for place, content in places.items():
        text = text.replace(place, content)
    return text


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    return text.replace("|", "\\|")
