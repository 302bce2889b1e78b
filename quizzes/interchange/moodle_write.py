"""Questions as Moodle XML. Pure.

Every text has the format plain_text, so that Moodle takes nothing in it for markup. Weights are those of Moodle's list.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from quizzes.interchange.decimals import decimal, weight
from quizzes.interchange.forms import MOODLE, tell, tell_weights, unsayable
from quizzes.interchange.notes import margin, note, to_line
from quizzes.interchange.report import Report
from quizzes.interchange.texts import clean, starred
from quizzes.question import Bank, Question
from quizzes.units import factor

_TYPES = {
    "one": "multichoice",
    "plot": "multichoice",
    "several": "multichoice",
    "number": "numerical",
    "text": "shortanswer",
    "order": "ordering",
    "match": "matching",
}
UNITS = {
    "bytes": ("bytes", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"),
    "bytes_per_second": ("B/s", "kB/s", "MB/s", "GB/s", "MiB/s", "GiB/s"),
    "seconds": ("s", "ms", "us", "min", "h"),
    "percent": ("%",),
    "dollars": ("$",),
}
"""The units that Moodle is told of, the base unit first."""


def write(banks: Iterable[Bank], report: Report) -> bytes:
    """The questions of `banks`, which are editions, as one file of Moodle XML."""
    root = Element("quiz")
    for bank in banks:
        category = SubElement(root, "question", type="category")
        path = f"$course$/top/offload lab/{bank.lesson} {clean(bank.title).replace('/', '//')}"
        _text(SubElement(category, "category"), path)
        for question in bank.questions:
            if unsayable(question, MOODLE, report):
                continue
            tell(question, MOODLE, report)
            _question(SubElement(root, "question", type=_TYPES[question.kind]), question, bank.lesson, report)
            report.questions += 1
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _text(parent: Element, text: str) -> None:
    SubElement(parent, "text").text = clean(text)


def _field(parent: Element, name: str, text: str) -> Element:
    found = SubElement(parent, name, format="plain_text")
    _text(found, text)
    return found


def _value(parent: Element, name: str, value: object) -> None:
    SubElement(parent, name).text = str(value)


def _question(node: Element, question: Question, lesson: str, report: Report) -> None:
    node.append(ElementTree.Comment(f" {to_line(note(question, MOODLE))} "))
    _text(SubElement(node, "name"), question.id)
    _field(node, "questiontext", question.prompt)
    _field(node, "generalfeedback", "" if question.kind in ("number", "text") else question.explanation)
    _value(node, "defaultgrade", question.points)
    _value(node, "penalty", question.hint_cost)
    _value(node, "hidden", 0)
    _value(node, "idnumber", question.id)
    {"number": _number, "text": _short, "order": _order, "match": _match}.get(question.kind, _choices)(node, question, report)
    for hint in question.hints:
        _field(node, "hint", hint)
    tags = SubElement(node, "tags")
    for tag in (f"lesson-{lesson}", f"level-{question.level}", *question.misconceptions):
        _text(SubElement(tags, "tag"), tag)


def _answer(node: Element, worth: Fraction, text: str, feedback: str, form: str = "plain_text") -> Element:
    found = SubElement(node, "answer", fraction=weight(worth), format=form)
    _text(found, text)
    _field(found, "feedback", feedback)
    return found


def _choices(node: Element, question: Question, report: Report) -> None:
    _value(node, "single", "false" if question.kind == "several" else "true")
    _value(node, "shuffleanswers", "true")
    _value(node, "answernumbering", "abc")
    tell_weights(question, report)
    right = sum(choice.correct for choice in question.choices)
    for choice in question.choices:
        if question.kind == "several":
            worth = Fraction(1 if choice.correct else -1, right)
        else:
            worth = Fraction(1) if choice.correct else Fraction(str(choice.credit))
        _answer(node, worth, choice.text, choice.explanation)


def _short(node: Element, question: Question, report: Report) -> None:
    _value(node, "usecase", 0)
    for text in question.accepted:
        _answer(node, Fraction(1), starred(text), question.explanation, "moodle_auto_format")
    for wrong in question.wrong:
        _answer(node, Fraction(0), starred(wrong.text), wrong.explanation, "moodle_auto_format")


def _number(node: Element, question: Question, report: Report) -> None:
    first = question.right[0]
    rows = [(Fraction(1), part, question.explanation) for part in question.right]
    rows += [(Fraction(0), first.model_copy(update={"value": trap.value}), trap.explanation) for trap in question.traps]
    for worth, part, feedback in rows:
        answer = _answer(node, worth, decimal(part.value.number()), feedback, "moodle_auto_format")
        _value(answer, "tolerance", decimal(margin(part)))
    names = UNITS.get(question.unit or "", ())
    if names:
        units = SubElement(node, "units")
        for name in names:
            unit = SubElement(units, "unit")
            # Moodle divides by it: a thousand is written for a unit that is a thousandth of the base.
            _value(unit, "multiplier", decimal(1 / (factor(name, str(question.unit)) or Fraction(1))))
            _value(unit, "unit_name", name)
    _value(node, "unitgradingtype", 0)
    _value(node, "unitpenalty", 0)
    _value(node, "showunits", 0 if names else 3)
    _value(node, "unitsleft", 0)


def _order(node: Element, question: Question, report: Report) -> None:
    _value(node, "layouttype", "VERTICAL")
    _value(node, "selecttype", "ALL")
    _value(node, "selectcount", len(question.steps))
    _value(node, "gradingtype", "RELATIVE_NEXT_EXCLUDE_LAST")
    _value(node, "showgrading", "SHOW")
    _value(node, "numberingstyle", "none")
    for place, step in enumerate(question.steps, 1):
        answer = SubElement(node, "answer", fraction=f"{place}.0000000", format="plain_text")
        _text(answer, step.text)


def _match(node: Element, question: Question, report: Report) -> None:
    _value(node, "shuffleanswers", "true")
    for left, right in [*((pair.left, pair.right) for pair in question.pairs), *(("", part.text) for part in question.extra)]:
        part = _field(node, "subquestion", left)
        _text(SubElement(part, "answer"), right)
