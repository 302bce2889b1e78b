"""A choice that a learner makes: which line of a listing, which of some ways. Recorded, and answered at once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from offload_lab.races import source
from offload_lab.revealer import Program
from quizzes.answers import MIME, Record, merge, notebook_path, read_records, shell
from quizzes.say import _

_made: dict[str, Record] = {}


@dataclass(frozen=True)
class Option:
    """What can be picked, and the reply to who picks it."""

    text: str
    reply: str
    right: bool = False


class Pick:
    """A question with options by name ("a", "b", … or "3" for line 3). Pick one in the box, or as `pick.choice = "b"`.

    A pick outlives its cell's next run, and a saved notebook's next kernel. Another pick replaces it; the first stays in the
    record's history. What is no option is said and changes nothing. `called` is the variable that holds it.

    Raises ValueError where no option is right.
    """

    def __init__(self, name: str, question: str, options: Mapping[str, Option], called: str = "pick") -> None:
        if not any(option.right for option in options.values()):
            raise ValueError(_("the question {name!r} has no right option").format(name=name))
        self.name, self.question, self.options, self._called = name, question, dict(options), called
        path, key = notebook_path(), f"pick {name}"
        saved = read_records(path, key) if path is not None else []
        self._record, _lost = merge(key, [_made[name], *saved] if name in _made else saved)
        _made[name] = self._record
        self._display = ""

    @property
    def choice(self) -> str | None:
        """The name of the option that was picked last, or None."""
        answer = self._record.answers.get(self.name, {}).get("answer")
        return answer if isinstance(answer, str) and answer in self.options else None  # a file can hold anything

    @choice.setter
    def choice(self, given: Any) -> None:
        print(self._take(given))

    @property
    def right(self) -> bool:
        """Whether the last pick is right."""
        return self.choice is not None and self.options[self.choice].right

    def _take(self, given: Any) -> str:
        """Note a pick; return the reply."""
        name = str(given).strip().lower() if isinstance(given, str | int) and not isinstance(given, bool) else None
        if name not in self.options:
            refused = _("Not noted: {given!r} is none of {names}.")
            return refused.format(given=given, names=", ".join(self.options))
        option = self.options[name]
        self._record.put(self.name, name, 1.0 if option.right else 0.0)
        self._publish()
        return (_("Yes. {reply}") if option.right else _("Not there. {reply}")).format(reply=option.reply)

    def listing(self) -> str:
        """The options as text, one a line."""
        width = max(len(name) for name in self.options)
        return "\n".join(f"{name:>{width}}  {option.text}" for name, option in self.options.items())

    def show(self) -> None:
        """Show question and options, a box to pick from where the front end has widgets, and how to type a pick."""
        print(f"{self.question}\n\n{self.listing()}\n")
        example = f'{self._called}.choice = "{next(iter(self.options))}"'
        if shell() is None:
            print(_("Answer with: {code}").format(code=example))
            return
        from IPython.display import display

        try:
            import ipywidgets as widgets
        except ImportError as error:
            print(_("(No box can be shown: {error}.)").format(error=error))
        else:
            names = [(_("pick, or skip"), ""), *((name, name) for name in self.options)]
            box = widgets.Dropdown(description=_("Your pick:"), options=names, value=self.choice or "")
            said = widgets.HTML()

            def take(change: Any) -> None:
                if box.value:
                    said.value = f'<span role="status">{escape(self._take(box.value))}</span>'

            box.observe(take, "value")
            display(widgets.VBox([box, said]))
        print(_("As text, in a cell of your own: {code}").format(code=example))
        self._display = ""
        self._publish()

    def _publish(self) -> None:
        """Keep the pick in the notebook's outputs, as data and as a line."""
        if shell() is None:
            return
        from IPython.display import display, update_display

        line = _("Your pick: {choice}").format(choice=self.choice or _("none yet"))
        content = {MIME: self._record.to_json(), "text/html": f"<p>{escape(line)}</p>", "text/plain": line}
        if self._display:
            update_display(content, raw=True, display_id=self._display)
        else:
            self._display = f"pick-{uuid.uuid4()}"
            display(content, raw=True, display_id=self._display)


def lines(program: Program, replies: Mapping[str, Option], otherwise: str) -> dict[str, Option]:
    """The numbered lines of a program, each an option. `replies` holds options by a part of the line that no other line has;
    `otherwise` is the reply to every other line. Raises ValueError for a part that is in no line, or in several."""
    listed = source(program).rstrip().splitlines()
    for part in replies:
        if sum(part in line for line in listed) != 1:
            raise ValueError(_("{part!r} is not in one line of {name}").format(part=part, name=program.__name__))
    options = {}
    for number, line in enumerate(listed, start=1):
        told = next((option for part, option in replies.items() if part in line), Option("", otherwise))
        options[str(number)] = Option(line, told.reply, told.right)
    return options
