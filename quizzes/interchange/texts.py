"""Texts of other programs as plain text: no markup goes on, and nothing that a browser could run. Pure."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

from quizzes.say import _

_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_HIDDEN = frozenset({"script", "style", "template", "noscript", "iframe", "object", "svg", "head", "title", "textarea"})
_BLOCKS = """
address article blockquote dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr li main ol p pre section table tr ul
"""
_INLINE = """
a abbr acronym b bdi bdo big body br button center cite code del dfn em embed font html i img input ins kbd label link mark
math meta picture q s samp select small source span strike strong sub sup tbody td tfoot th thead tt u var video audio
"""
_PICTURES = frozenset({"img", "video", "audio", "embed", "object", "iframe", "svg", "picture"})
_KNOWN = "|".join(sorted({*_HIDDEN, *_BLOCKS.split(), *_INLINE.split()}, key=len, reverse=True))
_TAG = re.compile(rf"<!--.*?(?:-->|\Z)|</?(?:{_KNOWN})\b(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", re.I | re.S)
_HIDDEN_BLOCK = re.compile(r"<(script|style|template|noscript|iframe|object|svg)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.I | re.S)


def clean(text: str) -> str:
    """Without control characters and halves of surrogate pairs; every kind of line end is \\n; no space at either end."""
    return _CONTROL.sub("", _LINE_END.sub("\n", text)).strip()


def from_html(text: str) -> tuple[str, list[str]]:
    """The words of HTML, and what of it can't be text. Powers and indices stay ("10^9"), blocks become lines."""
    reader = _Words()
    reader.feed(text)
    reader.close()
    return clean(reader.text()), reader.lost()


def has_markup(text: str) -> bool:
    """Whether known HTML tags are in a text; "a < b and c > d" holds none."""
    return bool(_TAG.search(text) or _HIDDEN_BLOCK.search(text))


def from_markdown(text: str) -> tuple[str, list[str]]:
    """Markdown stays as it is, which people can read; HTML inside it goes."""
    found, before = text, None
    while found != before:  # what is left of one tag may be another
        before, found = found, _TAG.sub("", _HIDDEN_BLOCK.sub("", found))
    return clean(found), [_("its HTML tags")] if found != text else []


def from_mixed(text: str) -> tuple[str, list[str]]:
    """Moodle's automatic format: text whose lines stay lines, in which HTML may stand."""
    if not has_markup(text):
        return clean(html.unescape(text)), []
    # "a < b" is no tag: only those that are known, and whole, are.
    kept = [match.span() for pattern in (_TAG, _HIDDEN_BLOCK) for match in pattern.finditer(text)]
    inside = {place for start, end in kept for place in range(start, end)}
    found = "".join("&lt;" if char == "<" and place not in inside else char for place, char in enumerate(text))
    return from_html(found.replace("\r\n", "\n").replace("\n", "<br>"))


def read(text: str, form: str) -> tuple[str, list[str]]:
    """`text` of one of the formats "html", "markdown", "plain", "moodle" as plain text, and what was lost."""
    makers = {"html": from_html, "markdown": from_markdown, "moodle": from_mixed}
    return makers[form](text) if form in makers else (clean(text), [])


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._hidden: list[str] = []
        self._kept = 0
        self._pictures = 0
        self._scripts = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _PICTURES:
            self._pictures += 1
            told = next((value for name, value in attrs if name == "alt" and value), "")
            if told and not self._hidden:
                self._parts.append(f"[{' '.join(told.split())}]")
        if tag in _HIDDEN:
            self._scripts = self._scripts or tag == "script"
            self._hidden.append(tag)
        elif tag == "pre":
            self._kept += 1
        elif tag == "br" and not self._hidden:
            self._parts.append("\n")
        elif tag in ("sup", "sub") and not self._hidden:
            # Ten to the ninth is another number than a hundred and nine.
            self._parts.append("^" if tag == "sup" else "_")
        self._edge(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in _HIDDEN:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag == "pre":
            self._kept = max(0, self._kept - 1)
        self._edge(tag)

    def _edge(self, tag: str) -> None:
        if self._hidden:
            return
        if tag in _BLOCKS.split() and self._parts and not self._parts[-1].endswith("\n"):
            self._parts.append("\n")
        elif tag in ("td", "th"):
            self._parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._parts.append(data if self._kept else re.sub(r"[ \t\r\n\f]+", " ", data))

    def text(self) -> str:
        return re.sub(r" *\n *", "\n", "".join(self._parts)) if "\n" in self._parts else "".join(self._parts)

    def lost(self) -> list[str]:
        found = [_("its pictures")] if self._pictures else []
        return found + ([_("its scripts")] if self._scripts else [])


def one_space(text: str) -> str:
    """As HTML shows a text: one space between words, none at the ends of lines; lines stay."""
    return "\n".join(" ".join(re.split(r"[ \t\f]+", line)).strip(" ") for line in text.split("\n")).strip()


def as_html_shows(text: str) -> str:
    """What is read of a text that is written into HTML: one space between words; that of an indented line is no-break."""
    return one_space(re.sub(r"(?m)^ +", lambda spaces: "\u00a0" * len(spaces[0]), clean(text)))


def starred(text: str) -> str:
    """A short answer for Moodle, to which "*" is any text and "\\*" an asterisk."""
    return text.replace("*", "\\*")


def unstarred(text: str) -> str | None:
    """What a short answer of Moodle stands for; None where it stands for more than one text."""
    return None if re.search(r"(?<!\\)\*", text) else text.replace("\\*", "*")
