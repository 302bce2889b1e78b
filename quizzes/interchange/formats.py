"""Banks to files of other programs and back: which format a file has, and what became of every question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from quizzes.interchange import forms, gift_read, gift_write, moodle_read, moodle_write, safe_xml
from quizzes.interchange.draft import Draft, Names, finish
from quizzes.interchange.edition import edition
from quizzes.interchange.files import MOST_QUESTIONS, InterchangeError, decoded
from quizzes.interchange.report import Report
from quizzes.question import Bank, Question
from quizzes.say import _

ENDINGS = {"gift": ".gift", "moodle": ".xml", "qti22": ".zip", "qti3": ".zip"}
FORMS = {"gift": forms.GIFT, "moodle": forms.MOODLE, "qti22": forms.QTI, "qti3": forms.QTI}


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
    raise InterchangeError(_("{format} is no format that is written").format(format=form))


def detect(data: bytes) -> str:
    """The format of a file by what is in it: an archive is a package, what begins with "<" is XML, the rest is GIFT."""
    if data.startswith(b"PK\x03\x04"):
        return "qti22"
    return "moodle" if data.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0").startswith(b"<") else "gift"


def read(data: bytes, name: str, form: str | None = None, lesson: str = "99", title: str = "") -> Imported:
    """The questions of a file called `name`. A question that can't be taken over is in the report and does not touch the
    others. Raises InterchangeError for a file of which nothing can be read."""
    form = form or detect(data)
    report = Report(form)
    drafts = _drafts(data, name, form, report)
    names, found = Names(lesson), []
    for count, draft in enumerate(drafts, 1):
        if count > MOST_QUESTIONS:
            said = _("{name} holds more than {most:,} questions; split it into smaller files")
            raise InterchangeError(said.format(name=name, most=MOST_QUESTIONS))
        question = finish(draft, FORMS[form], names, report)
        if question is not None:
            found.append(question)
    report.questions = len(found)
    if not found and not report.skipped():
        said = _("{name}: no question was found; it was read as {format}, --format names another")
        raise InterchangeError(said.format(name=name, format=form))
    bank = Bank(lesson=lesson, title=title or Path(name).stem or name, questions=tuple(found)) if found else None
    return Imported(bank, report)


def _drafts(data: bytes, name: str, form: str, report: Report) -> Iterator[Draft]:
    if form == "gift":
        return gift_read.read_gift(decoded(data, name))
    root = safe_xml.parse(data, name)
    for line in safe_xml.includes(root):
        report.add("", "xi:include", _("line {line}: what it asks for was not fetched").format(line=line), "lost")
    return moodle_read.read_moodle(root)


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
