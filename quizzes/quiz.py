"""A practice quiz in a notebook: shows questions, judges at once, remembers. Widgets are in `widgets.py`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, MutableMapping
from typing import Any

from quizzes.answers import MIME, as_html, merge, notebook_path, read_records, shell
from quizzes.grading import Verdict, judge
from quizzes.question import Question, misconceptions, practice

_open: dict[str, Quiz] = {}


class Quiz:
    """The practice quiz of a lesson: `quiz.show()` for widgets, `print(quiz)` and `quiz.answers["q1"] = "b"` without.

    Built again in the same kernel it is the same quiz, with its answers; in a fresh kernel it takes up what was saved in
    the notebook. Raises quizzes.question.BankError for a lesson that has no questions.
    """

    def __new__(cls, lesson: str) -> Quiz:
        if lesson not in _open:
            quiz = super().__new__(cls)
            quiz._begin(lesson)
            _open[lesson] = quiz  # only once it is whole
        return _open[lesson]

    def _begin(self, lesson: str) -> None:
        self.bank = practice(lesson)
        self.notes: list[str] = []
        path = notebook_path()
        self.record, conflicts = merge(lesson, read_records(path, lesson) if path is not None else [])
        names = {question.id: question.name for question in self.bank.questions}
        for question in conflicts:
            said = f"This notebook holds two different answers to {names.get(question, question)}; the newer one was taken."
            self.notes.append(said)
        self.answers = Answers(self)
        self._display = ""
        self._board: Any = None

    # --- answering ------------------------------------------------------------------------------------------------

    def answer(self, name: str, answer: Any) -> Verdict:
        """Judge and remember. An answer that is not understood is not remembered, and costs nothing."""
        question = self.bank[name]
        verdict = judge(question, answer)
        if verdict.understood:
            self.record.put(question.id, verdict.answer, verdict.share)
            self._publish()
        return verdict

    def recorded(self, name: str) -> Any:
        """The answer last given to a question, or None."""
        entry = self.record.answers.get(self.bank[name].id)
        return entry["answer"] if entry is not None else None

    @property
    def score(self) -> tuple[float, float]:
        """Points reached and points there are."""
        reached = sum(q.points * judge(q, self.recorded(q.name)).share for q in self.bank.questions)
        return reached, sum(q.points for q in self.bank.questions)

    # --- showing --------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [f"Quiz: {self.bank.title}"]
        parts += self.notes
        for question in self.bank.questions:
            parts.append(f"\n{question.name}. {question.prompt}")
            parts += [f"   {choice.id}) {choice.text}" for choice in question.choices]
            parts.append(f"   {how_to(question)}")
            if self.recorded(question.name) is not None:
                parts.append(f"   You answered {spoken(self.recorded(question.name))}. {self._verdict(question).message}")
        return "\n".join(parts)

    __repr__ = __str__

    def show(self) -> None:
        """Show the questions as widgets where the front end has them, as text where not; beneath, the answers given."""
        for note in self.notes:
            print(note)
        board = None
        try:
            from quizzes.widgets import Board

            board = Board(self)
        except ImportError as error:
            print(f"(Widgets are not available here: {error}. Answer as text, as shown under each question.)\n")
        self._display = ""
        if board is None or not board.show():
            print(self)
        self._board = board
        self._publish()

    def _verdict(self, question: Question) -> Verdict:
        return judge(question, self.recorded(question.name))

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
        lines = [f"{name}: {answer}. {verdict}" for name, _, answer, verdict in rows] or ["No answers yet."]
        content = {MIME: self.record.to_json(), "text/html": as_html(self.record, rows), "text/plain": "\n".join(lines)}
        if self._display:
            update_display(content, raw=True, display_id=self._display)
        else:
            self._display = f"offload-quiz-{uuid.uuid4()}"
            display(content, raw=True, display_id=self._display)


class Answers(MutableMapping[str, Any]):
    """`answers["q3"] = "b"` answers a question and says at once whether it is right and why."""

    def __init__(self, quiz: Quiz) -> None:
        self._quiz = quiz

    def __setitem__(self, name: str, answer: Any) -> None:
        verdict = self._quiz.answer(name, answer)
        print(f"{name}: {verdict.message}")
        for idea in verdict.misconceptions:
            print(f"    Read again: {misconceptions()[idea]['reread']}.")
        if self._quiz._board is not None:
            self._quiz._board.refresh(name)

    def __getitem__(self, name: str) -> Any:
        return self._quiz.recorded(name)

    def __delitem__(self, name: str) -> None:
        self._quiz.record.answers.pop(self._quiz.bank[name].id, None)
        self._quiz._publish()

    def __iter__(self) -> Iterator[str]:
        return (q.name for q in self._quiz.bank.questions if self._quiz.recorded(q.name) is not None)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))


def spoken(answer: Any) -> str:
    """An answer as a person would write it."""
    if answer is None:
        return ""
    return ", ".join(answer) if isinstance(answer, list) else str(answer)


def how_to(question: Question) -> str:
    """How to answer as text."""
    example = {"one": f'"{question.choices[1].id}"' if question.choices else "", "number": '"12 GB"'}.get(
        question.kind, '"a, c"'
    )
    return f'To answer as text: answers["{question.name}"] = {example}'
