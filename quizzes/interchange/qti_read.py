"""QTI items, 2.1 to 3.0, as questions. Names are those of QTI 2; an item of QTI 3 is read by the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any
from xml.etree.ElementTree import Element

from quizzes.interchange.decimals import number
from quizzes.interchange.draft import Draft, Skipped, slug
from quizzes.interchange.kinds import MOST_ANSWERS, choices, numbers, texts
from quizzes.interchange.notes import from_line
from quizzes.interchange.qti_cases import cases
from quizzes.interchange.qti_names import attribute, is_item, named
from quizzes.interchange.qti_write import ANY
from quizzes.interchange.safe_xml import comments, local, words
from quizzes.interchange.texts import from_html, starred
from quizzes.say import _

_APART = {"rubricBlock", "feedbackInline", "feedbackBlock", "modalFeedback", "stylesheet", "catalogInfo"}


@dataclass
class _Declared:
    """What an item says of one response. `worth` maps an answer to its points."""

    cardinality: str = "single"
    base: str = ""
    correct: list[str] = field(default_factory=list)
    worth: dict[str, Fraction] = field(default_factory=dict)
    insensitive: bool = True


def read_item(root: Element, where: str) -> Draft:
    """The question of an item; one that can't be taken over has the reason in `skip`."""
    draft = Draft(where, id=attribute(root, "identifier").lstrip("_"), title=attribute(root, "title"))
    draft.note = next((found for found in map(from_line, comments(root)) if found is not None), None)
    try:
        if not is_item(root):
            raise Skipped(_("this is no item of QTI 2 or 3 but <{name}>").format(name=local(root)[:40]))
        _read(draft, root)
    except Skipped as error:
        draft.skip = str(error)
    except ValueError as error:
        draft.skip = _("{said}; write a number such as 12.5 or 1e-8").format(said=error)
    return draft


def _read(draft: Draft, root: Element) -> None:
    body = next(_all(root, "itemBody"), None)
    if body is None:
        raise Skipped(_("it has no body"))
    interactions = [node for node in body.iter() if named(node).endswith("Interaction")]
    if len(interactions) != 1:
        raise Skipped(_("it has {count} interactions; questions with one are taken over").format(count=len(interactions)))
    (interaction,) = interactions
    reader = _READERS.get(named(interaction))
    if reader is None:
        raise Skipped(_("an interaction {name} can't be judged here").format(name=named(interaction)[:40]))
    declared = _declaration(root, attribute(interaction, "responseIdentifier"))
    asked = [_text(draft, body, "prompt", apart=interaction)]
    asked += [_text(draft, part, "prompt") for part in _all(interaction, "prompt")]
    draft.data["prompt"] = "\n".join(part for part in asked if part)
    told = _feedback(draft, root)
    if ANY in told:
        draft.data["explanation"] = told.pop(ANY)
    reader(draft, root, interaction, declared, told)
    for name in sorted(told):
        draft.lost("feedback", _("what is told as {name}").format(name=name[:40]))


def _all(node: Element, *names: str) -> Iterator[Element]:
    """Elements of these names inside of `node`, in the order of the file."""
    return (part for part in node.iter() if part is not node and named(part) in names)


def _text(draft: Draft, node: Element, what: str, apart: Element | None = None) -> str:
    """The words of an element, without feedback, rubrics, prompts of interactions, and `apart`."""
    found, lost = from_html(_html(node, apart))
    for said in lost:
        draft.lost(what, _("{what} are not carried").format(what=said))
    return found


def _html(node: Element, apart: Element | None) -> str:
    parts = [escape(node.text or "", quote=False)]
    for inner in node:
        name = local(inner)
        if (
            name
            and inner is not apart
            and named(inner) not in _APART
            and not inner.tag.startswith("{http://www.w3.org/2001/XI")
        ):
            told = f' alt="{escape(inner.get("alt") or "")}"' if inner.get("alt") else ""
            # Whatever has no meaning in HTML is a part of its line.
            tag = name.lower() if name.isalnum() else "span"
            parts.append(f"<{tag}{told}>{_html(inner, apart)}" + ("" if tag in ("br", "img", "hr") else f"</{tag}>"))
        parts.append(escape(inner.tail or "", quote=False))
    return "".join(parts)


def _declaration(root: Element, name: str) -> _Declared:
    node = next((part for part in _all(root, "responseDeclaration") if attribute(part, "identifier") == name), None)
    if node is None:
        raise Skipped(_("its response {name!r} is not declared").format(name=name[:40]))
    found = _Declared(attribute(node, "cardinality") or "single", attribute(node, "baseType"))
    for correct in _all(node, "correctResponse"):
        found.correct = [" ".join(words(value).split()) for value in _all(correct, "value")]
        if found.base == "string":
            found.correct = [words(value).strip() for value in _all(correct, "value")]
    for mapping in _all(node, "mapping"):
        for entry in _all(mapping, "mapEntry"):
            found.worth[attribute(entry, "mapKey")] = number(attribute(entry, "mappedValue") or "0")
            found.insensitive = found.insensitive and attribute(entry, "caseSensitive") == "false"
    return found


def _feedback(draft: Draft, root: Element) -> dict[str, str]:
    """What is told, by the identifier under which it is told."""
    found: dict[str, str] = {}
    for node in _all(root, "modalFeedback", "feedbackInline", "feedbackBlock"):
        name, told = attribute(node, "identifier"), _text(draft, node, "feedback")
        if told and attribute(node, "showHide") != "hide":
            found[name] = f"{found[name]}\n{told}" if name in found else told
    return found


def _id(name: str) -> str:
    return slug(name[1:] if name[:1] == "_" and name[1:2].isdigit() else name)


def _options(node: Element, name: str) -> list[Element]:
    found = [part for part in node.iter() if named(part) == name]
    if len(found) > MOST_ANSWERS:
        raise Skipped(_("it has {count} answers; at most {most} are taken").format(count=len(found), most=MOST_ANSWERS))
    return found


def _choices(draft: Draft, root: Element, node: Element, declared: _Declared, told: dict[str, str]) -> None:
    several = declared.cardinality == "multiple" and attribute(node, "maxChoices") != "1"
    worth = declared.worth
    if not any(share > 0 for share in worth.values()):
        # No mapping: all right ones, and they alone, earn the points there.
        worth = dict.fromkeys(declared.correct, Fraction(1))
    positive = [share for share in worth.values() if share > 0]
    most = (sum(positive) if several else max(positive, default=Fraction(1))) or Fraction(1)
    if several and not declared.worth:
        draft.lost("scoring", _("there all or nothing; here each right choice earns a part"))
    found = []
    for part in _options(node, "simpleChoice"):
        name = attribute(part, "identifier")
        share = worth.get(name, Fraction(0)) / most
        if several and not declared.worth and share <= 0:
            share = -1 / most
        choice: dict[str, Any] = {"text": _text(draft, part, "choices.text"), "explanation": told.pop(name, "")}
        choice |= {"id": _id(name), "stays_last": attribute(part, "fixed") == "true"}
        found.append((share, choice))
    choices(draft, found, single=not several)


def _order(draft: Draft, root: Element, node: Element, declared: _Declared, told: dict[str, str]) -> None:
    steps = {attribute(part, "identifier"): _text(draft, part, "steps.text") for part in _options(node, "simpleChoice")}
    if sorted(declared.correct) != sorted(steps):
        raise Skipped(_("its right order does not name every step once"))
    found = [{"id": _id(name), "text": steps[name]} for name in declared.correct]
    draft.data |= {"kind": "order", "steps": found}


def _match(draft: Draft, root: Element, node: Element, declared: _Declared, told: dict[str, str]) -> None:
    sets = list(_all(node, "simpleMatchSet"))
    if len(sets) != 2:
        raise Skipped(_("it has {count} sets to match; two are needed").format(count=len(sets)))
    lefts, rights = (
        {attribute(part, "identifier"): _text(draft, part, "pairs") for part in _options(held, "simpleAssociableChoice")}
        for held in sets
    )
    joined: dict[str, str] = {}
    for pair in declared.correct or [key for key, share in declared.worth.items() if share > 0]:
        left, _gap, right = pair.partition(" ")
        if left in rights and right in lefts:
            left, right = right, left
        if left not in lefts or right not in rights or left in joined:
            raise Skipped(_("its right pairs do not give each left side one right side"))
        joined[left] = right
    if set(joined) != set(lefts):
        raise Skipped(_("its right pairs do not give each left side one right side"))
    pairs = [{"id": _id(name), "left": text, "right": rights[joined[name]]} for name, text in lefts.items()]
    rest = [name for name in rights if name not in joined.values()]
    extra = [{"id": _id(name.removeprefix("X_")), "text": rights[name]} for name in rest]
    draft.data |= {"kind": "match", "pairs": pairs, "extra": extra}


def _entry(draft: Draft, root: Element, node: Element, declared: _Declared, told: dict[str, str]) -> None:
    if declared.base in ("float", "integer"):
        _number(draft, root, declared, told)
    else:
        _words(draft, root, declared, told)


def _number(draft: Draft, root: Element, declared: _Declared, told: dict[str, str]) -> None:
    found = []
    for case in cases(root, "equal"):
        value = number(case.value if case.value is not None else (declared.correct or [""])[0])
        near = case.near * abs(value) / 100 if case.relative else case.near
        found.append((case.score, value, near, told.pop(case.told, "")))
    if not any(score == 1 for score, *_rest in found):
        right = declared.worth or dict.fromkeys(declared.correct, Fraction(1))
        most = max(right.values(), default=Fraction(1)) or Fraction(1)
        found = [(share / most, number(text), Fraction(0), "") for text, share in right.items()] + found
    if not found:
        raise Skipped(_("it names no right number"))
    numbers(draft, found)


def _words(draft: Draft, root: Element, declared: _Declared, told: dict[str, str]) -> None:
    worth = dict(declared.worth) or dict.fromkeys(declared.correct, Fraction(1))
    most = max(worth.values(), default=Fraction(1))
    found = [(share / most if most > 0 else share, text, "") for text, share in worth.items()]
    for case in cases(root, "stringMatch"):
        text = case.value if case.value is not None else (declared.correct or [""])[0]
        found = [row for row in found if row[1] != text]
        found.append((case.score, text, told.pop(case.told, "")))
    if not declared.insensitive:
        draft.lost("accepted", _("capital letters make no difference here"))
    texts(draft, [(share, starred(text), said) for share, text, said in found])


_READERS = {
    "choiceInteraction": _choices,
    "orderInteraction": _order,
    "matchInteraction": _match,
    "textEntryInteraction": _entry,
}
