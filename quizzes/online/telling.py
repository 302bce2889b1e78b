"""What a learner is told of an answer to the service, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quizzes.online.asked import Asked
from quizzes.online.sheet import Sheet
from quizzes.online.sureness import share_before_hints
from quizzes.say import _, _n


@dataclass(frozen=True)
class Told:
    """`head` in a few words, a sign first; `lines` beneath it. `settled` says that nothing more is on its way."""

    head: str
    lines: tuple[str, ...] = ()
    settled: bool = True

    def __str__(self) -> str:
        return "\n    ".join([f"{self.head}.", *self.lines])


def told(sheet: Sheet, question: Asked, trouble: str = "") -> Told | None:
    """What is to be said of a question now; None where nothing was answered. `trouble` is why the service is away, or ""."""
    nonce = sheet.last.get(question.name, "")
    if nonce in sheet.unsent:
        return _waiting(trouble)
    if nonce in sheet.refused:
        entry = sheet.refused[nonce]
        left = (_left(question),) if sheet.of(question.name) else ()
        asked = entry["code"] == "asked"
        head = _("? Not counted: no attempt used") if asked else _("! Not counted")
        return Told(head, (*_lines(entry["why"]), *left))
    replies = sheet.of(question.name)
    return _judged(sheet.replies.get(nonce, replies[-1]), question) if replies else None


def _waiting(trouble: str) -> Told:
    if not trouble:
        return Told(_("… Sending"), settled=False)
    again = _("It is sent again by itself. You can save, close and come back: run this quiz again then.")
    return Told(_("… Not sent yet, kept here"), (trouble, again), settled=False)


def _judged(reply: dict[str, Any], question: Asked) -> Told:
    score, full = reply["score"], reply["max_score"]
    share = score / full if full else 1.0
    right = share_before_hints(reply) == 1.0
    hints = reply.get("hints", 0)
    if right and hints:
        said = _n(
            "✔ Right, {share:.0%} of the points after {hints} hint",
            "✔ Right, {share:.0%} of the points after {hints} hints",
            hints,
        )
        head = said.format(share=share, hints=hints)
    elif right:
        head = _("✔ Right")
    elif question.attempts_left:
        head = _("✘ Not yet ({share:.0%} of the points)").format(share=share)
    else:
        head = _("✘ Not right ({share:.0%} of the points)").format(share=share)
    lines = _lines(reply["message"])
    again = []
    named = reply.get("misconceptions")
    for idea in named if isinstance(named, list) else ():
        if isinstance(idea, dict) and isinstance(idea.get("idea"), str):
            lines.append(_("The idea behind it: {idea}").format(idea=idea["idea"]))
            again.append(str(idea.get("reread", "")))
    if not right:
        again = again or [str(reply.get("reread") or "")]
        lines += [_("Read again: {heading}.").format(heading=heading) for heading in dict.fromkeys(again) if heading]
    if question.attempt > reply["attempt"] and question.attempts_left and reply.get("variant", "") != question.variant:
        lines.append(_("The numbers are new: this is attempt {attempt}.").format(attempt=question.attempt))
    return Told(head, tuple(lines))


def _left(question: Asked) -> str:
    if question.attempts_left == 1:
        return _("One attempt is left.")
    if question.attempts_left:
        return _("{count} attempts are left.").format(count=question.attempts_left)
    return _("No attempt is left; the best one counts.")


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def place(question: Asked) -> str:
    """Points and attempts of a question, in one line."""
    if question.settled:
        return _("Points: {points:g}. It is settled.").format(points=question.points)
    said = _("Points: {points:g}. Attempt {attempt}.").format(points=question.points, attempt=question.attempt)
    return f"{said} {_left(question)}"


def summary(sheet: Sheet, questions: tuple[Asked, ...]) -> str:
    """The points so far, and how many answers have a receipt."""
    reached = sum(best(sheet, question.name) for question in questions)
    full = sum(question.points for question in questions)
    said = _("{reached:g} of {full:g} points. Receipts kept in this notebook: {count}.")
    said = said.format(reached=reached, full=full, count=len(sheet.receipts()))
    if sheet.unsent:
        said += " " + _("Answers not judged yet: {count}.").format(count=len(sheet.unsent))
    return said


def best(sheet: Sheet, question: str) -> float:
    return max((reply["score"] for reply in sheet.of(question)), default=0.0)
