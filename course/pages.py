"""A notebook that was run, as a page: HTML that needs no script, no font and no other host. Needs the extra `lab`."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from nbformat import NotebookNode

from course import links, still
from quizzes.say import _

STYLE = "site.css"
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' "
    "rx='3' fill='%230b5cad'/%3E%3Cpath d='M3 5h10M3 8h6M3 11h3' stroke='%23fff' stroke-width='2'/%3E%3C/svg%3E"
)
"""Without one a browser asks for a file that is not there."""
_HIDDEN = "<Figure size"
"""What matplotlib says of a picture in words is not what one sees in it."""


class PageError(ValueError):
    """A notebook cannot be shown as a page; the message names the cell."""


@dataclass(frozen=True)
class Link:
    """A page, by its file, and what a link to it says."""

    file: str
    text: str


@dataclass(frozen=True)
class Frame:
    """What is around a page. `note` says how what is shown came to be; `source` is the file of the notebook."""

    title: str
    language: str
    about: str = ""
    before: Link | None = None
    after: Link | None = None
    note: str = ""
    source: str = ""


def content(notebook: NotebookNode, widgets: still.Widgets, change: Callable[[str], str]) -> str:
    """The cells of a notebook as HTML, what their links refer to `change`d. Standard error, which tells of one run on one
    machine, is left out. Raises PageError."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            inner = _markdown(cell.source)
        else:
            inner = _code(cell.source) + "".join(_output(cell.id, output, widgets) for output in _outputs(cell))
        parts.append(f'<section class="cell" id="cell-{escape(cell.id)}">{inner}</section>')
    return links.rewritten("\n".join(parts), change)


def _markdown(source: str) -> str:
    html = markdown2html_mistune(source)
    # A table wider than a phone scrolls by itself, and whoever has no mouse gets to it with Tab.
    return html.replace("<table>", f'<div class="wide" tabindex="0" role="group" aria-label="{_("Table")}"><table>').replace(
        "</table>", "</table></div>"
    )


def _code(source: str) -> str:
    if not source.strip():
        return ""
    inner = re.search(r"<pre>(.*)</pre>", Highlight2HTML()(source, language="python"), re.S)
    held = inner[1].removeprefix("<span></span>").rstrip("\n") if inner else escape(source)
    return f'<pre class="code" tabindex="0" role="group" aria-label="{_("Code")}"><code>{held}</code></pre>'


def _outputs(cell: NotebookNode) -> list[Any]:
    """What a cell shows. What it printed in several goes is one text, as a notebook shows it."""
    held: list[Any] = []
    for output in cell.get("outputs", []):
        if output.output_type != "stream":
            held.append(output)
        elif output.name == "stdout":
            if held and held[-1].output_type == "stream":
                output = NotebookNode(output, text=held.pop().text + output.text)
            held.append(output)
    return held


def _output(cell: str, output: Any, widgets: still.Widgets) -> str:
    if output.output_type == "error":
        raise PageError(_("cell {cell} ended with {error}").format(cell=cell, error=output.ename))
    if output.output_type == "stream":
        return _text(output.text)
    data = dict(output.data)
    view = data.pop(still.MIME, None)
    if view is not None and not data.keys() & {"text/html", "image/svg+xml"}:
        try:
            html = still.html(widgets, view["model_id"])
        except still.StillError as error:
            raise PageError(_("cell {cell}: {why}").format(cell=cell, why=error)) from None
        return _shown(html) if html else ""
    return _richest(cell, data)


def _richest(cell: str, data: Mapping[str, Any]) -> str:
    said = str(data.get("text/plain", ""))
    if "text/html" in data:
        return _shown(data["text/html"])
    alternative = "" if said.startswith(_HIDDEN) else said
    if "image/svg+xml" in data:
        return _shown(_picture("svg+xml", base64.b64encode(data["image/svg+xml"].encode()).decode(), alternative))
    for kind in ("png", "jpeg"):
        if f"image/{kind}" in data:
            return _shown(_picture(kind, "".join(data[f"image/{kind}"].split()), alternative))
    if "text/markdown" in data:
        return _shown(_markdown(data["text/markdown"]))
    if "text/plain" in data:
        return _text(said)
    kinds = ", ".join(sorted(data)) or _("nothing")
    raise PageError(_("cell {cell} shows {kinds} only, which a page cannot show").format(cell=cell, kinds=kinds))


def _picture(kind: str, data: str, alternative: str) -> str:
    return f'<img src="data:image/{kind};base64,{data}" alt="{escape(alternative)}">'


def _shown(html: str) -> str:
    return f'<div class="out wide" tabindex="0" role="group" aria-label="{_("Output")}">{html}</div>'


def _text(text: str) -> str:
    if not text.strip():
        return ""
    # Sentences may wrap on a phone; columns, which are apart by spaces, may not.
    flows = "" if re.search(r"\S {2,}\S", text) or text.count("\n") > 8 else " flows"
    said = ansi2html(text.rstrip("\n"))
    return f'<pre class="out{flows}" tabindex="0" role="group" aria-label="{_("Output")}">{said}</pre>'


def page(body: str, frame: Frame) -> str:
    """A whole page around the HTML of its cells."""
    name = _("Offload Lab")
    title = escape(frame.title if frame.title == name else f"{frame.title} – {name}")
    about = f'<meta name="description" content="{escape(frame.about)}">\n' if frame.about else ""
    note = f'<p class="note">{escape(frame.note)}{_download(frame)}</p>' if frame.note else ""
    top = f'<a href="index.html">{escape(name)}</a> <a href="glossary.html">{escape(_("Glossary"))}</a>'
    return f"""<!doctype html>
<html lang="{escape(frame.language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
{about}<link rel="icon" href="{_ICON}">
<link rel="stylesheet" href="{STYLE}">
</head>
<body>
<a class="skip" href="#main">{escape(_("To the text"))}</a>
<header><nav aria-label="{escape(_("Course"))}">{top}</nav></header>
<main id="main">
{note}{_contents(body)}
{body}
</main>
<footer>{_around(frame)}</footer>
</body>
</html>
"""


def _download(frame: Frame) -> str:
    return f' <a href="{escape(frame.source)}" download>{escape(_("Download it."))}</a>' if frame.source else ""


def _contents(body: str) -> str:
    """The headings of a page that has several, to go to."""
    listed = [(name, text) for tag, name, text in links.read(body).headings if tag == "h2" and name]
    if len(listed) < 3:
        return ""
    items = "".join(f'<li><a href="#{escape(name)}">{escape(text.strip())}</a></li>' for name, text in listed)
    title = escape(_("On this page"))
    return f'<nav class="contents" aria-label="{title}"><details><summary>{title}</summary><ul>{items}</ul></details></nav>'


def _around(frame: Frame) -> str:
    told = []
    for link, way, arrow in ((frame.before, "prev", "← {text}"), (frame.after, "next", "{text} →")):
        if link is not None:
            told.append(f'<a rel="{way}" href="{escape(link.file)}">{escape(arrow.format(text=link.text))}</a>')
    return f'<nav aria-label="{escape(_("Before and after"))}">{" ".join(told)}</nav>' if told else ""
