"""XML from strangers: no document type, no entities, nothing fetched, and limits on depth and number of elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from quizzes.interchange.files import InterchangeError
from quizzes.say import _

DEEPEST = 100
MOST_ELEMENTS = 500_000
_INCLUDE = "{http://www.w3.org/2001/XInclude}"


class Node(ElementTree.Element):
    """An element that knows the line on which it begins."""

    line = 0


class _Builder(ElementTree.TreeBuilder):
    """Builds the tree, and stops where it grows too deep or too large. Comments stay: notes stand in them."""

    def __init__(self, name: str) -> None:
        super().__init__(element_factory=Node, insert_comments=True)
        self.name, self.depth, self.count = name, 0, 0
        self.parser: Any = None

    def start(self, tag: Any, attrs: Any) -> Any:  # type: ignore[override]
        self.depth += 1
        self.count += 1
        if self.depth > DEEPEST:
            self._stop(_("elements are nested more than {most} deep").format(most=DEEPEST))
        if self.count > MOST_ELEMENTS:
            self._stop(_("there are more than {most:,} elements").format(most=MOST_ELEMENTS))
        node = super().start(tag, attrs)
        node.line = self.parser.CurrentLineNumber
        return node

    def end(self, tag: Any) -> Any:  # type: ignore[override]
        self.depth -= 1
        return super().end(tag)

    def _stop(self, said: str) -> None:
        told = _("{name}, line {line}: {said}; no file of questions needs that, and it was not read")
        raise InterchangeError(told.format(name=self.name, line=self.parser.CurrentLineNumber, said=said))


def parse(data: bytes, name: str) -> Node:
    """The root element. Raises InterchangeError naming file and line for what is no XML, or XML that is not safe to read."""
    builder = _Builder(name)
    parser = DefusedXMLParser(target=builder, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    builder.parser = parser.parser
    try:
        parser.feed(data)
        return parser.close()
    except DefusedXmlException:
        said = _("a document type or entity is declared, which could read files or fill the memory; take the declaration out")
    except ElementTree.ParseError as error:
        said = _why(str(error).partition(":")[0])
        raise InterchangeError(_line(name, error.position[0], said)) from None
    except (LookupError, UnicodeError, ValueError) as error:
        if isinstance(error, InterchangeError):
            raise
        said = _("its encoding is not known or not kept to; save the file as UTF-8")
    raise InterchangeError(_line(name, parser.parser.CurrentLineNumber, said))


def _line(name: str, line: int, said: str) -> str:
    return _("{name}, line {line}: {said}").format(name=name, line=line, said=said)


def _why(error: str) -> str:
    if error in ("no element found", "unclosed token", "unclosed CDATA section"):
        return _("the XML ends too early; the file was cut off, copy it again")
    if error.startswith("undefined entity"):
        return _("{error}; XML knows five names only, write the character itself").format(error=error)
    if error == "unknown encoding":
        return _("its encoding is not known or not kept to; save the file as UTF-8")
    return _("this is no well-formed XML ({error}); mend it, or export it again").format(error=error)


def local(node: ElementTree.Element) -> str:
    """The name of an element without its namespace; "" for a comment."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def children(node: ElementTree.Element, *names: str) -> Iterator[Node]:
    """Child elements of these names."""
    for child in node:
        if isinstance(child.tag, str) and local(child) in names:
            yield child  # type: ignore[misc]


def child(node: ElementTree.Element | None, name: str) -> Node | None:
    return next(children(node, name), None) if node is not None else None


def words(node: ElementTree.Element | None) -> str:
    """All text of an element and what is in it, comments left out."""
    if node is None:
        return ""
    parts = [node.text or ""] if isinstance(node.tag, str) else []
    for inner in node:
        parts += [words(inner) if isinstance(inner.tag, str) else "", inner.tail or ""]
    return "".join(parts)


def comments(node: ElementTree.Element) -> Iterator[str]:
    """The comments right inside of an element."""
    return (part.text or "" for part in node if part.tag is ElementTree.Comment)


def includes(root: ElementTree.Element) -> list[int]:
    """The lines on which XInclude asks for another file; nothing is fetched."""
    return [getattr(node, "line", 0) for node in root.iter() if isinstance(node.tag, str) and node.tag.startswith(_INCLUDE)]
