"""Questions as Moodle GIFT. Pure.

Every text is marked [plain], so that no program takes "<" or "*" in it for markup. A question stands on lines without a gap,
because a blank line ends it; a new line inside a text is written \\n.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from fractions import Fraction

from quizzes.interchange.decimals import decimal, weight
from quizzes.interchange.forms import GIFT, tell, tell_weights, unsayable
from quizzes.interchange.notes import margin, note, to_line
from quizzes.interchange.report import Report
from quizzes.interchange.texts import clean, starred
from quizzes.question import Bank, Question
from quizzes.say import _

_RESERVED = re.compile(r"[\\~=#{}:]")


def write(banks: Iterable[Bank], report: Report) -> str:
    """The questions of `banks`, which are editions, as one GIFT file."""
    parts = []
    for bank in banks:
        title = re.sub(r"[\x00-\x1f{}\\]", " ", clean(bank.title)).replace("/", "//")
        parts.append(f"$CATEGORY: offload lab/{bank.lesson} {title}")
        parts += [text for question in bank.questions if (text := _question(question, bank.lesson, report))]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """`text` with GIFT's own characters escaped, on one line."""
    return _RESERVED.sub(r"\\\g<0>", clean(text)).replace("\n", "\\n")


def _guarded(text: str) -> str:
    """A text at whose place a weight, a format or a comment may stand too."""
    written = escaped(text)
    return f"[plain]{written}" if not written or written[0] in "%[/" else written


def _question(question: Question, lesson: str, report: Report) -> str:
    if unsayable(question, GIFT, report):
        return ""
    tell(question, GIFT, report)
    tags = [f"lesson-{lesson}", f"level-{question.level}", *question.misconceptions]
    head = [f"// [id:{question.id}] {' '.join(f'[tag:{tag}]' for tag in tags)}", f"// {to_line(note(question, GIFT))}"]
    answers = {"number": _number, "text": _text, "order": _order, "match": _match}.get(question.kind, _choices)
    lines = answers(question, report)
    if question.explanation and question.kind not in ("number", "text", "order"):
        lines.append(f"####[plain]{escaped(question.explanation)}")
    ordering = f"{{>{len(question.steps)} ALL VERTICAL RELATIVE_NEXT_EXCLUDE_LAST"
    opening = {"number": "{#", "order": ordering}.get(question.kind, "{")
    report.questions += 1
    prompt = f"::{escaped(question.id)}::[plain]{escaped(question.prompt)} {opening}"
    return "\n".join([*head, prompt, *(f"\t{line}" for line in lines), "}"])


def _choices(question: Question, report: Report) -> list[str]:
    right = sum(choice.correct for choice in question.choices)
    tell_weights(question, report)
    lines: list[str] = []
    for choice in question.choices:
        if question.kind == "several":
            sign = f"~%{weight(Fraction(1 if choice.correct else -1, right))}%"
        elif choice.correct:
            # Without any "~" they would be short answers.
            sign = "=" if not lines or right < len(question.choices) else "~%100%"
        else:
            sign = f"~%{weight(Fraction(str(choice.credit)))}%" if choice.credit else "~"
        lines.append(f"{sign}{_guarded(choice.text)}#{_guarded(choice.explanation)}")
    return lines


def _arrowless(text: str) -> str:
    """A feedback whose "->" would make a short answer a matching question: as HTML, where it can be written otherwise."""
    if "->" not in text:
        return _guarded(text)
    return f"[html]{escaped(html.escape(clean(text), quote=False).replace(chr(10), '<br>'))}"


def _text(question: Question, report: Report) -> list[str]:
    lines = []
    for text in question.accepted:
        if GIFT.sayable(text):
            lines.append(f"=%100%{_guarded(starred(text))}#{_arrowless(question.explanation)}")
        else:
            report.add(question.id, "accepted", _('GIFT takes an answer with "->" for a pair'), "ours")
    for wrong in question.wrong:
        if GIFT.sayable(wrong.text):
            lines.append(f"=%0%{_guarded(starred(wrong.text))}#{_arrowless(wrong.explanation)}")
        else:
            report.add(question.id, "wrong", _('GIFT takes an answer with "->" for a pair'), "ours")
    return lines


def _number(question: Question, report: Report) -> list[str]:
    lines = [
        f"=%100%{decimal(part.value.number())}:{decimal(margin(part))}#{_guarded(question.explanation)}"
        for part in question.right
    ]
    first = question.right[0]
    for trap in question.traps:
        near = margin(first.model_copy(update={"value": trap.value}))
        lines.append(f"=%0%{decimal(trap.value.number())}:{decimal(near)}#{_guarded(trap.explanation)}")
    return lines


def _order(question: Question, report: Report) -> list[str]:
    return [_guarded(step.text) for step in question.steps]


def _match(question: Question, report: Report) -> list[str]:
    # The left side ends at the first "->".
    lines = [f"={_arrowless(pair.left)} -> {escaped(pair.right)}" for pair in question.pairs]
    return lines + [f"= -> {escaped(part.text)}" for part in question.extra]
