"""Questions as QTI items, 2.2 or 3.0. Pure.

Points are shares of one: what an answer earns stands in a mapping, or in the response processing of numbers and words.
Feedback is modal: the id of a choice is the id of what is told for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from quizzes.interchange.decimals import decimal
from quizzes.interchange.forms import QTI
from quizzes.interchange.notes import margin, note, to_line
from quizzes.interchange.qti_names import Edition, to_qti3
from quizzes.question import Question

_ANSWER, _SCORE, _TOLD, _GENERAL = "RESPONSE", "SCORE", "FEEDBACK", "GENERAL"
ANY = "AnyAnswer"
"""The name of what is told after any answer; ids of ours have no capital letter."""


def item(question: Question, edition: Edition) -> bytes:
    """One item, in UTF-8."""
    root = Element("assessmentItem", identifier=identifier(question.id), title=question.id)
    root.set("adaptive", "false")
    root.set("timeDependent", "false")
    root.set("toolName", "offload-quiz")
    root.append(ElementTree.Comment(f" {to_line(note(question, QTI))} "))
    writer = {"number": _number, "text": _text, "order": _order, "match": _match}.get(question.kind, _choices)
    writer(root, question)
    if edition.name == "qti3":
        to_qti3(root)
    root.set("xmlns", edition.items)
    root.set("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
    root.set("xsi:schemaLocation", f"{edition.items} {edition.schema}")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def identifier(name: str) -> str:
    """An id of ours as a name of XML, which begins with a letter or "_"."""
    return name if name[0].isalpha() else f"_{name}"


def _words(parent: Element, text: str) -> None:
    """Text as it stands, with a <br/> for each new line."""
    first, *rest = QTI.normal(text).split("\n")
    parent.text = first
    for line in rest:
        SubElement(parent, "br").tail = line


def _declared(root: Element, cardinality: str, kind: str, right: Iterable[str]) -> Element:
    declared = SubElement(root, "responseDeclaration", identifier=_ANSWER, cardinality=cardinality, baseType=kind)
    correct = SubElement(declared, "correctResponse")
    for value in right:
        SubElement(correct, "value").text = value
    return declared


def _mapped(declared: Element, worth: dict[str, Fraction], otherwise: Fraction = Fraction(0), plain: bool = False) -> None:
    mapping = SubElement(declared, "mapping", lowerBound="0", upperBound="1", defaultValue=decimal(otherwise))
    for key, share in worth.items():
        entry = SubElement(mapping, "mapEntry", mapKey=key, mappedValue=decimal(share))
        if plain:
            entry.set("caseSensitive", "false")


def _outcomes(root: Element, told: str, general: str = "") -> None:
    score = SubElement(root, "outcomeDeclaration", identifier=_SCORE, cardinality="single", baseType="float")
    score.set("normalMaximum", "1")
    SubElement(SubElement(score, "defaultValue"), "value").text = "0"
    SubElement(root, "outcomeDeclaration", identifier=_TOLD, cardinality=told, baseType="identifier")
    if general:
        SubElement(root, "outcomeDeclaration", identifier=_GENERAL, cardinality="single", baseType="identifier")


def _body(root: Element, question: Question) -> Element:
    body = SubElement(root, "itemBody")
    _words(SubElement(body, "p"), question.prompt)
    return body


def _set(parent: Element, outcome: str, kind: str, value: str) -> None:
    base = SubElement(SubElement(parent, "setOutcomeValue", identifier=outcome), "baseValue", baseType=kind)
    base.text = value


def _processed(root: Element, told: bool) -> Element:
    """Score by the mapping; what was answered names what is told."""
    processing = SubElement(root, "responseProcessing")
    score = SubElement(processing, "setOutcomeValue", identifier=_SCORE)
    SubElement(score, "mapResponse", identifier=_ANSWER)
    if told:
        SubElement(SubElement(processing, "setOutcomeValue", identifier=_TOLD), "variable", identifier=_ANSWER)
    return processing


def _feedback(root: Element, name: str, text: str, outcome: str = _TOLD) -> None:
    modal = SubElement(root, "modalFeedback", outcomeIdentifier=outcome, identifier=name, showHide="show")
    _words(SubElement(modal, "p"), text)


def _choices(root: Element, question: Question) -> None:
    several = question.kind == "several"
    right = [choice for choice in question.choices if choice.correct]
    worth = {}
    for choice in question.choices:
        if several:
            worth[identifier(choice.id)] = Fraction(1 if choice.correct else -1, len(right))
        else:
            worth[identifier(choice.id)] = Fraction(1) if choice.correct else Fraction(str(choice.credit))
    # One response holds one value, though several may be right: the mapping says which.
    shown = right if several else right[:1]
    declared = _declared(root, "multiple" if several else "single", "identifier", (identifier(part.id) for part in shown))
    _mapped(declared, worth)
    _outcomes(root, "multiple" if several else "single", question.explanation)
    interaction = SubElement(_body(root, question), "choiceInteraction", responseIdentifier=_ANSWER, shuffle="true")
    interaction.set("maxChoices", "0" if several else "1")
    for choice in question.choices:
        part = SubElement(interaction, "simpleChoice", identifier=identifier(choice.id))
        if choice.stays_last:
            part.set("fixed", "true")
        _words(part, choice.text)
    processing = _processed(root, told=True)
    for choice in question.choices:
        _feedback(root, identifier(choice.id), choice.explanation)
    _general(root, processing, question)


def _general(root: Element, processing: Element, question: Question) -> None:
    """What is told after any answer."""
    if question.explanation:
        _set(processing, _GENERAL, "identifier", ANY)
        _feedback(root, ANY, question.explanation, _GENERAL)


def _cases(root: Element, rows: list[tuple[Element, str, str, str]]) -> None:
    """Response processing case by case: (condition, score, id of what is told, what is told)."""
    condition = SubElement(SubElement(root, "responseProcessing"), "responseCondition")
    for place, (test, score, name, _told) in enumerate(rows):
        case = SubElement(condition, "responseElseIf" if place else "responseIf")
        case.append(test)
        _set(case, _SCORE, "float", score)
        _set(case, _TOLD, "identifier", name)
    for _test, _score, name, told in rows:
        _feedback(root, name, told)


def _number(root: Element, question: Question) -> None:
    first = question.right[0]
    _declared(root, "single", "float", [decimal(first.value.number())])
    _outcomes(root, "single")
    SubElement(SubElement(_body(root, question), "p"), "textEntryInteraction", responseIdentifier=_ANSWER)
    rows = [(part, "1", f"right-{n}", question.explanation) for n, part in enumerate(question.right, 1)]
    rows += [
        (first.model_copy(update={"value": trap.value}), "0", f"trap-{n}", trap.explanation)
        for n, trap in enumerate(question.traps, 1)
    ]
    cases = []
    for part, score, name, told in rows:
        test = Element("equal", toleranceMode="absolute", tolerance=decimal(margin(part)))
        SubElement(test, "variable", identifier=_ANSWER)
        SubElement(test, "baseValue", baseType="float").text = decimal(part.value.number())
        cases.append((test, score, name, told))
    _cases(root, cases)


def _text(root: Element, question: Question) -> None:
    declared = _declared(root, "single", "string", [QTI.normal(question.accepted[0])])
    worth = dict.fromkeys(map(QTI.normal, question.accepted), Fraction(1))
    _mapped(declared, worth, plain=True)
    _outcomes(root, "single")
    SubElement(SubElement(_body(root, question), "p"), "textEntryInteraction", responseIdentifier=_ANSWER)
    rows = [(text, "1", f"right-{n}", question.explanation) for n, text in enumerate(question.accepted, 1)]
    rows += [(wrong.text, "0", f"wrong-{n}", wrong.explanation) for n, wrong in enumerate(question.wrong, 1)]
    cases = []
    for text, score, name, told in rows:
        test = Element("stringMatch", caseSensitive="false")
        SubElement(test, "variable", identifier=_ANSWER)
        SubElement(test, "baseValue", baseType="string").text = QTI.normal(text)
        cases.append((test, score, name, told))
    _cases(root, cases)


def _order(root: Element, question: Question) -> None:
    _declared(root, "ordered", "identifier", (identifier(step.id) for step in question.steps))
    _outcomes(root, "single", question.explanation)
    interaction = SubElement(_body(root, question), "orderInteraction", responseIdentifier=_ANSWER, shuffle="true")
    for step in sorted(question.steps, key=lambda step: step.id):
        _words(SubElement(interaction, "simpleChoice", identifier=identifier(step.id)), step.text)
    processing = SubElement(root, "responseProcessing")
    case = SubElement(SubElement(processing, "responseCondition"), "responseIf")
    test = SubElement(case, "match")
    SubElement(test, "variable", identifier=_ANSWER)
    SubElement(test, "correct", identifier=_ANSWER)
    _set(case, _SCORE, "float", "1")
    _general(root, processing, question)


def _match(root: Element, question: Question) -> None:
    share = Fraction(1, len(question.pairs))
    options = question.options()
    right = {f"{identifier(pair.id)} {_option(question, pair.right)}": share for pair in question.pairs}
    declared = _declared(root, "multiple", "directedPair", right)
    _mapped(declared, right, otherwise=-share)
    _outcomes(root, "multiple", question.explanation)
    interaction = SubElement(_body(root, question), "matchInteraction", responseIdentifier=_ANSWER, shuffle="true")
    interaction.set("maxAssociations", str(len(question.pairs)))
    lefts, rights = SubElement(interaction, "simpleMatchSet"), SubElement(interaction, "simpleMatchSet")
    for pair in question.pairs:
        _words(SubElement(lefts, "simpleAssociableChoice", identifier=identifier(pair.id), matchMax="1"), pair.left)
    for text in options.values():
        name = _option(question, text)
        _words(SubElement(rights, "simpleAssociableChoice", identifier=name, matchMax="0"), text)
    _general(root, _processed(root, told=False), question)


def _option(question: Question, text: str) -> str:
    """The name of an offered right side: that of the extra one, else its number; ids of ours have no capital letter."""
    extra = next((part.id for part in question.extra if part.text == text), None)
    number = next(name for name, offered in question.options().items() if offered == text)
    return f"X_{extra}" if extra else f"O_{number}"
