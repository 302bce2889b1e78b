"""The graded quiz answered in plain cells: what works where widgets do not."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from quizzes.names import UnknownQuestion
from quizzes.say import _

if TYPE_CHECKING:
    from quizzes.online.quiz import OnlineQuiz


class OnlineAnswers(MutableMapping[str, Any]):
    """`answers["q3"] = "b"` sends an answer, and says the verdict, or where it is kept if the service does not answer soon."""

    def __init__(self, quiz: OnlineQuiz) -> None:
        self._quiz = quiz

    def __setitem__(self, name: str, answer: Any) -> None:
        from quizzes.online.quiz import SECONDS

        desk = self._quiz._desk
        if not self._quiz.questions:
            desk.wait(SECONDS)
        if not self._quiz.questions:
            if isinstance(name, str):
                desk.draft(name, answer)
            print(_("{name}: not sent, and kept as a draft. {why}").format(name=name, why=self._quiz._state()))
            return
        try:
            question = self._quiz.named(name)
            why = self._quiz.answer(name, answer)
        except UnknownQuestion as error:
            print(_("{error} Nothing was sent.").format(error=error))
            return
        if not why:
            desk.wait(SECONDS, question.name)
        # A bank that was changed may ask it no more.
        now = next((one for one in self._quiz.questions if one.name == question.name), question)
        if self._quiz._board is not None and now.name in self._quiz._board.cards:
            self._quiz._board.cards[now.name].refresh()
        self._quiz._publish(new=True)
        told = desk.told(now)
        print(f"{question.name}: {why or told}")

    def __getitem__(self, name: str) -> Any:
        return self._quiz.recorded(name)

    def __delitem__(self, name: str) -> None:
        print(_("{name}: an answer that was given cannot be taken back.").format(name=self._quiz.named(name).name))

    def __iter__(self) -> Iterator[str]:
        return (question.name for question in self._quiz.questions if self._quiz.recorded(question.name) is not None)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))
