"""What pages refer to: read, rewritten, and checked, so that a folder of pages opens anywhere and asks nobody. Pure.

A link to another host is looked at and not tried; a page may lead there, and may load nothing from there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urlsplit

from quizzes.say import _

_LOADED = {
    "img": ("src", "srcset"), "source": ("src", "srcset"), "link": ("href",), "iframe": ("src",), "frame": ("src",),
    "embed": ("src",), "object": ("data",), "audio": ("src",), "video": ("src", "poster"), "track": ("src",),
    "input": ("src",), "image": ("href", "xlink:href"), "use": ("href", "xlink:href"), "body": ("background",),
}  # fmt: skip
"""What a browser fetches by itself when it shows a page."""
_LED = {"a": ("href", "xlink:href"), "area": ("href",), "form": ("action",), "button": ("formaction",)}
_IN_STYLE = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)\s]*))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')""", re.I)
_PLAIN = "!$&'()*+,;=:@/?-._~"
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+", re.I)


@dataclass
class Page:
    """What is in a page: `ids` in their order, `led` (links), `loaded`, and `wrong`: what no page may have."""

    ids: list[str] = field(default_factory=list)
    led: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    headings: list[tuple[str, str, str]] = field(default_factory=list)
    """Tag, id and text."""
    wrong: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page, self._heading, self._style, self._hidden = Page(), "", False, 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        page = self.page
        if held.get("id"):
            page.ids.append(held["id"])
        elif tag == "a" and held.get("name"):
            page.ids.append(held["name"])
        page.led += [held[name] for name in _LED.get(tag, ()) if name in held]
        for name in _LOADED.get(tag, ()):
            if name in held:
                page.loaded += [part.split()[0] for part in held[name].split(",")] if name == "srcset" else [held[name]]
        page.loaded += _in_style(held.get("style", ""))
        if tag == "script" or any(name.startswith("on") for name in held):
            page.wrong.append(_("a script ({tag}); pages have none").format(tag=f"<{tag}>"))
        if tag == "base" or (tag == "meta" and held.get("http-equiv", "").lower() == "refresh"):
            page.wrong.append(_("{tag}, which leads elsewhere").format(tag=f"<{tag}>"))
        if tag == "img" and not held.get("alt", "").strip():
            page.wrong.append(_("the picture {name} has no alternative text").format(name=_short(held.get("src", "?"))))
        if tag == "svg" and held.get("aria-hidden") != "true" and not (held.get("aria-label") or held.get("aria-labelledby")):
            page.wrong.append(_("a drawing (svg) has no alternative text"))
        if re.fullmatch("h[1-6]", tag):
            self._heading = tag
            page.headings.append((tag, held.get("id", ""), ""))
        self._hidden += tag == "a" and "anchor-link" in held.get("class", "")
        self._style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        if tag == self._heading:
            self._heading = ""
        if tag == "a":
            self._hidden = 0
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style:
            self.page.loaded += _in_style(data)
        elif self._heading and not self._hidden:
            tag, name, text = self.page.headings[-1]
            self.page.headings[-1] = tag, name, text + data


def read(text: str) -> Page:
    """What is in a page of HTML."""
    return _Reader(text).page


class _Places(HTMLParser):
    """Where each tag with a link or a picture stands; everything else of a page stays as it is, letter by letter."""

    def __init__(self, text: str, change: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=True)
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.change, self.found = change, list[tuple[int, int, str]]()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]], end: str = ">") -> None:
        named = {"a": "href", "img": "src"}.get(tag)
        new = [(name, self.change(value) if name == named and value else value) for name, value in attrs]
        if new != attrs:
            line, column = self.getpos()
            start = self.starts[line - 1] + column
            told = "".join(f" {name}" if value is None else f' {name}="{escape(value)}"' for name, value in new)
            self.found.append((start, start + len(self.get_starttag_text() or ""), f"<{tag}{told}{end}"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs, " />")


def rewritten(text: str, change: Callable[[str], str]) -> str:
    """HTML with what each link and picture refers to replaced by what `change` makes of it."""
    for start, end, tag in reversed(_Places(text, change).found):
        text = text[:start] + tag + text[end:]
    return text


def faults(pages: Mapping[str, str], files: Collection[str], styles: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong, a sentence each, with page and link named. `pages` by their paths in the site, with slashes; `files` are
    all paths there are, pages too; `styles` the texts of style sheets."""
    known = {name: read(text) for name, text in pages.items()}
    there = {*files, *pages}
    said = []
    for name, page in known.items():
        twice = dict.fromkeys(each for each in page.ids if page.ids.count(each) > 1)
        told = [*page.wrong, *(_("the id {name} is there twice").format(name=each) for each in twice)]
        told += [why for link in dict.fromkeys(page.loaded) if (why := _loaded(name, link, there))]
        told += [why for link in dict.fromkeys(page.led) if (why := _led(name, link, there, known))]
        said += [f"{name}: {why}." for why in told]
    for name, text in (styles or {}).items():
        said += [f"{name}: {why}." for link in _in_style(text) if (why := _loaded(name, link, there))]
    return said


def _loaded(page: str, link: str, there: Collection[str]) -> str:
    if link.startswith("data:") or (link.startswith("#") and len(link) > 1):
        return ""
    if _is_elsewhere(link):
        return _("{link} is loaded from another host; a page has to open without a network").format(link=_short(link))
    return "" if _target(page, link)[0] in there else _("{link} is not there").format(link=_short(link))


def _led(page: str, link: str, there: Collection[str], known: Mapping[str, Page]) -> str:
    if _is_elsewhere(link):
        try:
            parts = urlsplit(link)
            web = parts.scheme in {"http", "https"} and _HOST.fullmatch(parts.hostname or "") and (parts.port or 1)
        except ValueError:
            web = False
        mail = re.fullmatch(r"mailto:[^@\s]+@[^@\s]+", link)
        good = (web or mail) and not re.search(r"\s", link)
        return "" if good else _("{link} is no address of a page on the web").format(link=_short(link))
    target, place = _target(page, link)
    if target not in there:
        return _("the link {link} leads to {file}, which is not there").format(link=_short(link), file=target or "/")
    # A browser looks for the id as the address has it, then for what that stands for.
    if place and target in known and not {place, unquote(place), quote(place, safe="%" + _PLAIN)} & {*known[target].ids}:
        said = _("the link {link} leads to no place: {file} has no id {name}")
        return said.format(link=_short(link), file=target, name=unquote(place))
    return ""


def _is_elsewhere(link: str) -> bool:
    return link.startswith("//") or bool(re.match(r"[a-z][a-z0-9+.-]*:", link.strip(), re.I))


def _target(page: str, link: str) -> tuple[str, str]:
    """The path in the site and the id that a link on `page` leads to; "" for a path outside of it."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return "", ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path))) if parts.path else page
    if parts.path.endswith("/") and parts.path:
        path = posixpath.join(path, "index.html").removeprefix("./")
    return ("" if path.startswith("..") else path), parts.fragment


def _in_style(text: str) -> list[str]:
    return [next((part for part in found.groups() if part is not None), "") for found in _IN_STYLE.finditer(text)]


def _short(link: str) -> str:
    return repr(link if len(link) < 120 else link[:100] + "…")
