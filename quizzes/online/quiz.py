"""The graded quiz of a lesson in a notebook: the service judges, the notebook shows, asks and keeps the receipts."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

from quizzes import calibration_plot
from quizzes.answers import Record, as_html, contents, notebook_path, shell
from quizzes.copies import spoken
from quizzes.names import find
from quizzes.online import hints, sureness
from quizzes.online.access import Access
from quizzes.online.asked import Asked, Sheaf
from quizzes.online.cells import OnlineAnswers
from quizzes.online.desk import Desk
from quizzes.online.receipts_file import hand_in
from quizzes.online.sending import Sender
from quizzes.online.sheet import MIME, Sheet, from_json
from quizzes.online.telling import best, place, summary
from quizzes.progress import Progress, ProgressError
from quizzes.quiz import Quiz, chosen_locale
from quizzes.say import _

SECONDS = 3.0
"""How long a cell waits for the service before it goes on without."""
_open: dict[tuple[str, str], OnlineQuiz] = {}


class OnlineQuiz:
    """The graded quiz of a lesson: `quiz.show()` for widgets, `print(quiz)` and `quiz.answers["q1"] = "b"` without.

    `service` is the address that your instructor gave; without it OFFLOAD_QUIZ_URL, else the service of this machine. The token
    is OFFLOAD_QUIZ_TOKEN, JupyterHub's, or is asked for; it is in no notebook. Answers are sent in the background. What the
    service has not judged is kept in the notebook and in the progress file, and is sent again by itself.

    Built again in the same kernel it is the same quiz. Raises quizzes.online.access.AccessError for an address that is none.
    """

    def __new__(cls, lesson: str, service: str | None = None, locale: str | None = None) -> OnlineQuiz:
        access = Access(service)
        key = (str(lesson), access.address)
        if key not in _open:
            quiz = super().__new__(cls)
            quiz._begin(str(lesson), access, chosen_locale(locale))
            _open[key] = quiz  # only once it is whole
        _open[key]._sender.load()
        return _open[key]

    def _begin(self, lesson: str, access: Access, locale: str) -> None:
        self._display, self._board = "", None
        notes: list[str] = []
        self._desk = Desk(lesson, locale, access, _held(lesson, access.address, notes), self._changed)
        self._desk.notes[:0] = notes
        self._sender = Sender(self._desk)
        self.answers = OnlineAnswers(self)
        access.ask()  # where nobody is there to ask, the thread says what is missing

    # --- answering ------------------------------------------------------------------------------------------------

    @property
    def questions(self) -> tuple[Asked, ...]:
        return self._desk.questions

    def named(self, name: Any) -> Asked:
        """Raises quizzes.names.UnknownQuestion."""
        return find(Sheaf(questions=self.questions), name)

    def answer(self, name: Any, answer: Any) -> str:
        """Send an answer and come back at once; a sentence where it is not sent, else "". Raises UnknownQuestion."""
        why = self._desk.give(self.named(name), answer)
        if not why:
            self._sender.wake()
        return why

    def ask_hint(self, name: Any, number: int) -> str:
        """As `hint`, and come back at once; a sentence where it is not asked for, else "". Raises UnknownQuestion."""
        why = self._desk.ask_hint(self.named(name), number)
        if not why:
            self._desk.hurry()
            self._sender.wake()
        return why

    def hint(self, name: Any, number: int = 1) -> str:
        """A hint to a question. What it costs stands beneath the question; it is taken off every later answer to it. The same
        number is paid for once, however often it is asked for. Raises UnknownQuestion."""
        if not self.questions:
            self._desk.wait(SECONDS)
        if not self.questions:
            return self._state()
        question = self.named(name)
        if why := self.ask_hint(question.name, number):
            return why
        self._desk.wait(SECONDS, question.name)
        with self._desk.lock:
            question = self.named(question.name)
            said, texts = self._desk.hints.said.get(question.name, ""), hints.lines(question)
            if said or len(texts) < number:
                return said or _("The hint is on its way; say print(quiz) in a moment.")
            return "\n".join(filter(None, [texts[number - 1], hints.offered(question), hints.how_to(question)]))

    def sure(self, name: Any, percent: float) -> str:
        """Say how sure you are of the next answer, in per cent from 0 to 100; it is sent with it. What is no such number
        changes nothing. Raises UnknownQuestion."""
        if not self.questions:
            self._desk.wait(SECONDS)
        if not self.questions:
            return self._state()
        question = self.named(name)
        if why := sureness.complaint(percent):
            return why
        if not question.confidence:
            return _("Not noted: this service does not ask how sure you are.")
        self._desk.be_sure(question.name, percent)
        if self._board is not None and question.name in self._board.cards:
            self._board.cards[question.name].show_sure()
        return _("Noted: {percent:g} % sure of {name}. It counts for your next answer.").format(
            percent=percent, name=question.name
        )

    def calibration(self, whole_course: bool = False) -> calibration_plot.Shown:
        """How sure you said you were, and what share was right; of this quiz, or of all graded quizzes of this learner whose
        answers this computer keeps: a figure and its text."""
        with self._desk.lock:
            sheets = [self._desk.sheet]
            if whole_course and self._desk.sheet.learner:
                found = [from_json(one, []) for one in self._desk.kept()]
                sheets += [one for one in found if one is not None and one.learner == self._desk.sheet.learner]
            return calibration_plot.shown(sureness.entries(sheets))

    def send(self, seconds: float = SECONDS) -> str:
        """Try now to send what waits, for at most so many seconds, and say what is left."""
        self._desk.hurry()
        self._sender.wake()
        self._desk.wait(seconds)
        return self._state()

    def log_in(self) -> str:
        """Ask for the token once more, and try with it."""
        said = self._desk.access.ask_again() if self._desk.access.address else ""
        self._desk.hurry()
        self._sender.load()
        self._desk.wait(SECONDS)
        return said or self._state()

    def recorded(self, name: Any) -> Any:
        """The answer that stands in the box of a question, or None."""
        return self._desk.recorded(self.named(name))

    # --- what there is to hand in ---------------------------------------------------------------------------------

    @property
    def locale(self) -> str:
        return self._desk.locale

    @property
    def score(self) -> tuple[float, float]:
        """Points that the service gave so far, and points there are."""
        with self._desk.lock:
            reached = sum(best(self._desk.sheet, question.name) for question in self.questions)
            return reached, sum(question.points for question in self.questions)

    def receipts(self) -> list[str]:
        """Every receipt of this run, one for each judged answer."""
        with self._desk.lock:
            return self._desk.sheet.receipts()

    def hand_in(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the receipts into `receipts.json`, beside the notebook or at `path` (a folder, or a name of a file), and say
        what is in it. Receipts of other lessons that stand there stay."""
        told = hand_in(self.receipts(), Path(path) if path is not None else None)
        return "\n".join([told, *filter(None, [self._state()])])

    # --- showing --------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        with self._desk.lock:
            parts = [_("Graded quiz: {title}").format(title=self._desk.sheet.title or self._desk.lesson), *self._notes()]
            parts.append(self._state())
            for question in self.questions:
                asked = Quiz._asked(question, self.locale)
                parts.append(f"\n{asked}\n   {place(question)}")
                parts += [f"   {line}" for line in self._help(question)]
                told = self._desk.told(question)
                answer = self._desk.recorded(question)
                if answer is not None:
                    parts.append("   " + _("You answered {answer}.").format(answer=spoken(answer)))
                if told is not None:
                    parts.append("   " + str(told).replace("\n", "\n   "))
        return "\n".join(filter(None, parts))

    __repr__ = __str__

    def _help(self, question: Asked) -> list[str]:
        """What there is of hints to a question, line by line."""
        said = self._desk.hints.said.get(question.name, "")
        told = [hints.offered(question), *hints.lines(question), said, hints.how_to(question)]
        return [line.replace("\n", " ") for line in told if line]

    def show(self) -> None:
        """Show the questions as widgets where the front end has them, as text where not; beneath, what was answered."""
        self._desk.wait(SECONDS)
        board = None
        try:
            from quizzes.online.board import OnlineBoard

            board = OnlineBoard(self)
        except ImportError as error:
            print(_("(Widgets are not available here: {error}. Answer as text, as shown.)").format(error=error))
        self._display = ""
        if board is None or not board.show():
            print(self)
            board = None
        with self._desk.lock:
            self._board = board
            if board is not None:
                board.renew({question.name for question in self.questions})  # what came in meanwhile
            self._publish(new=True)

    def _notes(self) -> list[str]:
        return list(dict.fromkeys(self._desk.notes))

    def _state(self) -> str:
        """How things stand with the service, in a sentence or two."""
        with self._desk.lock:
            desk = self._desk
            if not self.questions:
                why = desk.trouble or _("The service has not answered yet.")
                return _("The questions are not here yet. {why} They appear as soon as the service answers.").format(why=why)
            said = summary(desk.sheet, self.questions)
            return f"{said} {desk.trouble}".strip()

    def _changed(self, names: set[str]) -> None:
        with self._desk.lock:
            if self._board is not None:
                self._board.renew(names)
            self._publish()

    def _publish(self, new: bool = False) -> None:
        """Put the sheet into the notebook's outputs in place of the last; `new`, for a cell that runs: beneath it, where there
        is none yet."""
        if shell() is None or not (new or self._display):
            return
        from IPython.display import display, update_display

        sheet = self._desk.sheet
        rows = [row for question in self.questions if (row := self._row(question)) is not None]
        lines = [f"{name}: {answer}. {verdict}" for name, _prompt, answer, verdict in rows]
        text = "\n".join([*lines, self._state()])
        table = as_html(Record(sheet.lesson), rows)
        content = {MIME: sheet.to_json(), "text/html": table, "text/plain": text}
        if self._display:
            update_display(content, raw=True, display_id=self._display)
        else:
            self._display = f"offload-quiz-{uuid.uuid4()}"
            display(content, raw=True, display_id=self._display)

    def _row(self, question: Asked) -> tuple[str, str, str, str] | None:
        told, answer = self._desk.told(question), self._desk.recorded(question)
        if told is None and answer is None:
            return None
        verdict = f"{told.head}. {' '.join(told.lines)}" if told is not None else _("A draft; not sent.")
        if answer is None:  # the numbers are new since
            replies = self._desk.sheet.of(question.name)
            answer = replies[-1]["answer"] if replies else None
        return question.name, question.prompt, spoken(answer), verdict


def _held(lesson: str, address: str, notes: list[str]) -> Sheet:
    """What this notebook holds of the lesson, else what the progress file holds of it and this service, else nothing."""
    path = notebook_path()
    found = [from_json(content, notes) for content in contents(path, MIME, notes)] if path is not None else []
    sheets = [sheet for sheet in found if sheet is not None and sheet.lesson == lesson]
    if not sheets and address:
        try:
            held = [from_json(one, notes) for one in Progress().read()["judged"].values()]
        except ProgressError as error:
            notes.append(str(error))
            held = []
        sheets = [one for one in held if one is not None and (one.lesson, one.service) == (lesson, address)]
        sheets = sheets if len(sheets) == 1 else []
    if not sheets:
        return Sheet(lesson)
    newest = sheets[-1]
    from quizzes.online.together import together

    for sheet in reversed(sheets[:-1]):
        same = sheet.run == newest.run
        content = together(newest.to_json(), sheet.to_json()) if same else newest.to_json()
        newest = from_json(content, []) or newest
        if not same:
            newest.others.append(sheet.kept())
    return newest
