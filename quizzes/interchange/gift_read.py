"""Moodle GIFT as questions. Pure.

Read as Moodle reads it: a blank line ends a question, a line that begins with // is a comment, a backslash takes its meaning
from \\ ~ = # { } : and, as \\n, makes a new line. A question that can't be read does not touch the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from quizzes.interchange.decimals import number, share
from quizzes.interchange.draft import Draft, Skipped
from quizzes.interchange.kinds import MOST_ANSWERS, choices, numbers, texts
from quizzes.interchange.notes import from_line
from quizzes.interchange.texts import clean, read
from quizzes.say import _

_ESCAPE = re.compile(r"\\([\\~=#{}:n])")
_MEANT = re.compile("[\ud800-\ud8ff]")  # decoded text has no halves of surrogate pairs, so they can stand for what was escaped
_FORMAT = re.compile(r"\s*\[(html|markdown|plain|moodle)\]")
_WEIGHT = re.compile(r"\s*%(-?[0-9]{1,3}(?:\.[0-9]*)?)%")
_ID = re.compile(r"\[id:((?:\\\]|[^\]])+)\]")
_TITLE = re.compile(r"::(.*?)::", re.S)
_ORDER = re.compile(r">\s*[0-9]*[^\n]*")


def read_gift(text: str) -> Iterator[Draft]:
    """Every question of a GIFT file, those that can't be taken over too, with the reason in `skip`."""
    for line, lines in _chunks(text):
        comments = [row.strip()[2:].strip() for row in lines if row.strip().startswith("//")]
        # A comment inside a question is a blank to Moodle, and no end of it.
        body = "\n".join("" if row.strip().startswith("//") else row for row in lines).strip()
        if not body or body.startswith("$CATEGORY:"):
            continue
        draft = Draft(_("line {line}").format(line=line))
        for comment in comments:
            draft.note = draft.note or from_line(comment)
            named = None if draft.id or comment.startswith("offload-quiz:") else _ID.search(comment)
            draft.id = clean(named[1].replace("\\]", "]")) if named else draft.id
        try:
            _read_one(draft, _ESCAPE.sub(lambda found: chr(0xD800 + ord(found[1])), body))
        except Skipped as error:
            draft.skip = str(error)
        except ValueError as error:
            draft.skip = _("{said}; write a number such as 12.5 or 1e-8").format(said=error)
        yield draft


def _chunks(text: str) -> Iterator[tuple[int, list[str]]]:
    lines: list[str] = []
    start = 1
    for count, line in enumerate([*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""], 1):
        if line.strip():
            if not any(not row.strip().startswith("//") for row in lines):
                start = count  # the line of the question itself, not of the comments before it
            lines.append(line)
            continue
        if lines:
            yield start, lines
        lines = []


def _plain(text: str) -> str:
    def meant(found: re.Match[str]) -> str:
        char = chr(ord(found[0]) - 0xD800)
        return "\n" if char == "n" else char

    return _MEANT.sub(meant, text)


class _Reader:
    """Texts of one question: their format is its own or that of the question."""

    def __init__(self, draft: Draft) -> None:
        self.draft, self.form = draft, "moodle"

    def text(self, written: str, field: str, first: bool = False) -> str:
        marked = _FORMAT.match(written)
        form = marked[1] if marked else self.form
        if first:
            self.form = form
        inner = written[marked.end() :] if marked else written
        found, lost = read(_plain(inner.strip()), form)
        for what in lost:
            self.draft.lost(field, _("{what} are not carried").format(what=what))
        return found


def _read_one(draft: Draft, body: str) -> None:
    reader = _Reader(draft)
    titled = _TITLE.match(body)
    if titled:
        draft.title, body = clean(_plain(titled[1])), body[titled.end() :]
    start, end = body.find("{"), body.find("}")
    if start < 0 and end < 0:
        raise Skipped(_("a description asks nothing"))
    if start < 0 or end < start:
        said = _("its { and } do not fit together; write \\{ and \\} where they are meant as text, and no blank line inside")
        raise Skipped(said)
    inside, after = body[start + 1 : end].strip(), body[end + 1 :].strip()
    if "{" in inside:
        raise Skipped(_("a { stands inside of another; write \\{ where it is meant as text"))
    if "{" in after or "}" in after:
        raise Skipped(_("it has more than one pair of { }; gaps in a text are not taken over"))
    prompt = body[:start] + (f"_____{'' if after[:1] in '.,;:!?' else ' '}{after}" if after else "")
    draft.data["prompt"] = reader.text(prompt, "prompt", first=True)
    answers, separator, general = inside.rpartition("####")
    answers = answers.strip() if separator else inside
    if separator and (told := reader.text(general, "explanation")):
        draft.data["explanation"] = told
    _answers(draft, reader, answers)


def _answers(draft: Draft, reader: _Reader, inside: str) -> None:
    if not inside:
        raise Skipped(_("an essay has no answer that could be judged"))
    if inside[0] == "#":
        _number(draft, reader, inside[1:])
    elif inside[0] == ">" and _ORDER.match(inside):
        _order(draft, reader, inside)
    elif "~" in inside:
        _choices(draft, reader, inside)
    elif "=" in inside and "->" in inside:
        _match(draft, reader, inside)
    elif inside.partition("#")[0].strip().upper() in ("T", "TRUE", "F", "FALSE"):
        _true_false(draft, reader, inside)
    else:
        _text(draft, reader, inside)


def _split(inside: str, signs: str) -> list[tuple[str, str]]:
    """(sign, what follows it) for each answer. Raises Skipped for what stands before the first sign, or too many."""
    pieces = re.split(f"([{signs}])", inside)
    if pieces[0].strip():
        said = _("{text!r} stands before the first answer; answers begin with = or ~")
        raise Skipped(said.format(text=_plain(pieces[0])[:40]))
    found = list(zip(pieces[1::2], pieces[2::2], strict=True))
    if len(found) > MOST_ANSWERS:
        raise Skipped(_("it has {count} answers; at most {most} are taken").format(count=len(found), most=MOST_ANSWERS))
    return found


def _weighted(written: str, without: Fraction) -> tuple[Fraction, str]:
    weighted = _WEIGHT.match(written)
    return (share(weighted[1]), written[weighted.end() :]) if weighted else (without, written)


def _answer(reader: _Reader, written: str, field: str) -> tuple[str, str]:
    text, _sign, feedback = written.partition("#")
    return reader.text(text, f"{field}.text"), reader.text(feedback, f"{field}.explanation")


def _choices(draft: Draft, reader: _Reader, inside: str) -> None:
    found = []
    for sign, written in _split(inside, "~="):
        worth, rest = (Fraction(1), written) if sign == "=" else _weighted(written, Fraction(0))
        text, told = _answer(reader, rest, "choices")
        found.append((worth, {"text": text, "explanation": told}))
    choices(draft, found, single="=" in inside)


def _true_false(draft: Draft, reader: _Reader, inside: str) -> None:
    said, *told = inside.split("#", 2)
    right = said.strip().upper() in ("T", "TRUE")
    wrong_told, right_told = (*(reader.text(text, "choices.explanation") for text in told), "", "")[:2]
    draft.data["kind"] = "one"
    draft.data["choices"] = [
        {"text": _("True"), "correct": right, "explanation": right_told if right else wrong_told},
        {"text": _("False"), "correct": not right, "explanation": wrong_told if right else right_told},
    ]


def _text(draft: Draft, reader: _Reader, inside: str) -> None:
    found = []
    for _sign, written in _split(inside if inside.startswith("=") else f"={inside}", "="):
        worth, rest = _weighted(written, Fraction(1))
        found.append((worth, *_answer(reader, rest, "accepted")))
    texts(draft, found)


def _match(draft: Draft, reader: _Reader, inside: str) -> None:
    pairs, extra = [], []
    for _sign, written in _split(inside, "="):
        left, arrow, right = written.partition("->")
        if not arrow:
            raise Skipped(_("a pair has no ->; write =left -> right"))
        sides = {"left": reader.text(left, "pairs.left"), "right": clean(_plain(right.strip()))}
        if left.strip():
            pairs.append(sides)
        else:
            extra.append({"text": sides["right"]})
    draft.data |= {"kind": "match", "pairs": pairs, "extra": extra}


def _order(draft: Draft, reader: _Reader, inside: str) -> None:
    steps = [line.strip() for line in inside.split("\n")[1:] if line.strip()]
    if len(steps) > MOST_ANSWERS:
        raise Skipped(_("it has {count} answers; at most {most} are taken").format(count=len(steps), most=MOST_ANSWERS))
    draft.data |= {"kind": "order", "steps": [{"text": reader.text(line, "steps.text")} for line in steps]}


def _number(draft: Draft, reader: _Reader, inside: str) -> None:
    answers, sign, other = inside.partition("~")
    if sign and reader.text(other.partition("#")[2], "traps.explanation"):
        draft.lost("feedback", _("what is told for any other number"))
    answers = answers.strip()
    found = []
    for _sign, written in _split(answers if answers.startswith("=") else f"={answers}", "="):
        worth, rest = _weighted(written, Fraction(1))
        text, _hash, feedback = rest.partition("#")
        text = _plain(_FORMAT.sub("", text))
        told = reader.text(feedback, "explanation")
        if text.strip() == "*":
            draft.lost("feedback", _("what is told for any other number"))
            continue
        low, dots, high = text.partition("..")
        if dots:
            ends = sorted((number(low), number(high)))
            found.append((worth, sum(ends, Fraction(0)) / 2, (ends[1] - ends[0]) / 2, told))
        else:
            value, _colon, near = text.partition(":")
            found.append((worth, number(value), number(near) if near.strip() else Fraction(0), told))
    numbers(draft, found)
