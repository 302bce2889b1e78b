"""What a notebook keeps of a quiz that the service judges: replies with their receipts, answers that wait, drafts. Pure.

All of it may stand in a notebook that others read: no token, and nothing of the key. Every answer has a nonce of its own, under
which it is in one of three places: `unsent`, `replies` (judged, with a receipt) or `refused` (not counted, and why).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from quizzes.answers import is_answer
from quizzes.online.proof import complaint
from quizzes.say import _

MIME = "application/vnd.offload-lab.judged+json"
VERSION = 1
_WAITING = {"question": str, "attempt": int, "nonce": str, "locale": str, "edition": str, "at": str, "run": str}
_REPLY = {"question": str, "attempt": int, "nonce": str, "run": str, "at": str, "message": str, "receipt": str}


@dataclass
class Sheet:
    """One learner's run of one lesson at one service. Dicts of answers are by nonce, in the order in which they were given."""

    lesson: str
    service: str = ""
    """Its address, for a person to read."""
    learner: str = ""
    run: str = ""
    """32 hexadecimal digits, of the service; "" before it has said."""
    title: str = ""
    issuers: list[str] = field(default_factory=list)
    """did:keys under which the service signed."""
    questions: list[dict[str, Any]] = field(default_factory=list)
    """As the service handed them out last."""
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)
    unsent: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, dict[str, Any]] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    """By question, the nonce of what was said last."""
    drafts: dict[str, Any] = field(default_factory=dict)
    """By question, what was typed and not given as an answer."""
    sure: dict[str, float] = field(default_factory=dict)
    """By question, how sure the learner is of the next answer, in per cent."""
    others: list[dict[str, Any]] = field(default_factory=list)
    """Sheets of other runs that this notebook holds, as JSON: receipts are not thrown away."""

    def wait(self, entry: dict[str, Any]) -> None:
        """Keep an answer until the service has said what became of it."""
        self.unsent[entry["nonce"]] = entry
        self.last[entry["question"]] = entry["nonce"]
        self.drafts.pop(entry["question"], None)
        self.sure.pop(entry["question"], None)

    def judged(self, reply: dict[str, Any]) -> None:
        self.unsent.pop(reply["nonce"], None)
        self.refused.pop(reply["nonce"], None)  # a service that refused it because it had it already
        self.replies[reply["nonce"]] = reply
        self.last[reply["question"]] = reply["nonce"]

    def not_counted(self, nonce: str, code: str, why: str) -> None:
        entry = self.unsent.pop(nonce, None)
        if entry is not None:
            self.refused[nonce] = entry | {"code": code, "why": why}
            self.last[entry["question"]] = nonce
            if is_sure(entry.get("confidence")):  # said of an answer that did not count, it is said of the next
                self.sure.setdefault(entry["question"], entry["confidence"])

    def of(self, question: str) -> list[dict[str, Any]]:
        """Its replies, by attempt."""
        return sorted((r for r in self.replies.values() if r["question"] == question), key=lambda reply: reply["attempt"])

    def waiting(self, question: str) -> dict[str, Any] | None:
        return next((entry for entry in self.unsent.values() if entry["question"] == question), None)

    def receipts(self) -> list[str]:
        found = sorted(self.replies.values(), key=lambda reply: (reply["question"], reply["attempt"]))
        return list(dict.fromkeys(reply["receipt"] for reply in found))

    def kept(self) -> dict[str, Any]:
        """The part that must never be lost, as JSON."""
        return {
            "version": VERSION,
            "lesson": self.lesson,
            "service": self.service,
            "learner": self.learner,
            "run": self.run,
            "issuers": self.issuers,
            "replies": list(self.replies.values()),
            "unsent": list(self.unsent.values()),
            "refused": list(self.refused.values()),
            "last": self.last,
        }

    def to_json(self) -> dict[str, Any]:
        more = {name: getattr(self, name) for name in ("title", "questions", "drafts", "sure", "others")}
        return self.kept() | {name: value for name, value in more.items() if value}


def from_json(content: Any, notes: list[str]) -> Sheet | None:
    """A sheet as a notebook or a progress file holds it; None for what is none. What is damaged or was edited is left out and
    said in `notes`. Nothing is raised."""
    if not isinstance(content, dict) or not isinstance(content.get("lesson"), str):
        notes.append(_("A record of judged answers in this notebook is damaged; nothing was taken from it."))
        return None
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        said = _("A record of judged answers has version {version!r}; this program reads {mine}. Nothing was taken from it.")
        notes.append(said.format(version=version, mine=VERSION))
        return None
    sheet = Sheet(content["lesson"])
    for name in ("service", "learner", "run", "title"):
        setattr(sheet, name, content[name] if isinstance(content.get(name), str) else "")
    sheet.issuers = [one for one in _list(content, "issuers") if isinstance(one, str)]
    sheet.questions = [one for one in _list(content, "questions") if isinstance(one, dict)]
    sheet.others = [one for one in _list(content, "others") if isinstance(one, dict)]
    for reply in _list(content, "replies"):  # two of one nonce where copies differ: the first that its receipt proves
        why = _("it is damaged") if not _has(reply, _REPLY) else complaint(reply, sheet.run, sheet.issuers)
        if why:
            name = reply.get("question", "?") if isinstance(reply, dict) else "?"
            said = _("The judged answer to {name} in this record does not count, because {why}. The service has the true one.")
            notes.append(said.format(name=str(name)[:40], why=why))
        else:
            sheet.replies.setdefault(reply["nonce"], reply)
    for place in ("refused", "unsent"):  # what was refused in one copy waits in none
        for entry in _list(content, place):
            if not _has(entry, _WAITING) or not is_answer(entry.get("answer")) or not is_time(entry["at"]):
                notes.append(_("An answer that was not judged yet is damaged in this record, and was left out; answer again."))
            elif entry["nonce"] not in sheet.replies and entry["nonce"] not in sheet.refused:
                getattr(sheet, place)[entry["nonce"]] = entry
    for place in ("last", "drafts", "sure"):
        held = content.get(place)
        setattr(sheet, place, dict(held) if isinstance(held, dict) else {})
    known = {*sheet.replies, *sheet.unsent, *sheet.refused}
    sheet.last = {name: nonce for name, nonce in sheet.last.items() if isinstance(nonce, str) and nonce in known}
    sheet.sure = {name: percent for name, percent in sheet.sure.items() if is_sure(percent)}
    sheet.drafts = {name: answer for name, answer in sheet.drafts.items() if is_answer(answer)}
    for entry in sheet.refused.values():
        entry.setdefault("why", "")
        entry.setdefault("code", "")
    return sheet


def is_sure(value: Any) -> bool:
    """Whether this is a confidence in per cent."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100


def is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _list(content: dict[str, Any], name: str) -> list[Any]:
    found = content.get(name)
    return found if isinstance(found, list) else []


def _has(entry: Any, fields: dict[str, type]) -> bool:
    return isinstance(entry, dict) and all(type(entry.get(name)) is kind for name, kind in fields.items())
