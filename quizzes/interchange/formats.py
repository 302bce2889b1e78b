"""Banks to files of other programs and back: which format a file has, and what became of every question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from quizzes.interchange import forms, gift_read, gift_write, moodle_read, moodle_write, qti_package, safe_xml
from quizzes.interchange.draft import Draft, Names, finish
from quizzes.interchange.edition import edition
from quizzes.interchange.files import MOST_QUESTIONS, InterchangeError, decoded
from quizzes.interchange.qti_names import QTI3, QTI22, is_item
from quizzes.interchange.qti_read import read_item
from quizzes.interchange.report import Report
from quizzes.interchange.texts import clean
from quizzes.question import Bank, Question
from quizzes.say import _

ENDINGS = {"gift": ".gift", "moodle": ".xml", "qti22": ".zip", "qti3": ".zip"}
FORMS = {"gift": forms.GIFT, "moodle": forms.MOODLE, "qti22": forms.QTI, "qti3": forms.QTI}

_XML = re.compile(rb"<(?:\?xml|!|quiz\b|manifest\b|assessmentItem\b|qti-)")


@dataclass
class Imported:
    """The questions of a file as a bank, none where nothing could be taken over, and what there is to say about them."""

    bank: Bank | None
    report: Report = field(default_factory=Report)


def export(banks: Iterable[Bank], form: str) -> tuple[bytes, Report]:
    """One file of all questions of `banks`, in one of the formats of ENDINGS."""
    report = Report(form)
    editions = [
        bank.model_copy(update={"questions": tuple(edition(question, report) for question in bank.questions)}) for bank in banks
    ]
    if form == "gift":
        return gift_write.write(editions, report).encode("utf-8"), report
    if form == "moodle":
        return moodle_write.write(editions, report), report
    edition_ = {"qti22": QTI22, "qti3": QTI3}[form]
    return qti_package.write(editions, edition_, report), report


def detect(data: bytes) -> str:
    """What a file is by how it begins: "zip", "xml" or "gift"."""
    if data.startswith(b"PK"):
        return "zip"
    start = data[:4000].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    # GIFT may begin with a tag of HTML, but has braces then.
    return "xml" if _XML.match(start) or (start.startswith(b"<") and b"{" not in data) else "gift"


def read(data: bytes, name: str, form: str | None = None, lesson: str = "99", title: str = "") -> Imported:
    """The questions of a file called `name`. A question that can't be taken over is in the report and does not touch the
    others. Raises InterchangeError for a file of which nothing can be read."""
    report = Report()
    report.format, drafts = _opened(data, name, form, report)
    names, found = Names(lesson), []
    for count, draft in enumerate(drafts, 1):
        if count > MOST_QUESTIONS:
            said = _("{name} holds more than {most:,} questions; split it into smaller files")
            raise InterchangeError(said.format(name=name, most=MOST_QUESTIONS))
        question = finish(draft, FORMS[report.format], names, report)
        if question is not None:
            found.append(question)
    report.questions = len(found)
    if not found and not report.skipped():
        said = _("{name}: no question was found; it was read as {format}, --format names another")
        raise InterchangeError(said.format(name=name, format=report.format))
    bank = Bank(lesson=lesson, title=title or clean(Path(name).stem) or "-", questions=tuple(found)) if found else None
    return Imported(bank, report)


def _opened(data: bytes, name: str, form: str | None, report: Report) -> tuple[str, Iterator[Draft]]:
    """The format and the questions of a file. Raises InterchangeError where it is of another format than `form` asks for."""
    kind = "gift" if form == "gift" else detect(data)
    if kind == "gift":
        if form not in (None, "gift"):
            raise InterchangeError(_("{name}: this is no file of {format}; leave --format out").format(name=name, format=form))
        return "gift", gift_read.read_gift(decoded(data, name))
    if kind == "zip":
        found: tuple[str, Iterator[Draft]] = "qti3", qti_package.read(data, name, report)
    else:
        root = safe_xml.parse(data, name)
        for line in safe_xml.includes(root):
            report.add("", "xi:include", _("line {line}: what it asks for was not fetched").format(line=line), "lost")
        if is_item(root):
            found = "qti3", iter([read_item(root, _("line {line}").format(line=root.line))])
        elif safe_xml.local(root) == "quiz":
            found = "moodle", moodle_read.read_moodle(root)
        else:
            said = _("{name}: <{root}> is neither Moodle XML (<quiz>) nor an item of QTI 2 or 3; export it as one of these")
            raise InterchangeError(said.format(name=name, root=safe_xml.local(root)[:60]))
    if form is not None and FORMS[form] is not FORMS[found[0]]:
        raise InterchangeError(_("{name}: this is no file of {format}; leave --format out").format(name=name, format=form))
    return (form or found[0]), found[1]


def checked(bank: Bank) -> str:
    """The file of a bank, read back and found to be the same. Raises InterchangeError where it is not: that is our fault."""
    text = as_yaml(bank)
    try:
        same = Bank.model_validate(yaml.safe_load(text)) == bank
    except (ValueError, yaml.YAMLError) as error:
        raise InterchangeError(
            _("the bank cannot be written as YAML, nothing was written: {error}").format(error=error)
        ) from None
    if not same:
        raise InterchangeError(_("the bank changes when it is written as YAML; nothing was written"))
    return text


def as_yaml(bank: Bank) -> str:
    """A bank as a file that `quizzes.question.load` reads."""
    content = {
        "lesson": bank.lesson,
        "title": bank.title,
        "questions": [_question(question) for question in bank.questions],
    }
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=120)


def _question(question: Question) -> dict[str, Any]:
    data = question.model_dump(mode="json", exclude_defaults=True)
    for part in (data, *data.get("answers", ()), *data.get("traps", ())):
        if isinstance(part.get("value"), dict):
            part["value"] = part["value"]["plain"]
    for part in (*data.get("pairs", ()), *data.get("extra", ())):
        part.pop("option", None)
    return data
