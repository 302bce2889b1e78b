"""QTI packages: a ZIP archive with a manifest and one file an item. Nothing of an archive is ever written to a disk."""

from __future__ import annotations

import io
import lzma
import posixpath
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from quizzes.interchange.draft import Draft
from quizzes.interchange.files import LARGEST, MOST_QUESTIONS, InterchangeError
from quizzes.interchange.forms import QTI, tell, unsayable
from quizzes.interchange.qti_names import Edition, is_item
from quizzes.interchange.qti_read import read_item
from quizzes.interchange.qti_write import item
from quizzes.interchange.report import Report
from quizzes.interchange.safe_xml import includes, local, parse
from quizzes.printable import clean
from quizzes.question import Bank
from quizzes.say import _

MANIFEST = "imsmanifest.xml"
MOST_FILES = 2 * MOST_QUESTIONS
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError),
    *(NotImplementedError, RuntimeError),
)
"""What zipfile raises for an archive that is none any more."""
_SAME_TIME = (1980, 1, 1, 0, 0, 0)  # so that a second export gives the same bytes


def write(banks: Iterable[Bank], edition: Edition, report: Report) -> bytes:
    """A package of the questions of `banks`, which are editions."""
    root = Element("manifest", {"xmlns": edition.package, "identifier": "offload-quiz"})
    metadata = SubElement(root, "metadata")
    SubElement(metadata, "schema").text = edition.schema_name
    SubElement(metadata, "schemaversion").text = edition.schema_version
    SubElement(root, "organizations")
    resources = SubElement(root, "resources")
    files: dict[str, bytes] = {}
    for bank in banks:
        for question in bank.questions:
            if unsayable(question, QTI, report):
                continue
            tell(question, QTI, report)
            path = f"items/{question.id}.xml"
            files[path] = item(question, edition)
            resource = SubElement(resources, "resource", identifier=f"item-{question.id}", type=edition.item_type, href=path)
            SubElement(resource, "file", href=path)
            report.questions += 1
    ElementTree.indent(root)
    manifest = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in {MANIFEST: manifest, **files}.items():
            entry = zipfile.ZipInfo(name, _SAME_TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            package.writestr(entry, data)
    return archive.getvalue()


def read(data: bytes, name: str, report: Report) -> Iterator[Draft]:
    """The questions of a package, in the order of its manifest; of one without, in the order of the archive.

    Raises InterchangeError for an archive that is damaged, or made to do harm: names that lead out of it, the same name twice,
    links, encryption, more files or bytes than LARGEST.
    """
    files = _unpacked(data, name)
    seen = 0
    for path in _listed(files, name, report):
        root = _parsed(files, path, name)
        if isinstance(root, str):
            yield Draft(path, skip=root)
            seen += 1
            continue
        if not is_item(root):
            if local(root) in ("questestinterop", "assessment"):
                yield Draft(path, skip=_("this is QTI 1; export it as QTI 2.2 or 3.0"))
                seen += 1
            continue
        for line in includes(root):
            report.add("", "xi:include", _("{path}, line {line}: not fetched").format(path=path, line=line), "lost")
        seen += 1
        yield read_item(root, path)
    if not seen:
        raise InterchangeError(_("{name}: there is no item of QTI 2 or 3 in this package").format(name=name))


def _parsed(files: dict[str, bytes], path: str, name: str) -> Element | str:
    if path not in files:
        return _("the manifest names this file, and the package has no XML file of this name")
    try:
        return parse(files[path], f"{name}/{path}")
    except InterchangeError as error:
        return str(error)


def _listed(files: dict[str, bytes], name: str, report: Report) -> list[str]:
    """The items that a manifest names."""
    found = []
    held = next((path for path in files if posixpath.basename(path) == MANIFEST), None)
    if held is None:
        report.add("", "manifest", _("there is none; every XML file of the package was looked at"), "lost")
        return sorted(path for path in files if path.endswith(".xml"))
    base = posixpath.dirname(held)
    for node in parse(files[held], f"{name}/{held}").iter():
        if local(node) == "resource" and "item" in (node.get("type") or "item"):
            path = posixpath.normpath(posixpath.join(base, node.get("href") or ""))
            if path not in found and node.get("href"):
                found.append(path)
    return found


def _unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The XML files of an archive, in memory. What an entry claims of its size is not believed."""
    refused = _("{name}: {said}; the package was not read")
    found: dict[str, bytes] = {}
    left = LARGEST
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES:
                said = _("there are more than {most:,} files in it").format(most=MOST_FILES)
                raise InterchangeError(refused.format(name=name, said=said))
            for entry in entries:
                if said := _harm(entry, found):
                    raise InterchangeError(refused.format(name=name, said=said))
                if entry.is_dir() or not entry.filename.endswith(".xml"):
                    continue  # pictures, sounds and styles: nothing of a question that is judged
                with archive.open(entry) as file:
                    content = file.read(left + 1)
                left -= len(content)
                if left < 0:
                    said = _("it unpacks to more than {most:,} bytes").format(most=LARGEST)
                    raise InterchangeError(refused.format(name=name, said=said))
                found[entry.filename] = content
    except InterchangeError:
        raise
    except _DAMAGED as error:
        said = _("the archive is damaged or cut off ({error})").format(error=clean(str(error), 200))  # it may quote a header
        raise InterchangeError(refused.format(name=name, said=said)) from None
    return found


def _harm(entry: zipfile.ZipInfo, found: dict[str, bytes]) -> str:
    """What is wrong with an entry; "" where nothing is."""
    path = entry.filename
    parts = path.replace("\\", "/").split("/")
    if path.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in path:
        return _("the name {path!r} leads out of the package").format(path=path[:100])
    if path in found:
        return _("the name {path!r} is there twice").format(path=path[:100])
    if stat.S_ISLNK(entry.external_attr >> 16):
        return _("{path!r} is a link").format(path=path[:100])
    if entry.flag_bits & 1:
        return _("{path!r} is encrypted").format(path=path[:100])
    return ""
