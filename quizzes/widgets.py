"""The quiz as widgets: every control has a label and a keyboard, every verdict is words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display

from quizzes.grading import Verdict
from quizzes.question import Question, misconceptions

if TYPE_CHECKING:
    from quizzes.quiz import Quiz


class Board:
    """All questions of a quiz, one above the other."""

    def __init__(self, quiz: Quiz) -> None:
        self.cards = {question.name: Card(quiz, question) for question in quiz.bank.questions}
        self.box = widgets.VBox([card.box for card in self.cards.values()])

    def show(self) -> bool:
        """Display the widgets; False where nothing can show them (a plain terminal, no IPython)."""
        shell = get_ipython()
        if shell is None or not hasattr(shell, "kernel"):
            return False
        display(self.box)
        return True

    def refresh(self, name: str) -> None:
        self.cards[name].refresh()


class Card:
    """One question: prompt, control, a Check button, and the verdict beneath."""

    def __init__(self, quiz: Quiz, question: Question) -> None:
        self._quiz, self._question = quiz, question
        prompt = widgets.HTML(f"<p><strong>{escape(question.name)}.</strong> {escape(question.prompt)}</p>")
        self.controls = self._build()
        self.button = widgets.Button(description="Check", tooltip=f"Check your answer to {question.name}")
        self.button.on_click(lambda _: self._check())
        self.verdict = widgets.HTML()
        self.box = widgets.VBox([prompt, *self.controls, self.button, self.verdict])
        self.refresh()

    def _build(self) -> list[Any]:
        question, wide = self._question, widgets.Layout(width="auto")
        style = {"description_width": "initial"}
        if question.kind == "one":
            options = [(f"{choice.id}) {choice.text}", choice.id) for choice in question.choices]
            return [widgets.RadioButtons(options=options, index=None, layout=wide)]
        if question.kind == "several":
            return [
                widgets.Checkbox(description=f"{choice.id}) {choice.text}", indent=False, layout=wide)
                for choice in question.choices
            ]
        return [widgets.Text(description="Number and unit:", placeholder="12 GB", style=style, continuous_update=False)]

    def given(self) -> Any:
        if self._question.kind == "several":
            pairs = zip(self._question.choices, self.controls, strict=True)
            return [choice.id for choice, control in pairs if control.value]
        return self.controls[0].value or ""

    def _check(self) -> None:
        self._tell(self._quiz.answer(self._question.name, self.given()))

    def refresh(self) -> None:
        """Show what is recorded."""
        answer = self._quiz.recorded(self._question.name)
        if answer is None:
            return
        if self._question.kind == "several":
            for choice, control in zip(self._question.choices, self.controls, strict=True):
                control.value = choice.id in answer
        else:
            self.controls[0].value = answer
        self._tell(self._quiz._verdict(self._question))

    def _tell(self, verdict: Verdict) -> None:
        if not verdict.understood:
            head = "Not counted"
        else:
            head = "✔ Right" if verdict.correct else f"✘ Not yet ({verdict.share:.0%} of the points)"
        again = [f"Read again: {misconceptions()[idea]['reread']}." for idea in verdict.misconceptions]
        lines = "<br>".join(escape(line) for line in [*verdict.message.split("\n"), *dict.fromkeys(again)])
        self.verdict.value = f'<div role="status"><strong>{head}.</strong><br>{lines}</div>'
