"""The graded quiz as widgets: those of the practice quiz, with a button that sends and never waits."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display

from quizzes.online import hints
from quizzes.online.asked import Asked, fits
from quizzes.online.telling import Told, place
from quizzes.say import _
from quizzes.widgets import STYLE, Card

if TYPE_CHECKING:
    from quizzes.online.quiz import OnlineQuiz


class OnlineBoard:
    """All questions of a quiz, one above the other, and a line on how things stand. It fills when the questions arrive."""

    def __init__(self, quiz: OnlineQuiz) -> None:
        self._quiz = quiz
        self.cards: dict[str, OnlineCard] = {}
        self.state, self._said = widgets.HTML(), ""
        self.again = widgets.Button(
            description=_("Try again now"), tooltip=_("Ask the service for the questions, and send what waits, now")
        )
        self.again.on_click(lambda _button: quiz._sender.load())
        self.box = widgets.VBox([])
        self.box.add_class("offload-quiz")
        self.renew(set())

    def show(self) -> bool:
        """Display the widgets; False where nothing can show them (a plain terminal, no IPython)."""
        shell = get_ipython()
        if shell is None or not hasattr(shell, "kernel"):
            return False
        display(self.box)
        return True

    def renew(self, names: set[str]) -> None:
        """Say what is new of these questions. A box in which somebody may be typing changes only with its
        question."""
        asked = {question.name: question for question in self._quiz.questions}
        if list(asked) != list(self.cards):
            self.cards = {
                name: self.cards[name] if name in self.cards else OnlineCard(self._quiz, question)
                for name, question in asked.items()
            }
            self.box.children = [widgets.HTML(STYLE), self.state, self.again, *(card.box for card in self.cards.values())]
        elif not self.box.children:
            self.box.children = [widgets.HTML(STYLE), self.state, self.again]
        for name in names & set(self.cards):
            self.cards[name].renew(asked[name])
        self._tell()

    def _tell(self) -> None:
        lines = [*self._quiz._notes(), self._quiz._state()]
        said = "<br>".join(escape(line) for line in lines)
        if said != self._said:
            # The points change with each answer, which is announced by itself; what is wrong is announced here.
            role = "alert" if self._quiz._desk.trouble or not self.cards else "note"
            self.state.value = f'<div class="offload-verdict" role="{role}">{said}</div>'
            self._said = said
        self.again.layout.display = "" if self._quiz._desk.trouble or not self.cards else "none"


class OnlineCard(Card):
    """One question: what is asked, how sure one is, hints, a line on points and attempts, a Send button, and what became of the
    answer.

    What is asked is in a box of its own, so that new numbers do not take the focus from the button.
    """

    _question: Asked
    _quiz: OnlineQuiz

    def __init__(self, quiz: OnlineQuiz, question: Asked) -> None:
        self._said: Told | None = None
        self._filling = False
        super().__init__(quiz, question)
        self.button.description = _("Send {name}").format(name=question.name)
        self.button.tooltip = _("Send your answer to {name}; it is judged and counts").format(name=question.name)
        self.place, self.help = widgets.HTML(), Help(quiz, question)
        every = self.box.children
        above = every[: every.index(self.sure)]
        (row,) = (one for one in every if self.button in getattr(one, "children", ()))
        self.asked = widgets.VBox(above)
        asks = [self.sure] if question.confidence else []
        self.box.children = [self.asked, *asks, self.help.box, self.place, self.button, self.verdict]
        row.children = ()
        _close(row, *([] if asks else [self.sure]))
        if asks:
            self.sure.observe(self._sure, "value")
        self._listen()

    def _listen(self) -> None:
        for control in self.controls:
            control.observe(self._typed, "value")
        self.place.value = f"<p>{escape(place(self._question))}</p>"
        self.button.disabled = self._question.settled

    def _typed(self, _change: Any) -> None:
        if not self._filling:
            self._quiz._desk.draft(self._question.name, self.given())

    def _sure(self, _change: Any) -> None:
        if not self._filling:
            self._quiz._desk.be_sure(self._question.name, self.sure.value or None)

    def show_sure(self) -> None:
        """Show how sure the learner is of the next answer."""
        if not self._question.confidence:
            return
        percent = self._quiz._desk.sure_of(self._question.name) or 0
        before, self._filling = self._filling, True
        try:
            if percent not in (value for _said, value in self.sure.options):  # said in a cell
                self.sure.options = [*self.sure.options, (_("{percent:g} %").format(percent=percent), percent)]
            self.sure.value = percent
        finally:
            self._filling = before

    def _check(self) -> None:
        why = self._quiz.answer(self._question.name, self.given())
        if why:
            self._say(Told(_("! Not sent"), (why,)))

    def renew(self, question: Asked) -> None:
        """What is new of this question: its text where that changed, and what became of the answer."""
        before, self._question = self._question, question
        if not question.same_text(before):
            fresh = type(self)(self._quiz, question)
            for control in fresh.controls:
                control.unobserve(fresh._typed, "value")
            old = self.asked.children
            self.controls, self.asked.children = fresh.controls, fresh.asked.children
            fresh.asked.children = ()
            _close(*old, fresh.box)  # with its hints, which this card has
            self._listen()
        self.place.value = f"<p>{escape(place(question))}</p>"
        self.button.disabled = question.settled
        self.help.renew(question)
        self.show_sure()
        self._say(self._quiz._desk.told(question))

    def refresh(self) -> None:
        """Show what is recorded; nothing of it is announced."""
        answer = self._quiz.recorded(self._question.name)
        self._filling = True
        try:
            if fits(self._question, answer):
                self._fill(answer)
        finally:
            self._filling = False
        self.show_sure()
        self._say(self._quiz._desk.told(self._question), fresh=False)

    def _say(self, told: Told | None, fresh: bool = True) -> None:
        if told is None or told == self._said:
            return
        self._said = told
        lines = "<br>".join(escape(line) for line in told.lines)
        # "Sending" is over in a moment and not announced. See Card._tell for the roles.
        role = "alert" if fresh and (told.settled or told.lines) else "note"
        said = f"<strong>{escape(self._question.name)}: {escape(told.head)}.</strong><br>{lines}"
        self.verdict.value = f'<div class="offload-verdict" role="{role}">{said}</div>'


class Help:
    """The hints to a question: a button for each, which says what it costs, and beneath them what was taken.

    A button stands for its hint and no other: pressed twice it is paid for once, and pressed again it reads the hint out."""

    def __init__(self, quiz: OnlineQuiz, question: Asked) -> None:
        self._quiz, self._question, self._said = quiz, question, ""
        self.buttons: list[widgets.Button] = []
        self.told = widgets.HTML()
        self.box = widgets.VBox([])
        self.renew(question, fresh=False)

    def renew(self, question: Asked, fresh: bool = True) -> None:
        self._question, offer = question, question.offer
        count = offer.count if offer is not None else 0
        if count != len(self.buttons):
            _close(*self.buttons)
            self.buttons = [self._made(number) for number in range(1, count + 1)]
            self.box.children = [widgets.HBox(self.buttons), self.told] if count else []
        taken = len(offer.texts) if offer is not None else 0
        for number, button in enumerate(self.buttons, 1):
            cost = offer.cost if offer is not None else 0.0
            named = _("Hint {number} to {question} (costs {cost:.0%})") if number > taken else _("Hint {number} to {question}")
            button.description = named.format(number=number, question=question.name, cost=cost)
            button.disabled = number > taken + (not question.settled)
        self._tell(fresh)

    def _made(self, number: int) -> widgets.Button:
        title = _("Show hint {number} to {question}; it is paid for once").format(number=number, question=self._question.name)
        button = widgets.Button(tooltip=title, layout=widgets.Layout(width="auto"))
        button.on_click(lambda _button: self._ask(number))
        return button

    def _ask(self, number: int) -> None:
        why = self._quiz.ask_hint(self._question.name, number)
        self._said = self.told.value = ""  # what has been read out before is read out again
        self._tell(fresh=True, why=why)

    def _tell(self, fresh: bool, why: str = "") -> None:
        asked = self._quiz._desk.hints
        if self._question.name in asked.wanted:
            fresh, why = False, why or _("… The hint is on its way")
        taken = hints.lines(self._question)
        said = [*taken, hints.offered(self._question) if taken else "", why or asked.said.get(self._question.name, "")]
        lines = "<br>".join(escape(line) for line in said if line)
        if lines == self._said:
            return
        self._said = lines
        role = "alert" if fresh else "note"
        self.told.value = f'<div class="offload-verdict" role="{role}">{lines}</div>' if lines else ""


def _close(*unused: widgets.Widget) -> None:
    """Close widgets that are shown no more, with their layouts and all that is in them: none is left behind in the page."""
    for widget in unused:
        _close(*getattr(widget, "children", ()))
        for part in (getattr(widget, "layout", None), getattr(widget, "style", None)):
            if part is not None:
                part.close()
        widget.close()
