"""The quiz as widgets: every control has a label and a keyboard, every verdict is words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import display

from quizzes.figures import picture
from quizzes.grading import Verdict
from quizzes.question import Question, misconceptions
from quizzes.rules import headline, reread, rule
from quizzes.say import _

STYLE = """<style>
.offload-quiz :is(input, select, button):focus-visible {
  outline: 3px solid var(--jp-ui-font-color1, currentColor) !important; outline-offset: -3px !important;
}
.offload-quiz input[type=checkbox]:focus-visible { outline-width: 2px !important; outline-offset: 1px !important; }
.offload-quiz .widget-checkbox { padding-left: 4px; }
.offload-quiz .widget-checkbox, .offload-quiz .widget-checkbox label { height: auto; width: auto; white-space: normal; }
.offload-quiz .offload-verdict { border-left: 4px solid currentColor; margin: 4px 0; padding: 2px 0 2px 8px; }
</style>"""
"""Focus is seen in every theme, drawn inwards because the boxes around cut off what is outside; long choices
wrap. Colours are the theme's own, so that its contrast holds."""

if TYPE_CHECKING:
    from quizzes.quiz import Quiz


class Board:
    """All questions of a quiz, one above the other."""

    def __init__(self, quiz: Quiz) -> None:
        self.cards = {question.name: Card(quiz, question) for question in quiz.bank.questions}
        self.box = widgets.VBox([widgets.HTML(STYLE), *(card.box for card in self.cards.values())])
        self.box.add_class("offload-quiz")

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
        stated = f"<br><em>{escape(rule(question))}</em>" if rule(question) else ""
        prompt = widgets.HTML(f"<p><strong>{escape(question.name)}.</strong> {escape(question.prompt)}{stated}</p>")
        self.controls = self._build()
        self.button = widgets.Button(
            description=_("Check {question}").format(question=question.name),
            tooltip=_("Check your answer to {question}").format(question=question.name),
        )
        self.button.on_click(lambda button: self._check())
        self.verdict = widgets.HTML()
        self.sure = widgets.Dropdown(
            description=_("How sure are you of {question}?").format(question=question.name),
            options=[(_("say or skip"), 0), (_("a guess, 30 %"), 30), (_("rather sure, 60 %"), 60), (_("sure, 90 %"), 90)],
            style={"description_width": "initial"},
        )
        buttons = [self.button]
        if question.hints:
            self.hint = widgets.Button(
                description=_("Hint (costs {hint_cost:.0%})").format(hint_cost=question.hint_cost),
                tooltip=_("Show the next hint to {question}").format(question=question.name),
            )
            self.hint.on_click(lambda button: self._hint())
            buttons.append(self.hint)
        drawn = picture(question, quiz.locale)
        seen = [prompt] if drawn is None else [prompt, widgets.HTML(drawn.html())]
        self.box = widgets.VBox([*seen, *self.controls, self.sure, widgets.HBox(buttons), self.verdict])
        self.refresh()

    def _build(self) -> list[Any]:
        question, wide = self._question, widgets.Layout(width="auto")
        style = {"description_width": "initial"}
        if question.choices:
            boxes = [
                _titled(widgets.Checkbox, question.name, description=f"{choice.id}) {choice.text}", indent=False, layout=wide)
                for choice in question.choices
            ]
            if question.kind != "several":  # no radio buttons: JupyterLab keeps their arrow keys for its cells
                for box in boxes:
                    box.observe(self._only, "value")
            return boxes
        if question.kind == "order":
            ranks = [(_("place"), 0), *((str(n), n) for n in range(1, len(question.steps) + 1))]
            return [
                widgets.Dropdown(description=f"{step.id}) {step.text}", options=ranks, layout=wide, style=style)
                for step in question.shown_steps()
            ]
        if question.kind == "match":
            rights = [(_("choose"), ""), *((f"{name}) {text}", name) for name, text in question.options().items())]
            return [
                widgets.Dropdown(description=f"{pair.id}) {pair.left}", options=rights, layout=wide, style=style)
                for pair in question.pairs
            ]
        if question.kind == "text":
            return [
                widgets.Text(
                    description=_("{question}, your answer:").format(question=question.name),
                    style=style,
                    layout=wide,
                    continuous_update=False,
                )
            ]
        label = _("{question}, number and unit:").format(question=question.name)
        example = "12 GB" if question.unit == "bytes" else ""
        return [widgets.Text(description=label, placeholder=example, style=style, continuous_update=False)]

    def _only(self, change: Any) -> None:
        """One of several boxes: what was chosen before is not any more."""
        if change["new"]:
            for box in self.controls:
                if box is not change["owner"]:
                    box.value = False

    def given(self) -> Any:
        if self._question.choices:
            pairs = zip(self._question.choices, self.controls, strict=True)
            return [choice.id for choice, control in pairs if control.value]
        if self._question.kind == "order":
            steps = zip(self._question.shown_steps(), self.controls, strict=True)
            ranked = sorted((control.value, step.id) for step, control in steps if control.value)
            # Two in one place, or one left out, is no order yet: what is sent then is not understood, and costs nothing.
            return [step for _rank, step in ranked] if len({rank for rank, _step in ranked}) == len(self.controls) else []
        if self._question.kind == "match":
            pairs = zip(self._question.pairs, self.controls, strict=True)
            return {pair.id: control.value for pair, control in pairs if control.value}
        return self.controls[0].value or ""

    def _hint(self) -> None:
        said = "<br>".join(escape(line) for line in self._quiz.hint(self._question.name).split("\n"))
        self.verdict.value = f'<div class="offload-verdict" role="alert">{said}</div>'

    def _check(self) -> None:
        if self.sure.value:
            self._quiz.sure(self._question.name, self.sure.value)
        self._tell(self._quiz.answer(self._question.name, self.given()))

    def refresh(self) -> None:
        """Show what is recorded."""
        answer = self._quiz.recorded(self._question.name)
        if answer is not None:
            self._fill(answer)
            self._tell(self._quiz._verdict(self._question), fresh=False)

    def _fill(self, answer: Any) -> None:
        """Put an answer into the controls."""
        if self._question.choices:
            # A recorded answer may name a choice that an edited file or an older bank had: then nothing is chosen.
            chosen = [answer] if isinstance(answer, str) else answer
            for choice, control in zip(self._question.choices, self.controls, strict=True):
                control.value = choice.id in chosen
        elif self._question.kind == "order":
            for step, control in zip(self._question.shown_steps(), self.controls, strict=True):
                control.value = answer.index(step.id) + 1 if step.id in answer else 0
        elif self._question.kind == "match":
            offered = self._question.options()
            for pair, control in zip(self._question.pairs, self.controls, strict=True):
                control.value = answer.get(pair.id) if answer.get(pair.id) in offered else ""
        else:
            self.controls[0].value = str(answer)

    def _tell(self, verdict: Verdict, fresh: bool = True) -> None:
        head = headline(verdict)
        again = [reread(misconceptions()[idea]["reread"]) for idea in verdict.misconceptions]
        if verdict.understood and not verdict.correct and not again and self._question.reread:
            again = [reread(self._question.reread)]
        lines = "<br>".join(escape(line) for line in [*verdict.message.split("\n"), *dict.fromkeys(again)])
        # A widget's text is put in as new elements. Of these, a screen reader announces an alert and passes over a status; and
        # an old verdict, shown again with the page, must not be announced.
        role = "alert" if fresh else "note"
        said = f"<strong>{escape(self._question.name)}: {escape(head)}.</strong><br>{lines}"
        self.verdict.value = f'<div class="offload-verdict" role="{role}">{said}</div>'


def _titled(kind: type[Any], title: str, **rest: Any) -> Any:
    """A widget with a title, which ipywidgets 7 (Colab's) calls by another name."""
    return kind(**{"tooltip" if kind.class_traits().get("tooltip") else "description_tooltip": title}, **rest)
