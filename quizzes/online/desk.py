"""The answers of one online quiz, between the learner and the thread that sends: what waits, what came back, where it is kept.

Every change is made under one lock, written to the progress file and told to whoever watches.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from quizzes.answers import is_answer
from quizzes.online.access import Access
from quizzes.online.asked import Asked, read
from quizzes.online.hints import Hints
from quizzes.online.proof import clock_off, complaint
from quizzes.online.sheet import Sheet, from_json
from quizzes.online.telling import Told, told
from quizzes.online.together import together
from quizzes.progress import Progress, ProgressError
from quizzes.say import _
from quizzes.service.client import Away, Client, Refused

PATIENCE = 2.0
"""Seconds to wait for the progress file: a click waits for it. What could not be written then is written by the thread."""
_CLOCK = 600
"""Seconds between this computer's clock and the service's that are worth a word."""


class Desk:
    """`watch` is called with the names of the questions of which something is new to say, in whatever thread made it so."""

    def __init__(self, lesson: str, locale: str, access: Access, sheet: Sheet, watch: Callable[[set[str]], None]) -> None:
        self.lesson, self.locale, self.access, self.sheet = lesson, locale, access, sheet
        self.progress = Progress(patience=PATIENCE)
        self.notes: list[str] = []
        self.trouble = ""
        self.loaded = False
        self.questions = read(sheet.questions, self.notes)
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._watch, self._unwritten = watch, bool(sheet.run)
        self._tried = set[str]()
        """Nonces of answers that may have reached the service."""
        self.hints = Hints()
        self._renewing = set[str]()
        """Names of questions of which something is new: they are asked as they stand now once they are fetched again."""

    # --- the learner ----------------------------------------------------------------------------------------------

    def give(self, question: Asked, answer: Any) -> str:
        """Keep an answer to be sent; why it is not, in a sentence, or ""."""
        answer = sorted(answer) if isinstance(answer, (set, frozenset)) else answer
        answer = list(answer) if isinstance(answer, tuple) else answer
        if isinstance(answer, bool) or not is_answer(answer) or answer in (None, "", [], {}) or len(repr(answer)) > 8000:
            return _("Nothing was sent: choose or write an answer first. No attempt used.")
        with self.lock:
            if question.settled:
                return _("Nothing was sent: this question is settled.")
            if question.name in self._renewing:
                return _("Nothing was sent: what is new of this question is being fetched from the service.")
            if question.name in self.hints.wanted:
                return _("Nothing was sent: a hint to this question is on its way. Read it, and send your answer then.")
            before = self.sheet.waiting(question.name)
            if before is not None and before["nonce"] in self._tried:
                return _("Nothing was sent: your last answer may have reached the service, and its reply is waited for.")
            if before is not None:
                self.sheet.not_counted(before["nonce"], "replaced", _("You answered again before it was sent."))
            entry = {
                "question": question.name,
                "attempt": question.attempt,
                "answer": answer,
                "nonce": secrets.token_urlsafe(18),
                "locale": self.locale,
                "edition": question.edition,
                "at": datetime.now(UTC).isoformat(timespec="microseconds"),
                "run": self.sheet.run,
            }
            sure = self.sheet.sure.get(question.name)
            if sure is not None and question.confidence:
                entry["confidence"] = sure
            self.sheet.wait(entry)
            self.hints.said.pop(question.name, None)
            self._kept({question.name})
        return ""

    def ask_hint(self, question: Asked, number: int) -> str:
        """Ask for a hint; why it is not asked for, in a sentence, or ""."""
        with self.lock:
            if question.name in self.hints.wanted:
                return _("A hint to this question is on its way already; it is paid for once.")
            if self.sheet.waiting(question.name) or question.name in self._renewing:
                return _("No hint was asked for: your answer to this question is on its way.")
            why = self.hints.ask(question, number, self.locale)
            self._watch({question.name})
        return why

    def be_sure(self, name: str, percent: float | None) -> None:
        """How sure the learner is of the next answer, in per cent; None takes it back."""
        with self.lock:
            if percent is None:
                self.sheet.sure.pop(name, None)
            else:
                self.sheet.sure[name] = percent
            self._watch(set())

    def sure_of(self, name: str) -> float | None:
        """What was said of the next answer, or of the one that is on its way."""
        with self.lock:
            return self.sheet.sure.get(name, (self.sheet.waiting(name) or {}).get("confidence"))

    def draft(self, name: str, answer: Any) -> None:
        with self.lock:
            if is_answer(answer) and self.sheet.drafts.get(name) != answer:
                self.sheet.drafts[name] = answer
                self._watch(set())

    def hurry(self) -> None:
        """What was known of the service is old now: `wait` waits for news."""
        with self.lock:
            self.trouble = ""

    def told(self, question: Asked) -> Told | None:
        with self.lock:
            return told(self.sheet, question, self.trouble)

    def recorded(self, question: Asked) -> Any:
        """What stands in the box of a question: a draft, what waits, or the answer to these very numbers."""
        with self.lock:
            if question.name in self.sheet.drafts:
                return self.sheet.drafts[question.name]
            entry = self.sheet.waiting(question.name) or self.sheet.refused.get(self.sheet.last.get(question.name, ""))
            if entry is not None:
                return entry["answer"] if entry["edition"] == question.edition else None
            replies = [reply for reply in self.sheet.of(question.name) if reply.get("variant", "") == question.variant]
            return replies[-1]["answer"] if replies else None

    def wait(self, seconds: float, name: str | None = None) -> bool:
        """Until all (or `name`) is judged or known to be away, or the questions are there; whether that came in time."""

        def done() -> bool:
            waiting = {entry["question"] for entry in self.sheet.unsent.values()} | self._renewing | set(self.hints.wanted)
            waits = bool(waiting) if name is None else name in waiting
            return bool(self.trouble) or (self.loaded and not waits)

        with self._changed:
            return self._changed.wait_for(done, seconds)

    # --- the thread -----------------------------------------------------------------------------------------------

    def client(self) -> Client:
        return self.access.client()

    def fetch(self, client: Client) -> dict[str, Any]:
        content = client.lesson(self.lesson, self.locale)
        if not isinstance(content.get("run"), str) or not isinstance(content.get("issuer"), str):
            raise Away(_("What answers at this address is not the quiz service; look at the address."))
        return content | {"service": client.url}

    def arrived(self, content: dict[str, Any]) -> None:
        with self.lock:
            before = {question.name: question for question in self.questions}
            if self.sheet.run and self.sheet.run != content["run"]:
                self._another_run(content)
            sheet = self.sheet
            sheet.run, sheet.service = content["run"], content["service"]
            sheet.learner, sheet.title = str(content.get("learner", "")), str(content.get("title", ""))
            sheet.issuers = list(dict.fromkeys([content["issuer"], *sheet.issuers]))
            listed = content.get("questions")
            sheet.questions = listed if isinstance(listed, list) else []
            self.questions = read(sheet.questions, self.notes)
            answers = content.get("answers")
            for reply in answers if isinstance(answers, list) else ():
                self._take(reply)
            if not self.loaded:
                self._take_up_progress()
            self._give_up_changed()
            self.hints.fetched(before, self.questions)
            self.loaded, self.trouble = True, ""
            self._renewing.clear()
            new = {question.name for question in self.questions if question != before.get(question.name)}
            self._kept(new | set(before))

    def next(self) -> dict[str, Any] | None:
        with self.lock:
            if self._unwritten:
                self._write()
            entry = next((entry for entry in self.sheet.unsent.values() if entry["run"] == self.sheet.run), None)
            if entry is None:
                return None
            first = entry["nonce"] not in self._tried
            self._tried.add(entry["nonce"])
            content = {name: entry[name] for name in ("question", "attempt", "answer", "nonce", "locale", "edition")}
            if "confidence" in entry:
                content["confidence"] = entry["confidence"]
            return {"lesson": self.lesson, "content": content, "first": first}

    def next_hint(self) -> dict[str, Any] | None:
        with self.lock:
            content = next(iter(self.hints.wanted.values()), None)
            return None if content is None else {"lesson": self.lesson, "content": content}

    def hinted(self, content: dict[str, Any], reply: dict[str, Any]) -> bool:
        name = content["question"]
        with self.lock:
            self.trouble = ""
            question = next((one for one in self.questions if one.name == name), None)
            new = self.hints.came(question, reply) if question is not None else None
            self.hints.wanted.pop(name, None)
            if new is not None and new.offer is not None:
                self.questions = tuple(new if one.name == name else one for one in self.questions)
                told = {"hint_offer": new.offer.model_dump(mode="json")}
                self.sheet.questions = [one | told if one.get("name") == name else one for one in self.sheet.questions]
            else:
                self._renewing.add(name)
            self._kept({name})
        return new is not None

    def no_hint(self, content: dict[str, Any], why: str) -> None:
        with self.lock:
            self.hints.refused(content["question"], why)
            self._renewing.add(content["question"])  # what was known of it is old
            self._kept({content["question"]})

    def unreached(self, entry: dict[str, Any]) -> None:
        with self.lock:
            if entry["first"]:
                self._tried.discard(entry["content"]["nonce"])

    def outcome(self, entry: dict[str, Any], reply: dict[str, Any]) -> bool:
        content = entry["content"]
        with self.lock:
            self.trouble = ""
            judged = self._take(reply)
            if judged:
                self._one_less(content["question"], reply)
            if not judged and reply.get("understood") is True:
                why = _("The service judged it, but its receipt cannot be relied on. Tell your instructor.")
                self.sheet.not_counted(content["nonce"], "unproven", why)
            elif not judged:
                # Asked back: nothing is recorded, and the same box is to be filled in again.
                why = str(reply.get("message") or _("The service did not understand it."))
                self.sheet.not_counted(content["nonce"], "asked", why)
            self._kept({content["question"]})
        return judged

    def refused(self, entry: dict[str, Any], error: Refused) -> None:
        with self.lock:
            self.sheet.not_counted(entry["content"]["nonce"], error.code, str(error))
            self._kept({entry["content"]["question"]})

    def away(self, why: str) -> None:
        with self.lock:
            if why:
                self._write()
            same = why == self.trouble
            self.trouble = why
            waiting = {entry["question"] for entry in self.sheet.unsent.values()}
            given_up = self.hints.give_up(why) if why else set[str]()
            if not same or given_up:
                self._watch(waiting | given_up)
            self._changed.notify_all()

    # --- keeping --------------------------------------------------------------------------------------------------

    def _take(self, reply: Any) -> bool:
        """Keep a judged answer, if it is one: its receipt says the same and is signed by the service."""
        if not isinstance(reply, dict) or reply.get("understood") is not True or not isinstance(reply.get("question"), str):
            return False
        why = complaint(reply, self.sheet.run, self.sheet.issuers)
        if why:
            said = _("The service's reply to {name} cannot be relied on, because {why}. Tell your instructor.")
            self.notes.append(said.format(name=reply["question"], why=why))
            return False
        off = clock_off(self.sheet.unsent.get(reply["nonce"]), reply)
        if off > _CLOCK:
            said = _("The clock of this computer is {minutes:.0f} minutes off the service's; the service's time counts.")
            self.notes.append(said.format(minutes=off / 60))
        known, last = reply["nonce"] in self.sheet.replies, self.sheet.last.get(reply["question"])
        self.sheet.judged(reply)
        if last is not None and (known or last in self.sheet.unsent):
            self.sheet.last[reply["question"]] = last  # what was said or given since, stays the last
        return True

    def _one_less(self, name: str, reply: dict[str, Any]) -> None:
        left, settled = reply.get("attempts_left"), reply.get("settled")
        if type(left) is int and type(settled) is bool:
            now = {"attempts_left": left, "settled": settled}
            self.questions = tuple(q.model_copy(update=now) if q.name == name else q for q in self.questions)
        if settled is not True:
            self._renewing.add(name)

    def _give_up_changed(self) -> None:
        """Answers to a text that is not the one asked now are not sent: they were written for another question."""
        asked = {question.name: question for question in self.questions}
        for entry in list(self.sheet.unsent.values()):
            question = asked.get(entry["question"])
            if entry["run"] != self.sheet.run or entry["nonce"] in self._tried:
                continue
            if question is None:
                self.sheet.not_counted(entry["nonce"], "no-question", _("The service does not ask this question any more."))
            elif entry["edition"] and question.edition and entry["edition"] != question.edition:
                said = _("The question has changed since you wrote this, and it was not sent. No attempt used; answer again.")
                self.sheet.not_counted(entry["nonce"], "changed", said)

    def _another_run(self, content: dict[str, Any]) -> None:
        held = self.sheet
        if held.replies or held.unsent:
            said = _("This notebook holds answers of {learner} from another run; they are kept in it, and are not yours here.")
            self.notes.append(said.format(learner=held.learner or "?"))
        self.sheet = Sheet(self.lesson, others=[*held.others, held.kept()])

    def kept(self) -> list[dict[str, Any]]:
        """The sheets of all runs that the progress file holds, as JSON."""
        try:
            return list(self.progress.read()["judged"].values())
        except ProgressError as error:
            self.notes.append(str(error))
            return []

    def _take_up_progress(self) -> None:
        """What this computer's progress file holds of the run: another notebook, or one that was not saved."""
        try:
            held = self.progress.read()["judged"].get(self.sheet.run)
        except ProgressError as error:
            self.notes.append(str(error))
            return
        if held is not None:
            joined = from_json(together(self.sheet.to_json(), held), [])
            if joined is not None:
                self.sheet = joined

    def _kept(self, names: set[str]) -> None:
        """Called with the lock held: whoever waits for a change finds it written and shown."""
        self._write()
        self._watch(names)
        self._changed.notify_all()

    def _write(self) -> None:
        if not self.sheet.run:
            return
        mine = self.sheet.kept()
        try:
            self.progress.judged(self.sheet.run, lambda held: _clean(mine, held))
            self._unwritten = False
        except ProgressError as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))
            self._unwritten = True
        self.notes += self.progress.notes
        self.progress.notes.clear()


def _clean(mine: dict[str, Any], held: Any) -> dict[str, Any]:
    joined = from_json(together(mine, held), []) if held is not None else None
    return joined.kept() if joined is not None else mine
