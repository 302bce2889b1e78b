"""A practice quiz in a notebook: shows questions, judges at once, remembers. Widgets are in `widgets.py`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quizzes.answers import MIME, Record, as_html, merge, notebook_path, read_records, shell
from quizzes.calibration_plot import Shown, shown
from quizzes.cells import Answers
from quizzes.copies import chosen, spoken, told
from quizzes.figures import picture
from quizzes.front_ends import keeping
from quizzes.grading import Verdict, judge
from quizzes.names import find
from quizzes.progress import Progress, ProgressError
from quizzes.question import Question, practice
from quizzes.repetition import due
from quizzes.reviewing import agenda, elsewhere
from quizzes.rules import rule
from quizzes.say import _, speak
from quizzes.say import spoken as spoken_here
from quizzes.translated import translated
from quizzes.variants import VariantError, draw, redraw

if TYPE_CHECKING:
    from quizzes.online.asked import Asked

_open: dict[str, Quiz] = {}
LOCALES = ("en", "fr", "ko")


class Quiz:
    """The practice quiz of a lesson: `quiz.show()` for widgets, `print(quiz)` and `quiz.answers["q1"] = "b"` without.

    Built again in the same kernel it is the same quiz, with its answers; in a fresh kernel it takes up what was saved in
    the notebook. `language` ("fr", "fr_CA.UTF-8", "ko") is what it says and this process speaks from then on; asked for again
    in another one it keeps its answers, and show() has it anew. `locale` is how numbers are written and read; the language's
    where it is left out. Raises quizzes.question.BankError for a lesson that has no questions.
    """

    def __new__(cls, lesson: str, locale: str | None = None, language: str | None = None) -> Quiz:
        if language is not None:
            here = speak(language)
            locale = locale or here
        if lesson not in _open:
            quiz = super().__new__(cls)
            quiz._begin(lesson, chosen_locale(locale))
            _open[lesson] = quiz  # only once it is whole
        if locale is not None:
            _open[lesson].locale = chosen_locale(locale)
        if _open[lesson]._told_in != (spoken_here(), _open[lesson].locale):
            _open[lesson]._tell_again()
        return _open[lesson]

    def _begin(self, lesson: str, locale: str) -> None:
        self.bank = translated(practice(lesson))
        self.locale = locale
        self._told_in = spoken_here(), locale
        self.notes: list[str] = []
        self.progress = Progress()
        self._take_up(lesson)
        self.bank = self.bank.model_copy(update={"questions": tuple(self._drawn(q) for q in self.bank.questions)})
        self.answers = Answers(self)
        self._display = ""
        self._board: Any = None
        self._say_edited()

    def _tell_again(self) -> None:
        """The same questions, with the same numbers and answers, in the language and locale that are spoken now."""
        plain = translated(practice(self.bank.lesson))
        self.bank = plain.model_copy(update={"questions": tuple(self._drawn(q) for q in plain.questions)})
        self._told_in = spoken_here(), self.locale

    def _take_up(self, lesson: str) -> None:
        """What was answered before: all copies in this notebook, and the progress of the course."""
        path = notebook_path()
        copies = read_records(path, lesson, self.notes) if path is not None else []
        self._places = {e["at"]: _("in this notebook") for copy in copies for e in copy.answers.values()}
        try:
            kept = self.progress.record(lesson)
            learner = next((copy.learner for copy in copies if copy.learner), "") or self.progress.learner(uuid.uuid4().hex)
        except ProgressError as error:
            self.notes.append(str(error))
            kept, learner = Record(lesson), uuid.uuid4().hex
        for question in kept.answers:
            for entry in kept.held(question):
                self._places.setdefault(entry["at"], _("in {path}").format(path=self.progress.path))
        self.record = merge(lesson, [*copies, kept])[0]
        self.record.learner = learner

    def conflicts(self) -> list[str]:
        """For each question of which two copies hold different answers: both, their times and places, how to choose."""
        held = [(question.name, self.record.held(question.id)) for question in self.bank.questions]
        return [told(name, entries, self._places) for name, entries in held if len(entries) > 1]

    def choose(self, name: str, number: int) -> str:
        """Settle a conflict: the answer of that number, as `conflicts()` lists them, is the one. The others are dropped."""
        question = self._named(name)
        entries = self.record.held(question.id)
        if len(entries) < 2:
            return _("The copies of your answer to {name} agree; there is nothing to choose.").format(name=name)
        if type(number) is not int or not 1 <= number <= len(entries):
            return _("Nothing chosen: write a number from 1 to {last}.").format(last=len(entries))
        entry = chosen(entries[number - 1], entries, datetime.now(UTC))
        self.record.answers[question.id] = entry
        del self.record.others[question.id]
        self._sent(lambda: self.progress.choose(question.id, {**entry, "lesson": self.bank.lesson}))
        self._publish()
        if self._board is not None:
            self._board.refresh(name)
        return _("{name} is {answer} now, in every copy.").format(name=name, answer=spoken(entry["answer"]))

    def _drawn(self, question: Question) -> Question:
        """The edition that was answered or is asked; a first one for this learner where there is none."""
        if not question.variants:
            return question
        held = self.record.pending.get(question.id, {}).get("variant")
        held = held or self.record.answers.get(question.id, {}).get("variant")
        if held:
            try:
                return redraw(question, held, self.locale)
            except VariantError as error:
                self.notes.append(_("{why}. Its answer is kept, and the question is asked with new numbers.").format(why=error))
        return draw(question, self.record.learner, self.record.answers.get(question.id, {}).get("attempt", 0), self.locale)

    def again(self, name: str) -> str:
        """Ask a question with other numbers. The answer given stays recorded until the new one; show() has the new box."""
        question = self._named(name)
        if not question.variants:
            return _("{name} has one edition only; answer it again as it stands.").format(name=name)
        (plain,) = (q for q in translated(practice(self.bank.lesson)).questions if q.id == question.id)
        new = draw(plain, self.record.learner, self.record.answers.get(question.id, {}).get("attempt", 0), self.locale)
        self.bank = self.bank.model_copy(update={"questions": tuple(new if q.id == new.id else q for q in self.bank.questions)})
        self._keep(new, variant=new.variant)
        return self._asked(new, self.locale)

    # --- answering ------------------------------------------------------------------------------------------------

    def answer(self, name: str, answer: Any) -> Verdict:
        """Judge and remember. An answer that is not understood is not remembered, and costs nothing. Raises UnknownQuestion."""
        question = self._named(name)
        more = self._more(question)
        verdict = judge(question, answer, self.locale, more["hints"])
        if verdict.understood:
            before = self.record.answers.get(question.id, {})
            self.record.put(
                question.id,
                verdict.answer,
                verdict.share,
                variant=question.variant,
                attempt=before.get("attempt", 0) + 1,
                earned=verdict.earned,
                locale=self.locale,
                **{key: more.get(key) for key in ("hints", "confidence")},
            )
            self.record.pending.pop(question.id, None)
            self._sent(lambda: self._note(question))
            self._publish()
        return verdict

    def _note(self, question: Question) -> None:
        first, *rest = self.progress.note(self.bank.lesson, question.id, self.record.answers[question.id])
        if rest:  # another notebook answered since this one began
            self.record.answers[question.id], self.record.others[question.id] = first, rest
            for entry in (first, *rest):
                self._places.setdefault(entry["at"], _("in {path}").format(path=self.progress.path))
            self.progress.notes.append(told(question.name, [first, *rest], self._places))

    def _sent(self, keep: Callable[[], None]) -> None:
        try:
            keep()
        except ProgressError as error:
            self.progress.notes.append(str(error))
        self._say_notes()

    def _named(self, name: Any) -> Question:
        return find(self.bank, name)

    def hint(self, name: str) -> str:
        """The next hint to a question, and what it costs. Each is paid for once; the last is repeated."""
        question = self._named(name)
        if not question.hints:
            return _("There is no hint to {name}.").format(name=name)
        more = self._more(question)
        taken = min(more.get("hints", 0) + 1, len(question.hints))
        self._keep(question, hints=taken)
        left = len(question.hints) - taken
        cost = _("Hint {number} of {count}; each costs {cost:.0%} of the points. {left} left.")
        said = cost.format(number=taken, count=len(question.hints), cost=question.hint_cost, left=left)
        return f"{question.hints[taken - 1]}\n{said}"

    def sure(self, name: str, percent: float) -> str:
        """Say how sure you are of the next answer, in per cent from 0 to 100. What is no such number changes nothing."""
        question = self._named(name)
        if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
            return _("Not noted: {percent!r} is not a number from 0 to 100.").format(percent=percent)
        self._keep(question, confidence=percent)
        return _("Noted: {percent:g} % sure of {name}. It counts for your next answer.").format(percent=percent, name=name)

    def calibration(self, whole_course: bool = False) -> Shown:
        """How sure you said you were, and what share was right; of this quiz or of the whole course: a figure and its text."""
        return shown(self._course()["answers"].values() if whole_course else self.record.answers.values())

    def due(self, now: datetime | None = None) -> list[str]:
        """The ids of the questions of the whole course that were missed and come back now, the longest overdue first."""
        return due(self._course()["cards"], (now or datetime.now(UTC)).astimezone(UTC))

    def review(self, now: datetime | None = None) -> str:
        """The questions of this lesson to answer again now, those with variants with new numbers; what is due in other
        lessons, or when the next comes back. `now` has a zone; the time of this computer where it is left out."""
        moment = (now or datetime.now(UTC)).astimezone(UTC)
        backs = agenda(self._course()["cards"])
        mine = [back.name for back in backs if back.lesson == self.bank.lesson and back.when <= moment]
        parts = [_("Again now:")] if mine else [_("Nothing of this lesson is due.")]
        for name in mine:
            fresh = self._named(name).variants and self.recorded(name) is not None
            parts.append(self.again(name) if fresh else self._asked(self._named(name), self.locale))
        return "\n".join([*parts, *elsewhere(backs, self.bank.lesson, moment)])

    def _course(self) -> dict[str, Any]:
        try:
            return self.progress.read()
        except ProgressError as error:
            self.progress.notes.append(str(error))
            self._say_notes()
            return {"answers": {}, "cards": {}}

    def _say_notes(self) -> None:
        while self.progress.notes:
            print(self.progress.notes.pop(0))

    def _more(self, question: Question) -> dict[str, Any]:
        """Hints taken (a second answer does not give them back), and the confidence said since the last answer."""
        hints = self.record.answers.get(question.id, {}).get("hints", 0)
        pending = self.record.pending.get(question.id, {})
        return {**pending, "hints": max(hints, pending.get("hints", 0))}

    def _keep(self, question: Question, **more: Any) -> None:
        self.record.pending[question.id] = self._more(question) | more
        self._publish()

    def recorded(self, name: str) -> Any:
        """The answer last given to a question, or None."""
        question = self._named(name)
        entry = self.record.answers.get(question.id)
        # An answer to other numbers says nothing of these.
        return entry["answer"] if entry is not None and entry.get("variant", "") == question.variant else None

    @property
    def score(self) -> tuple[float, float]:
        """Points reached and points there are."""
        reached = sum(q.points * self._verdict(q).share for q in self.bank.questions)
        return reached, sum(q.points for q in self.bank.questions)

    # --- showing --------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [_("Quiz: {title}").format(title=self.bank.title)]
        parts += [*self.notes, *self.conflicts()]
        for question in self.bank.questions:
            parts.append(f"\n{self._asked(question, self.locale)}")
            if self.recorded(question.name) is not None:
                parts.append(
                    "   "
                    + _("You answered {answer}. {verdict}").format(
                        answer=spoken(self.recorded(question.name)), verdict=self._verdict(question).message
                    )
                )
        return "\n".join(parts)

    @staticmethod
    def _asked(question: Question | Asked, locale: str = "en") -> str:
        lines = [f"{question.name}. {question.prompt}"]
        drawn = picture(question, locale)
        lines += [f"   {line}".rstrip() for line in drawn.text().split("\n")] if drawn is not None else []
        lines += [f"   {choice.id}) {choice.text}" for choice in question.choices]
        lines += [f"   {step.id}) {step.text}" for step in question.shown_steps()]
        lines += [f"   {pair.id}) {pair.left}" for pair in question.pairs]
        if question.pairs:
            lines += [f"      {name}: {text}" for name, text in question.options().items()]
        return "\n".join([*lines, *(f"   {line}" for line in (rule(question), how_to(question)) if line)])

    __repr__ = __str__

    def show(self) -> None:
        """Show the questions as widgets where the front end has them, as text where not; beneath, the answers given."""
        for note in filter(None, (*self.notes, *self.conflicts(), keeping(self.progress.path))):
            print(note)
        board = None
        try:
            from quizzes.widgets import Board

            board = Board(self)
        except ImportError as error:
            print(
                _("(Widgets are not available here: {error}. Answer as text, as shown under each question.)").format(
                    error=error
                )
                + "\n"
            )
        self._display = ""
        if board is None or not board.show():
            print(self)
            self._show_pictures()
        self._board = board
        self._publish()

    def _show_pictures(self) -> None:
        """The figures beneath the text, where no widget shows them and the front end shows pictures."""
        drawn = [(question.name, picture(question, self.locale)) for question in self.bank.questions]
        if shell() is None or not any(made for _name, made in drawn):
            return
        from IPython.display import display

        for name, made in drawn:
            if made is not None:
                display(made.bundle(_("The figure of {name}.").format(name=name)), raw=True)

    def _verdict(self, question: Question) -> Verdict:
        entry = self.record.answers.get(question.id, {})
        told = entry.get("locale")  # "0,5" is a number where it was typed, also when it is looked at elsewhere
        locale = told if told in LOCALES else self.locale
        return judge(question, self.recorded(question.name), locale, entry.get("hints", 0))

    def _say_edited(self) -> None:
        """Say which answers do not earn what the record says: the answer counts, and not what is written beside it."""
        for question in self.bank.questions:
            entry = self.record.answers.get(question.id, {})
            if self.recorded(question.name) is not None and abs(self._verdict(question).share - entry["share"]) > 1e-9:
                said = _("{name}: the record says {old:.0%} of the points, the answer earns {new:.0%}, which counts.")
                self.notes.append(said.format(name=question.name, old=entry["share"], new=self._verdict(question).share))

    def _publish(self) -> None:
        """Put the record into the notebook's outputs: a new one for a quiz just shown, else in place of the last."""
        if shell() is None:
            return
        from IPython.display import display, update_display

        rows = [
            (q.name, q.prompt, spoken(self.recorded(q.name)), self._verdict(q).message)
            for q in self.bank.questions
            if self.recorded(q.name) is not None
        ]
        lines = [
            _("{name}: {answer}. {verdict}").format(name=name, answer=answer, verdict=verdict)
            for name, _prompt, answer, verdict in rows
        ] or [_("No answers yet.")]
        content = {MIME: self.record.to_json(), "text/html": as_html(self.record, rows), "text/plain": "\n".join(lines)}
        if self._display:
            update_display(content, raw=True, display_id=self._display)
        else:
            self._display = f"offload-quiz-{uuid.uuid4()}"
            display(content, raw=True, display_id=self._display)


def chosen_locale(told: str | None = None) -> str:
    """The locale told, else OFFLOAD_LAB_LOCALE, else LANG's language where the course has it, else English."""
    for name in (told, os.environ.get("OFFLOAD_LAB_LOCALE"), os.environ.get("LANG")):
        if name and name[:2].lower() in LOCALES:
            return name[:2].lower()
    return "en"


def how_to(question: Question) -> str:
    """How to answer as text."""
    if question.kind == "order":
        example = "[" + ", ".join(f'"{step.id}"' for step in question.shown_steps()) + "]"
    elif question.kind == "match":
        option = next(iter(question.options()))
        example = "{" + ", ".join(f'"{pair.id}": "{option}"' for pair in question.pairs) + "}"
    elif question.kind in ("one", "plot"):
        example = f'"{question.choices[1].id}"'
    else:
        example = {"number": '"12 GB"', "text": f'"{_("your words")}"'}.get(question.kind, '"a, c"')
    return _("To answer as text: {code}").format(code=f'answers["{question.name}"] = {example}')
