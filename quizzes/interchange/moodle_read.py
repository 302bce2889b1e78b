"""Moodle XML as questions. A question that can't be read does not touch the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import get_args

from quizzes.interchange.decimals import number, share
from quizzes.interchange.draft import Draft, Skipped
from quizzes.interchange.kinds import MOST_ANSWERS, choices, numbers, texts
from quizzes.interchange.notes import from_line
from quizzes.interchange.safe_xml import Node, child, children, comments, words
from quizzes.interchange.texts import clean, read
from quizzes.question import Unit
from quizzes.say import _
from quizzes.units import factor

_FORMATS = {"html": "html", "markdown": "markdown", "plain_text": "plain", "moodle_auto_format": "moodle"}


def read_moodle(root: Node) -> Iterator[Draft]:
    """Every question of a <quiz>, those that can't be taken over too, with the reason in `skip`."""
    for node in children(root, "question"):
        kind = (node.get("type") or "").strip()
        if kind == "category":
            continue
        draft = Draft(_("line {line}").format(line=node.line))
        draft.id, draft.title = clean(words(child(node, "idnumber"))), clean(words(child(child(node, "name"), "text")))
        draft.note = next((found for found in map(from_line, comments(node)) if found is not None), None)
        try:
            _read_one(draft, node, kind)
        except Skipped as error:
            draft.skip = str(error)
        except ValueError as error:
            draft.skip = _("{said}; write a number such as 12.5 or 1e-8").format(said=error)
        yield draft


def _read_one(draft: Draft, node: Node, kind: str) -> None:
    reader: Callable[[Draft, Node], None] | None = {
        "multichoice": _choices,
        "truefalse": _true_false,
        "shortanswer": _short,
        "numerical": _number,
        "matching": _match,
        "ordering": _order,
    }.get(kind)
    if reader is None:
        raise Skipped(_("a question of type {kind!r} can't be judged here").format(kind=kind[:40]))
    draft.data["prompt"] = _text(draft, child(node, "questiontext"), "prompt")
    if told := _text(draft, child(node, "generalfeedback"), "explanation"):
        draft.data["explanation"] = told
    _worth(draft, node)
    reader(draft, node)
    named = {"correctfeedback", "partiallycorrectfeedback", "incorrectfeedback"}
    if any(words(part).strip() for part in children(node, *named)):
        draft.lost("feedback", _("what is told for every right, partly right or wrong answer alike"))


def _text(draft: Draft, node: Node | None, field: str) -> str:
    """The text of an element in its own format."""
    if node is None:
        return ""
    found, lost = read(words(child(node, "text")), _FORMATS.get(node.get("format") or "", "html"))
    if any(True for _file in children(node, "file")):
        lost = list(dict.fromkeys([*lost, _("its files")]))
    for what in lost:
        draft.lost(field, _("{what} are not carried").format(what=what))
    return found


def _worth(draft: Draft, node: Node) -> None:
    points = words(child(node, "defaultgrade")).strip()
    if points:
        worth = number(points)
        if not 0 <= worth <= 1000:
            draft.lost("points", _("{points} points; 0 to 1000 are known, 1 was taken").format(points=points[:20]))
            worth = Fraction(1)
        draft.data["points"] = float(worth)
    hints = [hint for part in children(node, "hint") if (hint := _text(draft, part, "hints"))]
    if hints:
        cost = number(words(child(node, "penalty")).strip() or "0.3333333")
        if not 0 <= cost * len(hints) <= 1 + Fraction(1, 10**6):
            draft.lost("hint_cost", _("all hints together cost more than the question is worth; each costs less"))
        draft.data |= {"hints": hints, "hint_cost": float(min(max(cost, Fraction(0)), Fraction(1, len(hints))))}


def _answers(node: Node, name: str = "answer") -> list[Node]:
    found = list(children(node, name))
    if len(found) > MOST_ANSWERS:
        raise Skipped(_("it has {count} answers; at most {most} are taken").format(count=len(found), most=MOST_ANSWERS))
    return found


def _fraction(node: Node) -> Fraction:
    return share(node.get("fraction") or "0")


def _told(draft: Draft, node: Node, field: str) -> str:
    return _text(draft, child(node, "feedback"), f"{field}.explanation")


def _choices(draft: Draft, node: Node) -> None:
    single = words(child(node, "single")).strip().lower() in ("true", "1", "")
    found = [
        (_fraction(part), {"text": _text(draft, part, "choices.text"), "explanation": _told(draft, part, "choices")})
        for part in _answers(node)
    ]
    choices(draft, found, single)


def _true_false(draft: Draft, node: Node) -> None:
    found = []
    for part in _answers(node):
        said = words(child(part, "text")).strip().lower()
        text = {"true": _("True"), "false": _("False")}.get(said, said)
        found.append((_fraction(part), {"text": text, "explanation": _told(draft, part, "choices")}))
    choices(draft, found, single=True)


def _short(draft: Draft, node: Node) -> None:
    if words(child(node, "usecase")).strip() == "1":
        draft.lost("accepted", _("capital letters make no difference here"))
    # The words that are compared are no HTML, whatever the format says.
    found = [(_fraction(part), clean(words(child(part, "text"))), _told(draft, part, "accepted")) for part in _answers(node)]
    texts(draft, found)


def _number(draft: Draft, node: Node) -> None:
    unit, times = _unit(draft, node)
    found = []
    for part in _answers(node):
        text, near = words(child(part, "text")).strip(), words(child(part, "tolerance")).strip()
        if text == "*":
            draft.lost("feedback", _("what is told for any other number"))
            continue
        value = number(text) * times
        found.append((_fraction(part), value, number(near or "0") * times, _told(draft, part, "traps")))
    draft.data["unit"] = unit
    numbers(draft, found)


def _unit(draft: Draft, node: Node) -> tuple[str, Fraction]:
    """The unit of this bank that a question's units are of, and what its numbers are multiplied by."""
    told = {}
    for part in children(child(node, "units") or Node("units"), "unit"):
        told[clean(words(child(part, "unit_name")))] = number(words(child(part, "multiplier")).strip() or "1")
    base = next((name for name, times in told.items() if times == 1), None)
    if base is None:
        if told:
            draft.lost("unit", _("none of its units is the base unit; the bare number is asked for"))
        return "count", Fraction(1)
    for unit in get_args(Unit):
        times = factor(base, unit) if unit not in ("count", "ratio") else None
        if times is None:
            continue
        for name, multiplier in told.items():
            own = factor(name, unit)
            if own is None or multiplier == 0 or abs(own / times * multiplier - 1) > Fraction(1, 10**6):
                draft.lost("unit", _("{name} is not known here as it is there").format(name=name[:20]))
        return unit, times
    draft.lost("unit", _("{name} is no unit that is known here; the bare number is asked for").format(name=base[:20]))
    return "count", Fraction(1)


def _match(draft: Draft, node: Node) -> None:
    pairs, extra = [], []
    for part in _answers(node, "subquestion"):
        left = _text(draft, part, "pairs.left")
        right = clean(words(child(child(part, "answer"), "text")))
        if left or words(child(part, "text")):
            pairs.append({"left": left, "right": right})
        else:
            extra.append({"text": right})
    draft.data |= {"kind": "match", "pairs": pairs, "extra": extra}


def _order(draft: Draft, node: Node) -> None:
    grading = words(child(node, "gradingtype")).strip()
    if grading not in ("", "RELATIVE_NEXT_EXCLUDE_LAST"):
        draft.lost("scoring", _("its way of counting a partly right order; here neighbours count"))
    draft.data |= {"kind": "order", "steps": [{"text": _text(draft, part, "steps.text")} for part in _answers(node)]}
