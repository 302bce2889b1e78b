"""The quiz answered in plain cells: what works where widgets do not."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from quizzes.names import UnknownQuestion
from quizzes.question import misconceptions
from quizzes.rules import headline, reread
from quizzes.say import _

if TYPE_CHECKING:
    from quizzes.quiz import Quiz


class Answers(MutableMapping[str, Any]):
    """`answers["q3"] = "b"` answers a question and says at once whether it is right and why."""

    def __init__(self, quiz: Quiz) -> None:
        self._quiz = quiz

    def __setitem__(self, name: str, answer: Any) -> None:
        try:
            verdict = self._quiz.answer(name, answer)
        except UnknownQuestion as error:
            print(_("{error} Nothing was changed.").format(error=error))
            return
        name = self._quiz._named(name).name
        print(f"{name}: {headline(verdict)}.\n    " + verdict.message.replace("\n", "\n    "))
        for idea in verdict.misconceptions:
            print(f"    {reread(misconceptions()[idea]['reread'])}")
        if self._quiz._board is not None:
            self._quiz._board.refresh(name)

    def __getitem__(self, name: str) -> Any:
        return self._quiz.recorded(name)

    def __delitem__(self, name: str) -> None:
        question = self._quiz._named(name)
        self._quiz.record.answers.pop(question.id, None)
        self._quiz.record.others.pop(question.id, None)
        self._quiz._sent(lambda: self._quiz.progress.forget(question.id))
        self._quiz._publish()

    def __iter__(self) -> Iterator[str]:
        return (q.name for q in self._quiz.bank.questions if self._quiz.recorded(q.name) is not None)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))
