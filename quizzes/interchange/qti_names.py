"""The two editions of QTI: 3.0 says what 2.2 says with a prefix and hyphens. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

_HTML = frozenset({"p", "br"})  # what is written of HTML, which has the same names in both editions
_WORDS = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True)
class Edition:
    """Names and addresses of one edition of the standard."""

    name: str
    items: str
    schema: str
    package: str
    schema_name: str
    schema_version: str
    item_type: str


QTI22 = Edition(
    "qti22",
    "http://www.imsglobal.org/xsd/imsqti_v2p2",
    "http://www.imsglobal.org/xsd/qti/qtiv2p2/imsqti_v2p2.xsd",
    "http://www.imsglobal.org/xsd/imscp_v1p1",
    "QTIv2.2 Package",
    "1.0.0",
    "imsqti_item_xmlv2p2",
)
QTI3 = Edition(
    "qti3",
    "http://www.imsglobal.org/xsd/imsqtiasi_v3p0",
    "https://purl.imsglobal.org/spec/qti/v3p0/schema/xsd/imsqti_asiv3p0p1_v1p0.xsd",
    "http://www.imsglobal.org/xsd/qti/qtiv3p0/imscp_v1p1",
    "QTI Package",
    "3.0.0",
    "imsqti_item_xmlv3p0",
)


def hyphened(name: str) -> str:
    """maxChoices as QTI 3 writes it: max-choices."""
    return _WORDS.sub("-", name).lower()


def humped(name: str) -> str:
    """qti-simple-choice as QTI 2 writes it: simpleChoice."""
    first, *rest = name.removeprefix("qti-").split("-")
    return first + "".join(part.capitalize() for part in rest)


def to_qti3(node: Element) -> None:
    """Rename an item of QTI 2 and all in it to the names of QTI 3."""
    for modal in node.iter("modalFeedback"):
        body = Element("contentBody")
        body.extend(list(modal))
        modal[:] = [body]
    for part in node.iter():
        if not isinstance(part.tag, str) or part.tag in _HTML:
            continue
        part.tag = f"qti-{hyphened(part.tag)}"
        for name in list(part.attrib):
            if not name.startswith(("{", "xml")):
                part.set(hyphened(name), part.attrib.pop(name))


def named(node: Element) -> str:
    """The name of an element as QTI 2 has it; "" for a comment."""
    return humped(node.tag.rpartition("}")[2]) if isinstance(node.tag, str) else ""


def attribute(node: Element, name: str) -> str:
    """An attribute by its name in QTI 2; "" where it is not there."""
    return (node.get(name) or node.get(hyphened(name)) or "").strip()


def is_item(node: Element) -> bool:
    return named(node) == "assessmentItem"
